"""Diagnosis of registered tools: those that an agent has, those that were filtered out with the reason, and those
without an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from clew.skills.manifest import Toolset

NOT_LOADED = "toolset not loaded"
NOT_LISTED = "no toolset lists it"
ELSEWHERE = "registered in another toolset than the loaded one that lists it"


class FilteredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A provided tool that was filtered out, and the toolsets that list it."""

    name: str
    reason: str
    toolsets: tuple[str, ...] = ()


class Diagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """The diagnosis of each tool, by its name or `toolset.tool`. `missing` tools are exposed without an implementation;
    `unexpected` tools were provided and are in no toolset."""

    provided: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    filtered: tuple[FilteredTool, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


class ToolLocation(NamedTuple):
    """A tool's own name, and the toolsets that list it."""

    tool: str
    toolsets: tuple[str, ...]


NOWHERE = ToolLocation("", ())


def diagnose(
    provided: Sequence[str],
    exposed: Sequence[str],
    included: Sequence[str],
    loaded: Sequence[str],
    toolsets: Mapping[str, Toolset],
) -> Diagnostics:
    """Classify the tools. Every provided name is included or filtered, every exposed one is included or missing."""
    homes, here, open_ones = list_homes(toolsets), set(included), set(loaded)
    filtered = [
        FilteredTool(name=name, reason=reason, toolsets=homes.get(name, NOWHERE).toolsets)
        for name in provided
        if (reason := _reason(homes.get(name, NOWHERE), open_ones, here))
    ]
    return Diagnostics(
        provided=tuple(provided),
        exposed=tuple(exposed),
        included=tuple(included),
        filtered=tuple(filtered),
        missing=tuple(name for name in exposed if name not in here),
        unexpected=tuple(name for name in provided if name not in homes),
    )


def list_homes(toolsets: Mapping[str, Toolset]) -> dict[str, ToolLocation]:
    """Return each listed tool by its name and as `toolset.tool`. If both are equal, the qualified name wins."""
    listing: dict[str, list[str]] = {}
    for toolset, found in toolsets.items():
        for tool in dict.fromkeys(found.tools):
            listing.setdefault(tool, []).append(toolset)
    homes = {tool: ToolLocation(tool, tuple(names)) for tool, names in listing.items()}
    qualified = {f"{name}.{tool}": ToolLocation(tool, (name,)) for tool, names in listing.items() for name in names}
    return {**homes, **qualified}


def _reason(home: ToolLocation, loaded: AbstractSet[str], included: AbstractSet[str]) -> str:
    """Return the reason why a tool is filtered out; empty if it is not."""
    if not home.toolsets:
        return NOT_LISTED
    if not any(name in loaded for name in home.toolsets):
        return NOT_LOADED
    return "" if home.tool in included else ELSEWHERE
