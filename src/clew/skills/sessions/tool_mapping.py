"""The tools of an agent as a mapping: the meta-tools and the exposed tools, each looked up on access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import cached_property

from clew.skills.manifest import Toolset
from clew.skills.registry import ToolRegistry
from clew.skills.sessions.diagnosis import Diagnostics, diagnose
from clew.skills.sessions.session import SessionState
from clew.tools.tool import Tool


class ExposedTools(Mapping[str, Tool]):
    """The tools of an agent at one moment, built lazily.

    A tool is found by its name and as `toolset.tool`. If two exposed tools have the same name, the tool of the toolset
    that was loaded last wins. Tools given for this call take precedence over registered ones. Tools registered under a
    name that is no toolset of the manifest serve every toolset that lists them.
    """

    def __init__(
        self,
        meta: Mapping[str, Tool],
        loaded: Sequence[str],
        toolsets: Mapping[str, Toolset],
        registry: ToolRegistry,
        provided: Mapping[str, Tool] | None = None,
    ) -> None:
        self._meta = meta
        self._loaded = loaded
        self._toolsets = toolsets
        self._registry = registry
        self._provided = provided or {}

    def __getitem__(self, name: str) -> Tool:
        found = self._find_qualified(name) or self._find_short(name) or self._meta.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        """The meta-tools, then every exposed name that has an implementation, each once."""
        yield from self._meta
        yield from (name for name in self._homes if name not in self._meta and self._find_short(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    async def stream(self) -> AsyncIterator[tuple[str, Tool]]:
        """Yield name and tool, each looked up in turn."""
        for name in self:
            yield name, self[name]

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """The provided, exposed, included and filtered tools with their reasons, computed at the first access."""
        included = [name for name in self if name not in self._meta]
        provided = dict.fromkeys((*self._provided, *self._registry.known))
        return diagnose(list(provided), list(self._homes), included, self._loaded, self._toolsets)

    @cached_property
    def _homes(self) -> dict[str, list[str]]:
        """Each exposed name with the loaded toolsets that list it, in the order of loading."""
        homes: dict[str, list[str]] = {}
        for toolset in self._loaded:
            for name in self._toolsets[toolset].tools:
                homes.setdefault(name, []).append(toolset)
        return homes

    def _find_short(self, name: str) -> Tool | None:
        homes = reversed(self._homes.get(name, ()))
        return next((found for toolset in homes if (found := self._implementation(toolset, name)) is not None), None)

    def _find_qualified(self, name: str) -> Tool | None:
        for at in (at for at, letter in enumerate(name) if letter == "."):
            toolset, short = name[:at], name[at + 1 :]
            if toolset in self._homes.get(short, ()):
                return self._implementation(toolset, short)
        return None

    def _implementation(self, toolset: str, name: str) -> Tool | None:
        given = self._provided.get(f"{toolset}.{name}") or self._provided.get(name)
        return given or (self._registry.get_tools(toolset) or {}).get(name) or self._find_unassigned(name)

    def _find_unassigned(self, name: str) -> Tool | None:
        for owner in reversed(self._registry.toolsets_of(name)):
            if owner not in self._toolsets:
                return (self._registry.get_tools(owner) or {})[name]
        return None


def merge_tool_sets(meta: Mapping[str, Tool], session: SessionState, registry: ToolRegistry | None) -> ExposedTools:
    """Return the meta-tools and the registered tools that a session exposes. Toolsets that are not registered add
    nothing. Reserved names cannot be registered; for other names in `meta`, the domain tool wins."""
    registry = registry or ToolRegistry()
    exposed = set(session.exposed_domain_tools)
    toolsets = {
        name: Toolset(name=name, description="", tools=tuple(tool for tool in tools if tool in exposed))
        for name in session.loaded_toolsets
        if (tools := registry.get_tools(name)) is not None
    }
    return ExposedTools(meta, tuple(toolsets), toolsets, registry)
