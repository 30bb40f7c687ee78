"""The settings: one frozen struct for each section, with defaults, limits and choices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from clew.config.folder import FOLDER
from clew.config.server_entry import ConfiguredServer
from clew.lazy_pattern import lazy_pattern


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of settings."""


class ServerConfig(_Section, frozen=True, kw_only=True):
    """The REST and MCP server. `max_body` is in bytes. `queue` is the number of writes that may wait before callers
    must retry. `hosts` are further host names that browsers and agents may use for MCP."""

    host: str = "127.0.0.1"
    port: int = 8081
    max_body: int = 8_000_000
    queue: int = 10_000
    token_minutes: int = 60
    hosts: tuple[str, ...] = ()


class BusConfig(_Section, frozen=True, kw_only=True):
    """The bus that wakes other processes of the trail. `credentials` is a reference to a login, never the login itself.
    `ca` is a file with the CA certificates for checking the server."""

    url: str = ""
    credentials: str = ""
    ca: str = ""


class TrailSearchConfig(_Section, frozen=True, kw_only=True):
    """Search on a trail that is on PostgreSQL. `memory_mb` is how many megabytes of records a process may hold."""

    memory_mb: int = 3_000


class HygieneConfig(_Section, frozen=True, kw_only=True):
    """The sweeper: how often it runs, and after how many days an unseen agent is idle."""

    enabled: bool = True
    every_seconds: float = 300.0
    idle_days: float = 7.0


class WebhookConfig(_Section, frozen=True, kw_only=True):
    """`allow` names networks (such as 10.0.0.0/8) that webhooks may reach although they are not public."""

    allow: tuple[str, ...] = ()
    timeout_seconds: float = 10.0


class CatalogConfig(_Section, frozen=True, kw_only=True):
    """Settings of `ask` and `get`. `domains` lists the enabled domains: names from installed packages, or
    `module:name`. `repository` indexes the files around the folder, at most `max_files` without asking. `strict`
    refuses routes that were not shown before. `shared` opens the catalog to callers of other owners."""

    domains: tuple[str, ...] = ()
    repository: bool = True
    max_files: int = 50_000
    strict: bool = False
    shared: bool = False


class KnowledgeConfig(_Section, frozen=True, kw_only=True):
    """Settings of the knowledge of files. `model` is a role or "provider:model"; it writes an answer if no source
    answers the question by itself. Without it, no model is used."""

    model: str = ""


class PermissionsConfig(_Section, frozen=True, kw_only=True):
    """Permissions of agents, as rules such as `exec(git status*)`, `write-file(src/**)`, `fetch(docs.python.org)` or
    the mere name of a tool. Rules that `allow` adds to the default wait for your consent (`clew trust`)."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class AgentConfig(_Section, frozen=True, kw_only=True):
    """The agent that a conversation starts with. `model` is short for an entry of `[models]` under the agent's name."""

    name: str = "assistant"
    model: str = ""


class McpConfig(_Section, frozen=True, kw_only=True):
    """Foreign MCP servers beside those of mcp.json. `hooks` are `module:name`, each a `Hooks` of
    `clew.catalog.servers`; servers wait until you agreed to all of them."""

    servers: tuple[ConfiguredServer, ...] = ()
    hooks: tuple[str, ...] = ()


class SkillsConfig(_Section, frozen=True, kw_only=True):
    """`root` is the folder of the project that holds its skills."""

    root: str = f"{FOLDER}/skills"


class RulesConfig(_Section, frozen=True, kw_only=True):
    """`root` is the file with the rules that hold for the whole project."""

    root: str = "AGENTS.md"


class TeamConfig(_Section, frozen=True, kw_only=True):
    """The worker pool of all sessions and processes of a folder: calls at a time of models and of tools, and of each
    kind for one session. If more than `queue` calls are waiting, the team accepts no new request."""

    model_calls: int = 64
    tool_calls: int = 32
    session_calls: int = 8
    queue: int = 1_000


class AdaptersConfig(_Section, frozen=True, kw_only=True):
    """Layers around an agent. `sandbox` chooses the mechanism that isolates tools."""

    sandbox: str = "auto"


class ScriptsConfig(_Section, frozen=True, kw_only=True):
    """Promoted scripts of Python programs that call `open_scripts`: their file, and the time for which they are kept.
    No command of Clew uses them."""

    persistence: str = "file"
    path: str = f"{FOLDER}/scripts.json"
    expiration_days: int = 30


class SourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One table `[sources.NAME]`: a source of documents, and the domain in which they are found. Keys that are not
    settings are options of the source's kind."""

    kind: str
    domain: str
    description: str = ""
    base_path: str = ""
    ttl_minutes: float = 240.0
    scopes: tuple[str, ...] = ()
    options: dict[str, Any] = {}


class KnownModel(_Section, frozen=True, kw_only=True):
    """One table `[models.known.NAME]`: the user's facts about a model. Missing facts come from the catalogue. Prices
    are in US dollars per million tokens."""

    context_tokens: int | None = None
    budget_tokens: int | None = None
    output_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    formatter: str | None = None
    capabilities: tuple[str, ...] | None = None


class ModelsConfig(_Section, frozen=True, kw_only=True):
    """The model for each role, as "provider:model" or as the name of another role. All other text entries in
    `[models]` are collected in `roles`; each is a role or the name of an agent."""

    default: str = ""
    fast: str = ""
    strong: str = ""
    coding: str = ""
    roles: dict[str, str] = {}
    known: dict[str, KnownModel] = {}


class ProviderConfig(_Section, frozen=True, kw_only=True):
    """One table `[providers.NAME]`: the address of a model provider, and a reference to its key, never the key
    itself."""

    kind: str = "openai-compatible"
    base_url: str = ""
    key: str = ""
    timeout_seconds: float = 120.0


class Config(_Section, frozen=True, kw_only=True):
    """All settings. `folder` is the folder of the trail and its keys. `agents` says whether `clew up` runs
    agents. In `production`, foreign code does not run unless it can be sandboxed. `from_file` lists the settings whose
    value comes from config.toml; `is_named` says that the folder was named explicitly."""

    folder: Path = Path(FOLDER)
    is_named: bool = False
    from_file: frozenset[str] = frozenset()
    trail: str = ""
    owner: str = "local"
    embedder: str = "wordllama"
    agents: bool = True
    production: bool = False
    server: ServerConfig = ServerConfig()
    bus: BusConfig = BusConfig()
    search: TrailSearchConfig = TrailSearchConfig()
    hygiene: HygieneConfig = HygieneConfig()
    webhooks: WebhookConfig = WebhookConfig()
    catalog: CatalogConfig = CatalogConfig()
    knowledge: KnowledgeConfig = KnowledgeConfig()
    permissions: PermissionsConfig = PermissionsConfig()
    agent: AgentConfig = AgentConfig()
    mcp: McpConfig = McpConfig()
    skills: SkillsConfig = SkillsConfig()
    rules: RulesConfig = RulesConfig()
    team: TeamConfig = TeamConfig()
    adapters: AdaptersConfig = AdaptersConfig()
    scripts: ScriptsConfig = ScriptsConfig()
    sources: dict[str, SourceConfig] = {}
    models: ModelsConfig = ModelsConfig()
    providers: dict[str, ProviderConfig] = {}

    @property
    def trail_url(self) -> str:
        """The address of the trail. A path is that of a file; one in config.toml begins at the project's folder."""
        if not self.trail:
            return f"sqlite://{self.folder / 'trail.db'}"
        scheme, colon, place = self.trail.rpartition("://")
        if scheme not in ("", "sqlite") or place == ":memory:" or (not colon and not place.endswith(".db")):
            return self.trail
        return f"sqlite://{self.folder.parent / place if 'trail' in self.from_file else place}"

    @property
    def trail_limits(self) -> dict[str, int]:
        """The limits of a process that opens the trail, by the names that `open_trail` has for them."""
        return {"queue_limit": self.server.queue, "search_memory": self.search.memory_mb * 1_000_000}

    @property
    def trail_file(self) -> Path | None:
        """The file that holds the trail, or None if it is in memory or on a server."""
        scheme, _, place = self.trail_url.partition("://")
        return Path(place) if scheme == "sqlite" and not self.is_in_memory else None

    @property
    def is_in_memory(self) -> bool:
        """Whether the trail ends with the process."""
        return self.trail_url == "sqlite://:memory:"


SOURCES = "sources"
MODELS = "models"
PROVIDERS = "providers"
SERVERS = ("mcp", "servers")

CHOICES = {
    "embedder": ("wordllama", "minilm", "hash", "none"),
    "adapters.sandbox": ("auto", "bubblewrap", "landlock", "none"),
    "scripts.persistence": ("file", "callback"),
}
LIMITS: dict[str, tuple[float, float]] = {
    "server.port": (0, 65_535),
    "server.max_body": (1, 1_000_000_000),
    "server.queue": (1, 10_000_000),
    "server.token_minutes": (1, 527_040),
    "catalog.max_files": (1, 100_000_000),
    "search.memory_mb": (0, 10_000_000),
    "hygiene.every_seconds": (0.001, 31_622_400),
    "hygiene.idle_days": (0, 36_600),
    "webhooks.timeout_seconds": (0.001, 3_600),
    "scripts.expiration_days": (1, 36_600),
    "team.model_calls": (1, 10_000),
    "team.tool_calls": (1, 10_000),
    "team.session_calls": (1, 10_000),
    "team.queue": (1, 1_000_000),
}
"""The least and the greatest value of a setting that is a number."""
MAX_TTL_MINUTES = 5_270_400
"""Ten years."""
MAX_PROVIDER_SECONDS = 86_400
KEY_REFERENCE = lazy_pattern(r"env:[A-Za-z_][A-Za-z0-9_]*|file:\S.*|keyring:[^/\s][^/]*/\S.*")
"""Matches a reference to a key: in an environment variable, in a file, or in the system's keyring."""
KEY_HINT = "Write env:NAME, file:PATH or keyring:SERVICE/USER, and take the key out of this file"
EXAMPLE = "http://127.0.0.1:11434/v1"

NOT_SETTINGS = ("folder", "is_named", "from_file")
"""Fields of Config that no file, variable or flag sets."""


def is_table(field: msgspec.structs.FieldInfo) -> bool:
    """Whether a setting is made of tables, such as `[NAME.…]`, and so has no variable and no flag."""
    return field.default_factory is dict or field.type == tuple[ConfiguredServer, ...]


def _kinds(config: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(config):
        if isinstance(field.default, msgspec.Struct):
            yield from _kinds(type(field.default), f"{field.name}.")
        elif field.name not in NOT_SETTINGS and not is_table(field):
            yield prefix + field.name, field.type


KINDS = dict(_kinds(Config))
"""Dotted name of each setting → its type."""
