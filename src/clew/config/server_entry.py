"""The entry of a foreign MCP server, as `.clew/mcp.json` and `[[mcp.servers]]` write it."""

from __future__ import annotations

from typing import Any

import msgspec


class Features(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The client features that a server may use."""

    completions: bool = False
    logging: bool = False
    sampling: bool = False


class Filter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The enabled tools of a server: those in `allow` (by default all), without those in `deny`."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def admits(self, name: str) -> bool:
        return name not in self.deny and (not self.allow or name in self.allow)


class McpServerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of mcp.json, without its name."""

    type: str = ""
    url: str = ""
    command: str | list[str] = ""
    args: list[str] = []
    env: dict[str, Any] = {}
    cwd: str = ""
    headers: dict[str, Any] = {}
    name: str = ""
    auth: dict[str, Any] = {}
    features: Features = Features()
    enabled: bool = True
    disabled: bool = False
    tools: Filter = Filter()
    scopes: tuple[str, ...] = ()
    idle_seconds: float = 300.0
    timeout_seconds: float = 60.0


class ConfiguredServer(McpServerEntry, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One table `[[mcp.servers]]`: an entry with the name of its domain."""

    id: str

    def __repr__(self) -> str:
        """Arguments, environment and headers may hold secrets, so they are not shown."""
        return f"ConfiguredServer({self.id!r})"
