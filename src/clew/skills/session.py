"""What follows from an exposure set: the skills, toolsets and tools that an agent has. All of it is derived."""

from __future__ import annotations

import msgspec


class SessionState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an agent has in a conversation: a copy, in the order in which it came to be."""

    agent_name: str
    discovered_skills: tuple[str, ...] = ()
    loaded_toolsets: tuple[str, ...] = ()
    exposed_domain_tools: tuple[str, ...] = ()
