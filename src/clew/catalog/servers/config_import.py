"""Imports the servers that a user has set up for other clients. No server is started, and values that look like secrets
are not copied."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from clew.catalog.servers.config import KEYS, MAX_FILE, McpServerConfig, derive_id, parse_server
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.secret_references import env_name, mask_address, mask_arguments, mask_values
from clew.catalog.servers.value_references import FromEnv
from clew.errors import ConfigError
from clew.lazy_pattern import lazy_pattern

_COMMENT = lazy_pattern(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = lazy_pattern(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_INPUT = lazy_pattern(r"\$\{input:([\w.-]+)\}")
_KEYS = ("mcpServers", "servers", "context_servers")
"""The keys of servers in the files of most clients, of VS Code and of Zed."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was found: where, under which name, and the variables that must be set for it."""

    path: str
    name: str
    server: McpServerConfig
    to_set: Sequence[str] = ()


class ServerLeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A file or server that was not imported, and why. `is_unreadable` marks a file that could not be read at all."""

    path: str
    name: str
    reason: str
    is_unreadable: bool = False


class ServerImportReport(msgspec.Struct, frozen=True, kw_only=True):
    found: Sequence[Imported]
    skipped: Sequence[ServerLeftOut]

    @property
    def servers(self) -> list[McpServerConfig]:
        return [one.server for one in self.found]


def project_files(folder: Path) -> list[Path]:
    """The files in which other clients keep a project's servers. They come from the project's author and are
    untrusted."""
    names = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".zed/settings.json", ".gemini/settings.json")
    return [folder / name for name in (*names, ".codex/config.toml")]


def user_files(home: Path) -> list[Path]:
    """The files in which other clients keep the servers of their user."""
    names = (
        ".claude.json",
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
        ".cursor/mcp.json",
        ".config/Code/User/mcp.json",
        ".config/zed/settings.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        ".config/goose/config.yaml",
    )
    return [home / name for name in names]


def import_servers(
    paths: Sequence[Path], *, keep_secrets: bool = False, present: Collection[McpServerConfig] = ()
) -> ServerImportReport:
    """Read the files. New ids do not collide with those in `present`. A server that is present or found twice is not
    imported again, and Clew itself is never imported. Invalid content never raises: `skipped` lists the unusable
    entries.
    """
    found: list[Imported] = []
    skipped: list[ServerLeftOut] = []
    for path in paths:
        try:
            entries = list(_entries(_decode(path)))
        except ConfigError as error:
            skipped.append(ServerLeftOut(path=str(path), name="", reason=error.message, is_unreadable=True))
            continue
        if not entries:
            skipped.append(ServerLeftOut(path=str(path), name="", reason="holds no servers"))
        for name, entry in entries:
            known = [*present, *(one.server for one in found)]
            try:
                one = _import_one(path, name, entry, derive_id(name, {each.id for each in known}), keep_secrets)
                if _is_clew(one.server):
                    raise ConfigError("is Clew itself")
                if again := next((each for each in known if _same(each, one.server)), None):
                    raise ConfigError(f"is the same as {again.id}")
                found.append(one)
            except ConfigError as error:
                skipped.append(ServerLeftOut(path=str(path), name=name, reason=error.message))
    return ServerImportReport(found=found, skipped=skipped)


def _decode(path: Path) -> Any:
    """The content of a file. Raises ConfigError."""
    try:
        text = _read_text(path)
        match path.suffix:
            case ".toml":
                import tomllib  # few clients have TOML

                return tomllib.loads(text)
            case ".yaml" | ".yml":
                return _decode_yaml(text)
            case _:
                plain = _COMMENT.sub(lambda found: found.group(1) or " ", text)
                return msgspec.json.decode(_LAST_COMMA.sub(lambda found: found.group(1) or "", plain).encode())
    except FileNotFoundError:
        raise ConfigError("does not exist") from None
    except UnicodeDecodeError:
        raise ConfigError("is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})") from None
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise ConfigError(f"is not {'TOML' if path.suffix == '.toml' else 'JSON'}") from None


def _read_text(path: Path) -> str:
    """Read a file. Raises ConfigError if it is too large or not a regular file, and does not block on a pipe."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ConfigError("is not a regular file")
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise ConfigError(f"is over {MAX_FILE:,} bytes")
    return content.decode("utf-8-sig")


def _decode_yaml(text: str) -> Any:
    import yaml  # only goose writes YAML

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError("is not YAML") from None


def _entries(given: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and entry of each server, converted to Clew's format as far as possible. Raises ConfigError."""
    if not isinstance(given, dict):
        raise ConfigError("is not an object")
    for key in _KEYS:
        yield from ((name, _common(entry)) for name, entry in _objects(given, key))
    yield from ((name, _common(entry)) for name, entry in _objects(given.get("mcp"), "servers"))
    for _, project in _objects(given, "projects"):
        yield from ((name, _common(entry)) for name, entry in _objects(project, "mcpServers"))
    yield from ((name, _codex(entry)) for name, entry in _objects(given, "mcp_servers"))
    yield from ((name, _goose(entry)) for name, entry in _objects(given, "extensions"))


def _objects(given: Any, key: str) -> list[tuple[str, dict[str, Any]]]:
    inner = given.get(key) if isinstance(given, dict) else None
    return [(str(name), one) for name, one in inner.items() if isinstance(one, dict)] if isinstance(inner, dict) else []


def _common(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the JSON formats: Claude, Cursor, VS Code, Zed and Gemini differ in a few keys."""
    one = dict(entry)
    if isinstance(one.get("command"), dict):  # Zed of 2025
        one = {**one, **one.pop("command")}
        one["command"] = one.pop("path", "")
    if "httpUrl" in one:  # Gemini
        one.update(url=one.pop("httpUrl"), type="http")
    if one.get("env") is None:
        one.pop("env", None)
    tools = {"allow": one.pop("includeTools", []), "deny": one.pop("excludeTools", [])}
    return {**one, "tools": tools} if any(tools.values()) else one


def _codex(entry: dict[str, Any]) -> dict[str, Any]:
    one = dict(entry)
    one["headers"] = {
        **one.pop("http_headers", {}),
        **{key: {"$env": name} for key, name in one.pop("env_http_headers", {}).items()},
    }
    if "bearer_token_env_var" in one:
        one["auth"] = {"type": "bearer", "token": {"$env": one.pop("bearer_token_env_var")}}
    if "tool_timeout_sec" in one:
        one["timeout_seconds"] = one.pop("tool_timeout_sec")
    one["tools"] = {"allow": one.pop("enabled_tools", []), "deny": one.pop("disabled_tools", [])}
    return one


def _goose(entry: dict[str, Any]) -> dict[str, Any]:
    one = dict(entry)
    one["type"] = str(one.get("type", "")).replace("_", "-")
    if one["type"] in ("builtin", "platform", "frontend", "inline-python"):
        one["unsupported"] = f"is of type {one['type']}, which lives inside goose"
    if "cmd" in one:
        one["command"] = one.pop("cmd")
    if "uri" in one:
        one["url"] = one.pop("uri")
    one["env"] = {**{key: {"$env": key} for key in one.pop("env_keys", [])}, **one.pop("envs", {})}
    if "timeout" in one:
        one["timeout_seconds"] = one.pop("timeout")
    return one


def _import_one(path: Path, name: str, entry: dict[str, Any], id: str, keep_secrets: bool) -> Imported:
    """Raises ConfigError for an entry that cannot be used."""
    if "unsupported" in entry:
        raise ConfigError(entry["unsupported"])
    to_set: list[str] = []
    known = {key: _without_inputs(value, id, to_set) for key, value in entry.items() if key in KEYS}
    if isinstance(known.get("auth"), dict) and not set(known["auth"]) <= set(Auth.__struct_fields__):
        del known["auth"]  # the same key means something else to another client
    known = {**known, "name": known.get("name") or ("" if id == name else name)}
    server = parse_server(id, known, "entry")
    if not keep_secrets:
        server = _without_secrets(server, to_set)
    return Imported(path=str(path), name=name, server=server, to_set=tuple(dict.fromkeys(to_set)))


def _without_inputs(value: Any, id: str, to_set: list[str]) -> Any:
    """VS Code asks its user for `${input:…}`; we take an environment variable instead."""
    if isinstance(value, dict):
        return {key: _without_inputs(each, id, to_set) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_inputs(each, id, to_set) for each in value]
    if not isinstance(value, str):
        return value
    to_set += [env_name(id, asked) for asked in _INPUT.findall(value)]
    return _INPUT.sub(lambda found: f"${{{env_name(id, found.group(1))}}}", value)


def _without_secrets(server: McpServerConfig, to_set: list[str]) -> McpServerConfig:
    headers, auth = dict(server.extra_headers), server.auth
    for key, value in server.extra_headers.items():
        is_plain = key.lower() == "authorization" and isinstance(value, str) and "${" not in value
        if is_plain and str(value).lower().startswith("bearer ") and auth.type == "none":
            del headers[key]
            auth = Auth(type="bearer", token=FromEnv(env_name(server.id, "token")))
            to_set.append(env_name(server.id, "token"))
    return msgspec.structs.replace(
        server,
        auth=auth,
        extra_headers=mask_values(headers, server.id, to_set),
        env=mask_values(server.env, "", to_set),
        command=mask_arguments(server.command, server.id, to_set),
        url=mask_address(server.url, server.id, to_set),
    )


def _is_clew(server: McpServerConfig) -> bool:
    program = Path(server.command[0]).stem if server.command else ""
    return program == "clew" and "mcp" in server.command[1:2]


def _same(one: McpServerConfig, other: McpServerConfig) -> bool:
    return one.command == other.command and one.url == other.url and one.cwd == other.cwd and one.env == other.env
