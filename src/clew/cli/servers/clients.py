"""The settings files of coding agents, and the entry of an MCP server in each.

Pure text to text; `connect` reads and writes the files.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.jsonc import read_object, set_entry

ENTRY = "clew"


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """How the server is started."""

    command: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientFile:
    """One coding agent. `place` is below the project, or below the home folder where `is_global`; `add` puts the entry
    into the text of the file."""

    name: str
    title: str
    place: str
    add: Callable[[str, ServerLaunch], str]
    is_global: bool = False

    def path(self, project: Path, home: Path) -> Path:
        return (home if self.is_global else project) / self.place


def _in_json(key: str, build: Callable[[ServerLaunch], Mapping[str, Any]]) -> Callable[[str, ServerLaunch], str]:
    def add(text: str, launch: ServerLaunch) -> str:
        entries = read_object(text).get(key, {})
        present = entries.get(ENTRY) if isinstance(entries, dict) else None
        entry = _kept(present, build(launch))
        return text if present == entry else set_entry(text, key, ENTRY, entry)

    return add


def _kept(present: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with what its user added to it, such as variables."""
    own = present if isinstance(present, dict) else {}
    return {**own, **{key: value for key, value in entry.items() if key != "env" or key not in own}}


def _plain(launch: ServerLaunch) -> Mapping[str, Any]:
    return {"command": launch.command, "args": list(launch.args)}


def _stdio(launch: ServerLaunch) -> Mapping[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _zed(launch: ServerLaunch) -> Mapping[str, Any]:
    return {"source": "custom", **_plain(launch), "env": {}}


def _in_toml(text: str, launch: ServerLaunch) -> str:
    """A table at the end, or in the place of the one that is there."""
    head, entry = f"[mcp_servers.{ENTRY}]", dict(_plain(launch))
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    known = _read_toml(text)
    present = known.setdefault("mcp_servers", {})
    if not isinstance(present, dict) or not isinstance(present.get(ENTRY, {}), dict):
        raise ConfigError("its mcp_servers are not tables: add the entry by hand")
    entry |= {key: value for key, value in present.get(ENTRY, {}).items() if isinstance(value, dict)}
    if present.get(ENTRY) == entry:
        return text
    table = "\n".join((head, *lines)) + "\n"
    if ENTRY not in present:
        after = _appended(text, table)
    else:
        # up to its last setting: comments below that may be about what follows
        found = rf"^{re.escape(head)}[ \t]*\n(?:(?:(?![ \t]*\[).*\n)*(?![ \t]*(?:\[|#|\n|\Z)).*(?:\n|\Z))?"
        after = re.sub(found, lambda _: table, text, count=1, flags=re.MULTILINE)
    return _unharmed(after, {**known, "mcp_servers": {**present, ENTRY: entry}}, _read_toml)


def _appended(text: str, table: str) -> str:
    """A table at the end of a text, with an empty line between them."""
    if not text.strip():
        return table
    ended = text if text.endswith("\n") else f"{text}\n"
    return f"{ended}{table}" if ended.endswith("\n\n") else f"{ended}\n{table}"


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"not TOML ({error}): add the entry by hand") from None


def _unharmed(text: str, wanted: dict[str, Any], read: Callable[[str], Any]) -> str:
    """The changed text, where it says what is wanted and nothing else. Raises ConfigError."""
    try:
        if read(text) == wanted:
            return text
    except ConfigError:
        pass
    raise ConfigError("its entries are written in an unusual way: add the entry by hand")


def _in_goose(text: str, launch: ServerLaunch) -> str:
    fields = {"enabled": True, "type": "stdio", "name": ENTRY, "cmd": launch.command, "args": list(launch.args)}
    entry = {**fields, "timeout": 300}
    known = _read_yaml(text)
    present = known.get("extensions") or {}
    if not isinstance(present, dict):
        raise ConfigError("its extensions are not a mapping: add the entry by hand")
    if present.get(ENTRY) == entry:
        return text
    text = text if text.endswith("\n") else f"{text}\n"
    head = re.search(r"^extensions:[ \t]*\n(?:[ \t]*(?:#.*)?\n)*?(?=( *)\S|\Z)", text, re.MULTILINE)
    step = (head.group(1) if head is not None else "") or "  "
    lines = [
        f"{step}{ENTRY}:",
        *(f"{step * 2}{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()),
    ]
    block = "\n".join(lines) + "\n"
    if ENTRY in present:
        after = re.sub(rf"^{step}{ENTRY}:[ \t]*\n(?:{step} .*\n?)*", lambda _: block, text, count=1, flags=re.MULTILINE)
    elif head is not None:
        after = text[: head.end()] + block + text[head.end() :]
    elif "extensions" in known:
        raise ConfigError("its extensions are written in an unusual way: add the entry by hand")
    else:
        after = f"{text.lstrip() and text}extensions:\n{block}"
    return _unharmed(after, {**known, "extensions": {**present, ENTRY: entry}}, _read_yaml)


def _read_yaml(text: str) -> dict[str, Any]:
    # only goose writes YAML
    import yaml

    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError, ValueError):
        raise ConfigError("not YAML: add the entry by hand") from None
    if not isinstance(found, dict):
        raise ConfigError("not a mapping: add the entry by hand")
    return found


CLIENTS: Sequence[ClientFile] = (
    ClientFile("claude-code", "Claude Code", ".mcp.json", _in_json("mcpServers", _stdio)),
    ClientFile("cursor", "Cursor", ".cursor/mcp.json", _in_json("mcpServers", _plain)),
    ClientFile("zed", "Zed", ".zed/settings.json", _in_json("context_servers", _zed)),
    ClientFile("vscode", "VS Code", ".vscode/mcp.json", _in_json("servers", _stdio)),
    ClientFile("gemini", "Gemini CLI", ".gemini/settings.json", _in_json("mcpServers", _plain)),
    ClientFile("goose", "goose", ".config/goose/config.yaml", _in_goose, is_global=True),
    ClientFile("codex", "Codex", ".codex/config.toml", _in_toml, is_global=True),
)
