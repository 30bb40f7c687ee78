"""How coding agents write the entry of an MCP server in their settings: JSON, TOML or YAML.

Pure text to text. A change affects only the entry; if that is not possible, ConfigError is raised.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from clew.errors import ConfigError
from clew.jsonc import read_object, remove_entry, set_entry

_UNUSUAL = "its entries are written in an unusual way: change the entry by hand"


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """The command with which a client starts the server."""

    command: str
    args: tuple[str, ...]


class SettingsFormat(Protocol):
    """The settings of one client as text. All methods raise ConfigError for a text that they cannot read or change."""

    def entries(self, text: str) -> dict[str, ServerLaunch | None]:
        """The servers by name; None for one that is not a program."""
        ...

    def add(self, text: str, name: str, launch: ServerLaunch) -> str:
        """The text with this entry, added or replaced. Keys that the user added to the entry stay."""
        ...

    def remove(self, text: str, name: str) -> str:
        """The text without this entry."""
        ...


def plain_entry(launch: ServerLaunch) -> dict[str, Any]:
    return {"command": launch.command, "args": list(launch.args)}


def stdio_entry(launch: ServerLaunch) -> dict[str, Any]:
    return {"type": "stdio", **plain_entry(launch)}


def zed_entry(launch: ServerLaunch) -> dict[str, Any]:
    return {"source": "custom", **plain_entry(launch), "env": {}}


def opencode_entry(launch: ServerLaunch) -> dict[str, Any]:
    return {"type": "local", "command": [launch.command, *launch.args], "enabled": True}


def goose_entry(name: str, launch: ServerLaunch) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "cmd": launch.command,
        "args": list(launch.args),
        "timeout": 300,
    }


@dataclass(frozen=True, slots=True)
class JsonSettings:
    """An object of servers under `key`, in JSON with comments."""

    key: str
    build: Callable[[ServerLaunch], Mapping[str, Any]]

    def entries(self, text: str) -> dict[str, ServerLaunch | None]:
        return _launches(read_object(text).get(self.key))

    def add(self, text: str, name: str, launch: ServerLaunch) -> str:
        known = read_object(text).get(self.key, {})
        present = known.get(name) if isinstance(known, dict) else None
        entry = _with_own_keys(present, self.build(launch))
        return text if present == entry else set_entry(text, self.key, name, entry)

    def remove(self, text: str, name: str) -> str:
        return remove_entry(text, self.key, name)


@dataclass(frozen=True, slots=True)
class TomlSettings:
    """A table of servers under `key`, in TOML."""

    key: str

    def entries(self, text: str) -> dict[str, ServerLaunch | None]:
        return _launches(_read_toml(text).get(self.key))

    def add(self, text: str, name: str, launch: ServerLaunch) -> str:
        head, entry = self._head(name), plain_entry(launch)
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
        known = _read_toml(text)
        present = known.setdefault(self.key, {})
        if not isinstance(present, dict) or not isinstance(present.get(name, {}), dict):
            raise ConfigError(f"its key {self.key} is not a table: add the entry by hand")
        own = {key: value for key, value in present.get(name, {}).items() if key not in entry}
        plain = {key: value for key, value in own.items() if not isinstance(value, dict)}
        if not all(isinstance(value, str | bool | int | float | list) for value in plain.values()):
            raise ConfigError(_UNUSUAL)
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
        entry |= own
        if present.get(name) == entry:
            return text
        table = "\n".join((head, *lines)) + "\n"
        if name not in present:
            after = _append(text, table)
        else:
            after = re.sub(_toml_table(head), lambda _: table, text, count=1, flags=re.MULTILINE)
        return _checked(after, {**known, self.key: {**present, name: entry}}, _read_toml)

    def remove(self, text: str, name: str) -> str:
        known = _read_toml(text)
        present = known.get(self.key)
        if not isinstance(present, dict) or name not in present:
            raise ConfigError(f"{name!r} is not there")
        heads = [self._head(name), *(f"[{self.key}.{name}.{key}]" for key in present[name])]
        after = text
        for head in heads:
            after = re.sub(rf"\n?{_toml_table(head)}", "", after, count=1, flags=re.MULTILINE)
        left = {other: entry for other, entry in present.items() if other != name}
        wanted = {key: value for key, value in known.items() if key != self.key} | ({self.key: left} if left else {})
        return _checked(after, wanted, _read_toml)

    def _head(self, name: str) -> str:
        return f"[{self.key}.{name}]"


@dataclass(frozen=True, slots=True)
class YamlSettings:
    """A mapping of servers under `key`, in YAML."""

    key: str

    def entries(self, text: str) -> dict[str, ServerLaunch | None]:
        return _launches(_read_yaml(text).get(self.key))

    def add(self, text: str, name: str, launch: ServerLaunch) -> str:
        fresh, known = goose_entry(name, launch), _read_yaml(text)
        present = known.get(self.key) or {}
        if not isinstance(present, dict):
            raise ConfigError(f"its key {self.key} is not a mapping: add the entry by hand")
        own = present.get(name)
        entry = {**fresh, **own, "cmd": fresh["cmd"], "args": fresh["args"]} if isinstance(own, dict) else fresh
        if present.get(name) == entry:
            return text
        text = text if text.endswith("\n") else f"{text}\n"
        head = re.search(rf"^{self.key}:[ \t]*\n(?:[ \t]*(?:#.*)?\n)*?(?=( *)\S|\Z)", text, re.MULTILINE)
        step = (head.group(1) if head is not None else "") or "  "
        lines = (f"{step * 2}{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())
        block = "\n".join((f"{step}{name}:", *lines)) + "\n"
        if name in present:
            after = re.sub(_yaml_block(name), lambda _: block, text, count=1, flags=re.MULTILINE)
        elif head is not None:
            after = text[: head.end()] + block + text[head.end() :]
        elif self.key in known:
            raise ConfigError(f"its {self.key} are written in an unusual way: add the entry by hand")
        else:
            after = f"{text.lstrip() and text}{self.key}:\n{block}"
        return _checked(after, {**known, self.key: {**present, name: entry}}, _read_yaml)

    def remove(self, text: str, name: str) -> str:
        known = _read_yaml(text)
        present = known.get(self.key)
        if not isinstance(present, dict) or name not in present:
            raise ConfigError(f"{name!r} is not there")
        after = re.sub(_yaml_block(name), "", text, count=1, flags=re.MULTILINE)
        left = {other: entry for other, entry in present.items() if other != name}
        return _checked(after, {**known, self.key: left or None}, _read_yaml)


def _launches(entries: Any) -> dict[str, ServerLaunch | None]:
    return {str(name): _launch(entry) for name, entry in entries.items()} if isinstance(entries, dict) else {}


def _launch(entry: Any) -> ServerLaunch | None:
    if not isinstance(entry, dict):
        return None
    command, args = entry.get("command", entry.get("cmd")), entry.get("args", [])
    if isinstance(command, list) and command:
        command, args = command[0], command[1:]
    if not isinstance(command, str) or not isinstance(args, list):
        return None
    return ServerLaunch(command, tuple(map(str, args)))


def _with_own_keys(present: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with the keys that its user added, such as variables."""
    own = present if isinstance(present, dict) else {}
    return {**own, **{key: value for key, value in entry.items() if key != "env" or key not in own}}


def _toml_table(head: str) -> str:
    """A pattern of a table up to its last setting: comments below that may be about the next table."""
    return rf"^{re.escape(head)}[ \t]*\n(?:(?:(?![ \t]*\[).*\n)*(?![ \t]*(?:\[|#|\n|\Z)).*(?:\n|\Z))?"


def _yaml_block(name: str) -> str:
    """A pattern of an indented entry with all lines that belong to it."""
    return rf"^( +){re.escape(name)}:[ \t]*\n(?:\1 .*\n?)*"


def _append(text: str, table: str) -> str:
    """The text with a table at its end, behind an empty line."""
    if not text.strip():
        return table
    ended = text if text.endswith("\n") else f"{text}\n"
    return f"{ended}{table}" if ended.endswith("\n\n") else f"{ended}\n{table}"


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"not TOML ({error}): add the entry by hand") from None


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


def _checked(text: str, wanted: dict[str, Any], read: Callable[[str], Any]) -> str:
    """Return the changed text if it parses to `wanted`. Otherwise raise ConfigError."""
    try:
        if read(text) == wanted:
            return text
    except ConfigError:
        pass
    raise ConfigError(_UNUSUAL)
