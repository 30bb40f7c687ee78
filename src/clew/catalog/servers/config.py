"""The foreign servers of a workspace: those of `.clew/mcp.json` and those of `[[mcp.servers]]` in the settings. The
file has the `mcpServers` format of other clients, with a few additional keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from clew.catalog.route import check_domain_name
from clew.catalog.servers.login.auth_settings import Auth, parse_auth, written_auth
from clew.catalog.servers.value_references import Value, parse_value, written_value
from clew.config import Config
from clew.config.server_entry import Features as Features
from clew.config.server_entry import Filter as Filter
from clew.config.server_entry import McpServerEntry
from clew.decode_errors import config_in_plain_words
from clew.errors import ConfigError, InvalidInput
from clew.files import inside, read_file, replace_file
from clew.jsonc import plain_json
from clew.lazy_pattern import lazy_pattern

FILE = "mcp.json"
MAX_FILE = 4_000_000
MAX_SERVERS = 200
MAX_SECONDS = 86_400.0

WHERE = "`clew config check` shows where it is"

Transport = Literal["http", "stdio"]

_HTTP_TYPES = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})
_NOT_ID = lazy_pattern(r"[^a-z0-9]+")


class McpServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One server. `id` is also the name of its domain; a caller without one of `scopes` does not see it."""

    id: str
    transport: Transport
    name: str = ""
    url: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, Value] = {}
    cwd: str = ""
    auth: Auth = Auth()
    features: Features = Features()
    enabled: bool = True
    tools: Filter = Filter()
    scopes: tuple[str, ...] = ()
    idle_seconds: float = 300.0
    timeout_seconds: float = 60.0
    extra_headers: dict[str, Value] = {}

    def __post_init__(self) -> None:
        check_domain_name(self.id)
        if self.transport == "http" and urlsplit(self.url).scheme not in ("http", "https"):
            raise ConfigError(f"server {self.id}: url must begin with http:// or https://")
        if self.transport == "stdio" and not (self.command and self.command[0].strip()):
            raise ConfigError(f"server {self.id}: command is empty")
        for field in ("idle_seconds", "timeout_seconds"):
            if not 0 < getattr(self, field) <= MAX_SECONDS:
                raise ConfigError(f"server {self.id}: {field} must be above 0 and at most {MAX_SECONDS:,.0f}")

    def __repr__(self) -> str:
        """Arguments, environment, headers and the rest of the address may hold secrets, so they are not shown."""
        return f"McpServerConfig({self.id}, {self.transport}, {self.target})"

    @property
    def title(self) -> str:
        return self.name or self.id

    @property
    def target(self) -> str:
        """The program or host of the server, without possible secrets."""
        return urlsplit(self.url).hostname or "" if self.transport == "http" else Path(self.command[0]).name


KEYS = McpServerEntry.__struct_fields__


class InvalidServer(ConfigError):
    """A table `[[mcp.servers]]` that cannot be used. `server` is its id."""

    def __init__(self, server: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.server = server
        self.hint = hint


def read_servers(folder: Path) -> list[McpServerConfig]:
    """The servers of `folder`/mcp.json in the order of the file; empty if there is no file. Raises ConfigError, with
    the server and the key, for an invalid entry."""
    return _usable(_read_file(folder))


def servers_of(config: Config) -> list[McpServerConfig]:
    """The servers of a configuration: those of mcp.json, then those of its settings. Raises ConfigError."""
    return _usable(read_each_server(config))


def read_each_server(config: Config) -> Iterator[McpServerConfig | ConfigError]:
    """Like `servers_of`, but with an error in place of each invalid server."""
    path, taken = config.folder / FILE, set()
    for one in _read_file(config.folder):
        if isinstance(one, McpServerConfig):
            taken.add(one.id)
        yield one
    for each in config.mcp.servers:
        place = f"[[mcp.servers]] {each.id!r}"
        if each.id in taken:
            yield InvalidServer(each.id, f"{place}: there is a server of that name in {path}", "Rename one")
            continue
        entry = msgspec.to_builtins(each)
        del entry["id"]
        try:
            yield parse_server(each.id, entry, place)
        except ConfigError as error:
            yield InvalidServer(each.id, error.message, error.hint or WHERE)
        except InvalidInput as error:  # of the id, as the name of a domain
            yield InvalidServer(each.id, f"{place}: {error.message}", error.hint)


def _read_file(folder: Path) -> Iterator[McpServerConfig | ConfigError]:
    path = folder / FILE
    if not path.is_file():
        return
    try:
        given = read_json(path)
    except ConfigError as error:
        yield error
    else:
        yield from _parse_each(given, str(path))


def _usable(found: Iterable[McpServerConfig | ConfigError]) -> list[McpServerConfig]:
    """The servers, if none of them is invalid. Raises the first error."""
    servers = []
    for each in found:
        if isinstance(each, ConfigError):
            raise each
        servers.append(each)
    return servers


def write_servers(folder: Path, servers: Sequence[McpServerConfig]) -> Path:
    """Replace the file atomically. Raises ReadOnly if it is a link out of the folder, and OSError."""
    path = folder / FILE
    real = inside(path, folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode({"mcpServers": {one.id: written(one) for one in servers}}), indent=2)
    replace_file(real, text + b"\n", 0o600)
    return path


def read_json(path: Path) -> Any:
    """Parse a JSON file, which may have comments and trailing commas. Raises ConfigError."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise ConfigError(f"{path} is over {MAX_FILE:,} bytes")
        return msgspec.json.decode(plain_json(read_file(path).decode()))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None


def _parse_each(given: Any, place: str) -> Iterator[McpServerConfig | ConfigError]:
    entries = given.get("mcpServers", {}) if isinstance(given, dict) else None
    if not isinstance(entries, dict):
        yield ConfigError(f'{place} must hold an object "mcpServers"')
        return
    if len(entries) > MAX_SERVERS:
        yield ConfigError(f"{place} has more than {MAX_SERVERS} servers")
        return
    taken: set[str] = set()
    for key, entry in entries.items():
        id = derive_id(key, taken)
        taken.add(id)
        try:
            yield parse_server(id, entry, f"{place}: server {key!r}", name="" if id == key else key)
        except ConfigError as error:
            yield error


def parse_server(id: str, entry: Any, place: str, *, name: str = "") -> McpServerConfig:
    """One entry of the file. Raises ConfigError."""
    try:
        one = msgspec.convert(entry, McpServerEntry)
    except msgspec.ValidationError as error:
        raise config_in_plain_words(error, McpServerEntry, place, called="key") from None
    if bool(one.url) == bool(one.command):
        raise ConfigError(f"{place} needs either a command or a url")
    if one.type == "sse":
        raise ConfigError(f"{place} uses the old SSE transport; give the address of its streamable HTTP endpoint")
    if one.type and one.type not in (_HTTP_TYPES if one.url else ("stdio",)):
        raise ConfigError(f"{place}: type {one.type[:40]!r} does not fit", choices=("stdio", "http"))
    program = (one.command,) if isinstance(one.command, str) else tuple(one.command)
    return McpServerConfig(
        id=id,
        name=one.name or name,
        transport="http" if one.url else "stdio",
        url=one.url,
        command=() if one.url else (*program, *one.args),
        env={key: parse_value(value, f"{place}: env.{key}") for key, value in one.env.items()},
        cwd=one.cwd,
        auth=parse_auth(one.auth, place),
        features=one.features,
        enabled=one.enabled and not one.disabled,
        tools=one.tools,
        scopes=one.scopes,
        idle_seconds=one.idle_seconds,
        timeout_seconds=one.timeout_seconds,
        extra_headers={key: parse_value(value, f"{place}: headers.{key}") for key, value in one.headers.items()},
    )


def written(server: McpServerConfig) -> dict[str, Any]:
    """A server as an entry of the file, with defaults left out."""
    one = McpServerEntry(
        type=server.transport if server.transport == "http" else "",
        url=server.url,
        command=server.command[0] if server.command else "",
        args=list(server.command[1:]),
        env={key: written_value(value) for key, value in server.env.items()},
        cwd=server.cwd,
        headers={key: written_value(value) for key, value in server.extra_headers.items()},
        name=server.name,
        auth=written_auth(server.auth),
        features=server.features,
        enabled=server.enabled,
        tools=server.tools,
        scopes=server.scopes,
        idle_seconds=server.idle_seconds,
        timeout_seconds=server.timeout_seconds,
    )
    found: dict[str, Any] = msgspec.to_builtins(one)
    return found


def derive_id(name: str, taken: Collection[str] = ()) -> str:
    """A valid domain name derived from a server's name: deterministic, and not in `taken`."""
    base = _NOT_ID.sub("-", name.lower()).strip("-")[:50].strip("-")
    if not base or not base[0].isalpha():
        base = f"server-{base}".strip("-")
    number, id = 2, base
    while id in taken:
        id, number = f"{base}-{number}", number + 1
    return id
