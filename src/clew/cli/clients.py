"""How each coding agent is told about an MCP server: where its settings are, and how an entry is written into them.

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

ENTRY = "clew"


@dataclass(frozen=True, slots=True)
class Launch:
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
    add: Callable[[str, Launch], str]
    is_global: bool = False

    def path(self, project: Path, home: Path) -> Path:
        return (home if self.is_global else project) / self.place


def _in_json(key: str, build: Callable[[Launch], Mapping[str, Any]]) -> Callable[[str, Launch], str]:
    def add(text: str, launch: Launch) -> str:
        settings = _read_json(text)
        entries = settings.setdefault(key, {})
        if not isinstance(entries, dict):
            raise ConfigError(f"{key!r} is not an object there")
        entries[ENTRY] = dict(build(launch))
        return json.dumps(settings, indent=_indent_of(text), ensure_ascii=False) + "\n"

    return add


def _read_json(text: str) -> dict[str, Any]:
    """Raises ConfigError for what cannot be written back as it was: comments would be lost."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "it may hold comments, which would be lost"
        raise ConfigError(f"not plain JSON at line {error.lineno} ({hint}): add the entry by hand") from None
    if not isinstance(found, dict):
        raise ConfigError("not a JSON object: add the entry by hand")
    return found


def _indent_of(text: str) -> int | str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return 2 if found is None else "\t" if found.group(1).startswith("\t") else len(found.group(1))


def _plain(launch: Launch) -> Mapping[str, Any]:
    return {"command": launch.command, "args": list(launch.args)}


def _stdio(launch: Launch) -> Mapping[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _zed(launch: Launch) -> Mapping[str, Any]:
    return {"source": "custom", **_plain(launch), "env": {}}


def _in_toml(text: str, launch: Launch) -> str:
    """A table at the end, or in the place of the one that is there."""
    head = f"[mcp_servers.{ENTRY}]"
    table = f"{head}\ncommand = {json.dumps(launch.command)}\nargs = {json.dumps(list(launch.args))}\n"
    try:
        known = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML ({error}): add the entry by hand") from None
    if ENTRY not in known.get("mcp_servers", {}):
        return f"{text.rstrip()}\n\n{table}".lstrip()
    found = re.search(rf"^{re.escape(head)}[ \t]*\n(?:(?!\[).*\n?)*", text, re.MULTILINE)
    if found is None:
        raise ConfigError(f"its entry mcp_servers.{ENTRY} is not a table of its own: change it by hand")
    return text[: found.start()] + table + ("\n" if text[found.end() :] else "") + text[found.end() :]


def _in_goose(text: str, launch: Launch) -> str:
    # only this client writes YAML
    import yaml

    fields = {"enabled": True, "type": "stdio", "name": ENTRY, "cmd": launch.command, "args": list(launch.args)}
    lines = [f"  {ENTRY}:", *(f"    {key}: {json.dumps(value)}" for key, value in fields.items()), "    timeout: 300"]
    try:
        known = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        raise ConfigError("not YAML: add the entry by hand") from None
    if not isinstance(known, dict) or not isinstance(known.get("extensions") or {}, dict):
        raise ConfigError("its extensions are not a mapping: add the entry by hand")
    if ENTRY in (known.get("extensions") or {}):
        found = re.search(rf"^  {ENTRY}:[ \t]*\n(?:    .*\n?)*", text, re.MULTILINE)
        if found is None:
            raise ConfigError(f"its entry {ENTRY} is written in an unusual way: change it by hand")
        return text[: found.start()] + "\n".join(lines) + "\n" + text[found.end() :]
    head = re.search(r"^extensions:[ \t]*\n", text, re.MULTILINE)
    if head is None and "extensions" in known:
        raise ConfigError("its extensions are written on one line: add the entry by hand")
    if head is None:
        return f"{text.rstrip()}\nextensions:\n".lstrip() + "\n".join(lines) + "\n"
    return text[: head.end()] + "\n".join(lines) + "\n" + text[head.end() :]


CLIENTS: Sequence[ClientFile] = (
    ClientFile("claude-code", "Claude Code", ".mcp.json", _in_json("mcpServers", _stdio)),
    ClientFile("cursor", "Cursor", ".cursor/mcp.json", _in_json("mcpServers", _plain)),
    ClientFile("zed", "Zed", ".zed/settings.json", _in_json("context_servers", _zed)),
    ClientFile("vscode", "VS Code", ".vscode/mcp.json", _in_json("servers", _stdio)),
    ClientFile("gemini", "Gemini CLI", ".gemini/settings.json", _in_json("mcpServers", _plain)),
    ClientFile("goose", "goose", ".config/goose/config.yaml", _in_goose, is_global=True),
    ClientFile("codex", "Codex", ".codex/config.toml", _in_toml, is_global=True),
)
