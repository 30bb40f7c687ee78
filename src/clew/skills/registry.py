"""The tools of a program by toolset: registered directly, or provided when their toolset is first exposed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from clew.errors import BuildError, InvalidInput, ValidationError
from clew.tools.tool import Tool

META_TOOLS = ("listAvailableSkills", "loadSkill", "loadToolset", "unloadSkill", "unloadToolset")
"""Reserved names, which no other tool may have."""

Given = Iterable[Tool] | Mapping[str, Tool]
Provider = Callable[[], Given]

log = logging.getLogger(__name__)


class NameClash(msgspec.Struct, frozen=True, kw_only=True):
    """A tool name that several toolsets have. Each of the tools is available as `toolset.tool`."""

    tool: str
    toolsets: tuple[str, ...]

    @property
    def message(self) -> str:
        names = ", ".join(f"{toolset}.{self.tool}" for toolset in self.toolsets)
        return (
            f"several toolsets have a tool {self.tool}: {names}; the short name is the tool of the toolset loaded last"
        )


class ToolRegistry:
    """Tools by toolset. Lookups copy nothing and run no tools, so one registry serves every call."""

    def __init__(self) -> None:
        self._shelves: dict[str, _RegisteredToolset] = {}
        self._known = _KnownTools()

    def register(self, toolset: str, tools: Given) -> None:
        """Add tools to a toolset, all or none. If two tools have the same name, the last one wins. The keys of a
        mapping are the names.

        Raises ValidationError for an object that is not a tool, and for a reserved name.
        """
        checked = _checked(toolset, tools)
        self._toolset(toolset).add(checked)

    def register_tool_provider(self, toolset: str, provider: Provider) -> None:
        """Add tools that `provider` returns when the toolset is first exposed. It runs once, and again only if it
        failed. Tools that are registered later take precedence."""
        if not callable(provider):
            raise ValidationError(f"the provider of toolset {toolset!r} cannot be called", toolset=toolset)
        self._toolset(toolset).wait_for(provider)

    def get_tools(self, toolset: str) -> Mapping[str, Tool] | None:
        """Return the tools of a toolset, read-only; None if it was never registered. Raises BuildError if its provider
        fails, ValidationError if the provider returns an object that is not a tool."""
        shelf = self._shelves.get(toolset)
        return None if shelf is None else MappingProxyType(shelf.resolve())

    def get_tools_for_toolsets(self, toolsets: Iterable[str]) -> dict[str, Tool]:
        """Return the tools of all these toolsets. For a duplicate name the last toolset wins. Unknown toolsets are
        ignored."""
        merged: dict[str, Tool] = {}
        for toolset in dict.fromkeys(toolsets):
            merged.update(self.get_tools(toolset) or {})
        return merged

    def list_toolsets(self) -> list[str]:
        """Return the toolsets in the order of their first registration."""
        return list(self._shelves)

    def find(self, name: str) -> Tool | None:
        """Return the tool with a qualified name `toolset.tool`, or a registered tool with a short name. If several
        tools have the same short name, the tool of the last toolset wins. No provider runs for a short name."""
        return self._find_qualified(name) or self._find_short(name)

    def toolsets_of(self, tool: str) -> tuple[str, ...]:
        """Return the toolsets that are known to have a tool of this short name. No provider runs."""
        return tuple(self._known.owners.get(tool, ()))

    def is_waiting(self, toolset: str) -> bool:
        """Whether a toolset has a provider that has not run yet."""
        return toolset in self._shelves and self._shelves[toolset].is_waiting

    @property
    def version(self) -> int:
        """A number that changes whenever the tools or the pending providers change."""
        return self._known.version

    @property
    def known(self) -> tuple[str, ...]:
        """All registered short names. No provider runs."""
        return tuple(self._known.owners)

    @property
    def clashes(self) -> tuple[NameClash, ...]:
        """Tool names that several registered toolsets share."""
        known = self._known.owners.items()
        return tuple(NameClash(tool=tool, toolsets=tuple(owners)) for tool, owners in known if len(owners) > 1)

    def _toolset(self, toolset: str) -> _RegisteredToolset:
        if not isinstance(toolset, str) or not toolset.strip():
            raise ValidationError(f"a toolset needs a name, not {toolset!r}")
        return self._shelves.setdefault(toolset, _RegisteredToolset(toolset, self._known))

    def _find_qualified(self, name: str) -> Tool | None:
        for at, letter in enumerate(name):
            if letter != "." or name[:at] not in self._shelves:
                continue
            if (found := self._shelves[name[:at]].resolve().get(name[at + 1 :])) is not None:
                return found
        return None

    def _find_short(self, name: str) -> Tool | None:
        owners = self._known.owners.get(name)
        return self._shelves[owners[-1]].tools[name] if owners else None


class _KnownTools:
    """Shared by all toolsets: the owners of each tool name, and a version number."""

    def __init__(self) -> None:
        self.owners: dict[str, list[str]] = {}
        self.version = 0


class _RegisteredToolset:
    """One toolset: its tools, and the providers and later tools that are added when it is first used."""

    def __init__(self, name: str, known: _KnownTools) -> None:
        self.tools: dict[str, Tool] = {}
        self._name = name
        self._known = known
        self._waiting: list[Provider] = []

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, tools: dict[str, Tool]) -> None:
        if self._waiting:
            self.wait_for(lambda: tools)
        else:
            self._put(tools)

    def wait_for(self, provider: Provider) -> None:
        self._waiting.append(provider)
        self._known.version += 1

    def resolve(self) -> dict[str, Tool]:
        while self._waiting:
            self._put(_checked(self._name, self._run(self._waiting[0])))
            del self._waiting[0]
        return self.tools

    def _run(self, provider: Provider) -> Given:
        try:
            return provider()
        except Exception as error:  # the provider may raise anything
            raise BuildError(
                f"the provider of toolset {self._name!r} failed: {type(error).__name__}", toolset=self._name
            ) from error

    def _put(self, tools: dict[str, Tool]) -> None:
        for name in tools:
            owners = self._known.owners.setdefault(name, [])
            if self._name not in owners:
                owners.append(self._name)
                if len(owners) > 1:
                    log.warning("%s", NameClash(tool=name, toolsets=tuple(owners)).message)
        self.tools.update(tools)
        self._known.version += 1


def check_tools(given: Any, place: str) -> dict[str, Tool]:
    """Return tools by name; the keys of a mapping are the names. Raises ValidationError that names `place` and the
    problem."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable) and not isinstance(given, str):
        pairs = [(getattr(each, "name", "?"), each) for each in given]
    else:
        raise ValidationError(f"{place}: must be tools, not {type(given).__name__}")
    return {name: _named(name, each, place) for name, each in pairs}


def _checked(toolset: str, given: Any) -> dict[str, Tool]:
    return check_tools(given, f"toolset {toolset!r}")


def _named(name: Any, tool: Any, place: str) -> Tool:
    if not isinstance(tool, Tool):
        raise ValidationError(
            f"{place}: {name!r} is not a tool, but {type(tool).__name__}", hint="Make it with `@tool`", toolName=name
        )
    if name in META_TOOLS:
        raise ValidationError(f"{place}: {name} is the name of a meta-tool", hint="Give it another name", toolName=name)
    if tool.name == name:
        return tool
    try:
        return msgspec.structs.replace(tool, name=name)
    except (InvalidInput, TypeError) as error:
        raise ValidationError(f"{place}: {error}", toolName=name) from None
