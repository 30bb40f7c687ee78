"""One frozen `Config`, parsed once at a door: defaults < `.clew/config.toml` < `CLEW_*` environment < flags."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_network
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from clew.decode_errors import in_plain_words, noun_of
from clew.errors import ConfigError
from clew.files import read_file, refuse_links

FOLDER = ".clew"
MACHINE_ONLY = ("trail.db*", "code.db*", "keys*", "credential*", "secrets*", "edits*", "large-folder")
"""What is in the folder and belongs to this machine: what is derived, and what is secret. git ignores it; no tool of
an agent reads it."""
_WRITTEN = (*MACHINE_ONLY, "*.lock")
_MAX_BYTES = 1_000_000
"""Of a file of settings."""
SOURCES = "sources"
MODELS = "models"
PROVIDERS = "providers"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The REST and MCP doors. `max_body` is in bytes; `queue` is how many writes may wait before callers are told to
    come back; `hosts` are further names under which browsers and agents may reach the MCP door."""

    host: str = "127.0.0.1"
    port: int = 8081
    max_body: int = 8_000_000
    queue: int = 10_000
    token_minutes: int = 60
    hosts: tuple[str, ...] = ()


class HygieneConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sweeper: how often it runs, and after how many days an unseen agent is idle."""

    enabled: bool = True
    every_seconds: float = 300.0
    idle_days: float = 7.0


class WebhookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`allow` names networks (such as 10.0.0.0/8) that webhooks may reach although they are not public."""

    allow: tuple[str, ...] = ()
    timeout_seconds: float = 10.0


class CatalogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `ask` and `get`. `domains` names those that are on: of installed packages, or `module:name`.
    `repository` indexes the files around the folder, at most `max_files` without asking; `strict` refuses routes that
    were not shown before; `shared` opens the catalog to callers of other owners."""

    domains: tuple[str, ...] = ()
    repository: bool = True
    max_files: int = 50_000
    strict: bool = False
    shared: bool = False


class KnowledgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the knowledge of files. `model` is a role or "provider:model" that puts into words what no source
    answers by itself; without one nothing is asked of a model."""

    model: str = ""


class PermissionsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Permissions of agents, as rules such as `exec(git status*)`, `write-file(src/**)`, `fetch(docs.python.org)` or
    the mere name of a tool. What `allow` adds to the default waits for your consent (`clew trust`)."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class SourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One table `[sources.NAME]`: where documents come from, and in which domain they are found. What is not a setting
    of its own is an option of its kind."""

    kind: str
    domain: str
    description: str = ""
    base_path: str = ""
    ttl_minutes: float = 240.0
    scopes: tuple[str, ...] = ()
    options: dict[str, Any] = {}


class KnownModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table `[models.known.NAME]`: what the user knows of a model; what is not given is as in the catalogue. Prices
    are in US dollars per million tokens."""

    context_tokens: int | None = None
    budget_tokens: int | None = None
    output_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    formatter: str | None = None
    capabilities: tuple[str, ...] | None = None


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model plays which role, as "provider:model" or as the name of another role. Every further text in
    `[models]` is a role too, or the name of an agent: those are `roles`."""

    default: str = ""
    fast: str = ""
    strong: str = ""
    coding: str = ""
    roles: dict[str, str] = {}
    known: dict[str, KnownModel] = {}


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table `[providers.NAME]`: where models answer, and where the key for them is, never the key itself."""

    kind: str = "openai-compatible"
    base_url: str = ""
    key: str = ""
    timeout_seconds: float = 120.0


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. `folder` is where the trail and its keys live. `agents` says whether `clew up` runs
    them; in `production` no code of others runs where nothing can shut it in. `from_file` names the settings whose
    value comes from config.toml, `is_named` says that somebody named the folder."""

    folder: Path = Path(FOLDER)
    is_named: bool = False
    from_file: frozenset[str] = frozenset()
    trail: str = ""
    owner: str = "local"
    embedder: str = "wordllama"
    agents: bool = True
    production: bool = False
    server: ServerConfig = ServerConfig()
    hygiene: HygieneConfig = HygieneConfig()
    webhooks: WebhookConfig = WebhookConfig()
    catalog: CatalogConfig = CatalogConfig()
    knowledge: KnowledgeConfig = KnowledgeConfig()
    permissions: PermissionsConfig = PermissionsConfig()
    sources: dict[str, SourceConfig] = {}
    models: ModelsConfig = ModelsConfig()
    providers: dict[str, ProviderConfig] = {}

    @property
    def trail_url(self) -> str:
        return self.trail or f"sqlite://{self.folder / 'trail.db'}"

    @property
    def trail_file(self) -> Path | None:
        """The file that holds the trail, or None if it is in memory or on a server."""
        scheme, _, place = self.trail_url.partition("://")
        return Path(place) if scheme == "sqlite" and not self.is_in_memory else None

    @property
    def is_in_memory(self) -> bool:
        """Whether the trail ends with the process."""
        return self.trail_url == "sqlite://:memory:"


CHOICES = {"embedder": ("wordllama", "minilm", "hash", "none")}
LIMITS: dict[str, tuple[float, float]] = {
    "server.port": (0, 65_535),
    "server.max_body": (1, 1_000_000_000),
    "server.queue": (1, 10_000_000),
    "server.token_minutes": (1, 527_040),
    "catalog.max_files": (1, 100_000_000),
    "hygiene.every_seconds": (0.001, 31_622_400),
    "hygiene.idle_days": (0, 36_600),
    "webhooks.timeout_seconds": (0.001, 3_600),
}
"""The least and the greatest value of a setting that is a number."""
MAX_TTL_MINUTES = 5_270_400
"""Ten years."""
KEY_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:\S.*|keyring:[^/\s][^/]*/\S.*")
"""Where a key may be: in a variable, in a file, or in the keyring of the system."""
KEY_HINT = "Write env:NAME, file:PATH or keyring:SERVICE/USER, and take the key out of this file"
EXAMPLE = "http://127.0.0.1:11434/v1"

NOT_SETTINGS = ("folder", "is_named", "from_file")
"""Fields of Config that no file, variable or flag sets."""

_Table = TypeVar("_Table", bound=msgspec.Struct)


def read_config(
    folder: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Config:
    """The configuration of a folder, with environment and flags on top.

    Without a folder it is CLEW_FOLDER, or what `find_folder` finds from here. A variable names a setting with
    `_` for `.`: CLEW_SERVER_PORT is `server.port`. Raises ConfigError naming the setting and where it came from.
    """
    environ = environ or {}
    named = folder or (Path(environ["CLEW_FOLDER"]) if environ.get("CLEW_FOLDER") else None)
    place = named or find_folder(Path.cwd())
    settings: dict[str, Any] = {}
    file = place / "config.toml"
    from_file: set[str] = set()
    given = (*_from_file(file), *_from_environment(environ), *_from_flags(flags or {}))
    for source, name, value in given:
        section, _, inner = name.partition(".")
        if section == SOURCES and inner:
            settings.setdefault(SOURCES, {})[inner] = _source(source, inner, value)
            continue
        if section == PROVIDERS and inner:
            settings.setdefault(PROVIDERS, {})[inner] = _provider(source, inner, value)
            continue
        if section == MODELS and inner and name not in _KINDS:
            _take_model(source, inner, value, settings.setdefault(MODELS, {}))
            continue
        checked = _checked(source, name, value)
        (from_file.add if source == str(file) else from_file.discard)(name)
        if inner:
            settings.setdefault(section, {})[inner] = checked
        else:
            settings[name] = checked
    found = msgspec.convert(settings, Config)
    return msgspec.structs.replace(found, folder=place, is_named=named is not None, from_file=frozenset(from_file))


def find_folder(start: Path) -> Path:
    """Return the `.clew` of the git repository around `start`, else the nearest one upward, else that of `start`.

    Inside a repository a nearer `.clew` wins, and one above the repository is ignored. The search stops below the home
    folder, temporary folders and the root of the file system. It skips folders of other users, who could have put
    settings there.
    """
    if is_broad(start) or os.path.isdir(start / FOLDER) or os.path.exists(start / ".git"):
        return Path(FOLDER)
    for place in takewhile(lambda each: not is_broad(each), start.parents):
        if os.path.isdir(place / FOLDER) and _is_mine(place / FOLDER):
            return place / FOLDER
        if os.path.exists(place / ".git"):
            return place / FOLDER if _is_mine(place) else Path(FOLDER)
    return Path(FOLDER)


_TEMPORARY = ("/tmp", "/var/tmp") if os.name == "posix" else ()


def is_broad(place: Path) -> bool:
    """Whether a folder is no project but holds those of all kinds: the root of the file system, the home folder, the
    folder of all homes, and the folders for temporary files."""
    real, home = Path(os.path.realpath(place)), Path(os.path.realpath(os.path.expanduser("~")))
    holds_homes = len(real.parts) == 2 and home.is_relative_to(real)
    temporary = {*_TEMPORARY, *(os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))} - {""}
    return real in (Path(real.anchor), home, *map(Path, map(os.path.realpath, temporary))) or holds_homes


def check_own_files(folder: Path) -> None:
    """Check the files that Clew writes in its folder, before it opens any of them. Raises ReadOnly where one is a link,
    which a cloned folder can bring."""
    refuse_links(folder, _WRITTEN)


def _is_mine(folder: Path) -> bool:
    return os.name != "posix" or folder.stat().st_uid == os.geteuid()


Given = Iterator[tuple[str, str, Any]]
"""Where a setting was found, its dotted name, and its value."""


def _from_file(path: Path) -> Given:
    try:
        found = tomllib.loads(read_file(path, _MAX_BYTES).decode("utf-8"))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _error(f"{path} cannot be read: {error.strerror}", "Mend it, or remove it to begin anew") from None
    except RecursionError:
        raise ConfigError(f"{path} is not TOML: it is nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        is_repeated = "Cannot declare" in str(error) or "Cannot overwrite" in str(error)
        hint = "Two tables have one name: put all their settings below the first" if is_repeated else ""
        raise _error(f"{path} is not TOML: {error}", hint) from None
    for name, value in found.items():
        if isinstance(value, dict):
            yield from ((str(path), f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield str(path), name, value


def _from_environment(environ: Mapping[str, str]) -> Given:
    """CLEW_* variables that name a setting. Variables for other purposes (debugging, folder) are left alone."""
    for name in _KINDS:
        variable = f"CLEW_{name.replace('.', '_')}".upper()
        if (value := environ.get(variable)) is not None:
            yield variable, name, list(filter(None, value.split(","))) if _KINDS[name] == tuple[str, ...] else value


def _from_flags(flags: Mapping[str, Any]) -> Given:
    for name, value in flags.items():
        if value is not None:
            yield f"--{name.rpartition('.')[2]}", name, value


def _kinds(config: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(config):
        if isinstance(field.default, msgspec.Struct):
            yield from _kinds(type(field.default), f"{field.name}.")
        elif field.name not in NOT_SETTINGS and not is_table(field):
            yield prefix + field.name, field.type


def is_table(field: msgspec.structs.FieldInfo) -> bool:
    """Whether a setting is made of tables, `[NAME.…]`, and so has no variable and no flag."""
    return field.default_factory is dict


_KINDS = dict(_kinds(Config))
"""Dotted name of each setting → its type."""


def _checked(source: str, name: str, value: Any) -> Any:
    """The value as its type. Raises ConfigError in the words of the person who set it."""
    if name not in _KINDS:
        raise _error(f"{source}: there is no setting {name!r}", _nearest(name))
    try:
        converted = msgspec.convert(value, _KINDS[name], strict=False)
        least, greatest = LIMITS.get(name, (None, None))
        if least is not None and greatest is not None and not least <= converted <= greatest:
            raise ValueError
    except ValueError:  # of which msgspec's own error is one
        raise ConfigError(f"{source}: {name} must be {_meant(name)}, not {value!r}") from None
    if name in CHOICES and converted not in CHOICES[name]:
        raise _error(f"{source}: there is no {name} {converted!r}", _guess(converted, CHOICES[name]))
    if name == "webhooks.allow":
        _check_networks(source, converted)
    return converted


def _source(source: str, name: str, table: Any) -> SourceConfig:
    """A table `[sources.NAME]`. Its domain is named like itself unless it says otherwise."""
    place = f"{source}: [{SOURCES}.{name}]"
    if not isinstance(table, dict):
        raise ConfigError(f"{place} must be a table with at least a kind")
    if "kind" not in table:
        raise ConfigError(f"{place} has no kind, such as local or github")
    own = {field for field in SourceConfig.__struct_fields__ if field != "options"}
    given = {key: value for key, value in table.items() if key in own}
    options = {key: value for key, value in table.items() if key not in own}
    try:
        found = msgspec.convert({"domain": name, **given, "options": options}, SourceConfig)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, SourceConfig, "it", called="setting")
        raise _error(f"{place} {wrong.field} {wrong.reason}", wrong.hint) from None
    if not 0 <= found.ttl_minutes <= MAX_TTL_MINUTES:
        raise ConfigError(f"{place} ttl_minutes must be from 0 to {MAX_TTL_MINUTES:,}, not {found.ttl_minutes}")
    return found


def _provider(source: str, name: str, table: Any) -> ProviderConfig:
    """A table `[providers.NAME]`. What looks like the key itself is refused, and not repeated."""
    place = f"{source}: [{PROVIDERS}.{name}]"
    found = _table(place, table, ProviderConfig)
    if found.key and not KEY_REFERENCE.fullmatch(found.key):
        raise _error(f"{place} key must say where the key is, and not be it", KEY_HINT)
    if found.base_url and not _is_plain_url(found.base_url):
        raise _error(f"{place} base_url must be an http or https address without a password", "For example " + EXAMPLE)
    if not 0.001 <= found.timeout_seconds <= 86_400:
        raise ConfigError(f"{place} timeout_seconds must be from 0.001 to 86,400, not {found.timeout_seconds}")
    return found


def _take_model(source: str, inner: str, value: Any, models: dict[str, Any]) -> None:
    """A role of the user's own, or the tables of `[models.known]`."""
    if inner == "known" and isinstance(value, dict):
        place = f"{source}: [{MODELS}.known"
        models["known"] = {name: _table(f"{place}.{name}]", table, KnownModel) for name, table in value.items()}
    elif isinstance(value, str) and inner != "roles":
        models.setdefault("roles", {})[inner] = value
    else:
        raise _error(f"{source}: {MODELS}.{inner} must be text", 'Write role = "provider:model"')


def _table(place: str, table: Any, kind: type[_Table]) -> _Table:
    if not isinstance(table, dict):
        raise ConfigError(f"{place} must be a table of settings")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, kind, "it", called="setting")
        raise _error(f"{place} {wrong.field} {wrong.reason}", wrong.hint) from None


def _is_plain_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_whole and parts.username is None and parts.password is None and url.isprintable() and " " not in url


def _meant(name: str) -> str:
    """The allowed values of a setting, in words."""
    kind = noun_of(_KINDS[name])
    return f"{kind} from {LIMITS[name][0]} to {LIMITS[name][1]}" if name in LIMITS else kind


def _nearest(name: str) -> str:
    """The advice for a setting that does not exist."""
    if name == "folder":
        return "The folder is chosen by --folder or CLEW_FOLDER"
    if name == SOURCES:
        return "It is made of tables: write [sources.NAME] and a kind below"
    if name == PROVIDERS:
        return "It is made of tables: write [providers.NAME] and a kind below"
    if any(known.startswith(f"{name}.") for known in _KINDS):
        return f"It is a section: write [{name}] and its settings below"
    last = name.rpartition(".")[2]
    return _guess(name, [known for known in _KINDS if known.rpartition(".")[2] == last] or _KINDS)


def _guess(given: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(given, known, 1, cutoff=0.6 if len(known) > 1 else 0.0)
    return f"Did you mean {close[0]}?" if close else f"Choose one of: {', '.join(known)}"


def _error(message: str, hint: str) -> ConfigError:
    error = ConfigError(message)
    error.hint = hint
    return error


def _check_networks(source: str, networks: tuple[str, ...]) -> None:
    for network in networks:
        try:
            ip_network(network)
        except ValueError:
            raise ConfigError(f"{source}: webhooks.allow: {network!r} is not a network such as 10.0.0.0/8") from None
