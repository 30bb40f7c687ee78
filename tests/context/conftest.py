"""Fixtures for tests of contexts: a trail after setup, and short functions to write on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.context.builder import ContextBuilder
from clew.context.definition import AgentDefinition, definition_of
from clew.context.edges import EdgeBuilder
from clew.llm.embedders import HashEmbedder
from clew.trail import open_trail
from clew.trail.bootstrap import BootstrapPiece, bootstrap, read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.edge import Edge
from clew.trail.model.flow import Flow, shipped_flow
from clew.trail.store import Trail
from tests.handlers import until


def _is_definition(piece: BootstrapPiece) -> bool:
    return piece.key.startswith(("schema/", "system/"))


class Place:
    """A trail with its owner and its handlers. Each write is a second after the one before."""

    def __init__(self, trail: Trail, me: Principal, clock: ManualClock) -> None:
        self.trail = trail
        self.me = me
        self.clock = clock
        self.flow: Flow = shipped_flow(read_pieces())
        self.edges = EdgeBuilder(trail, self.flow, by=me)
        self.builder = ContextBuilder(trail, None, self.flow, clock)

    async def write(self, text: str, *, link: bool = True, **given: Any) -> Breadcrumb:
        """A note with a text or other fields, linked as by the handler."""
        self.clock.advance(seconds=1)
        fields = {"title": "A note", "schema_name": "note.v1", "context": {"text": text}} | given
        written = await self.trail.records.create(Draft(**fields), by=self.me)
        if link:
            await self.edges.link(written)
        return written

    async def say(self, text: str, session: str = "s", **given: Any) -> Breadcrumb:
        context = {"message": text, "content": text, "source": "test"}
        tags = (f"session:{session}", *given.pop("tags", ()))
        fields = {"title": "Message", "schema_name": self.flow.message, "context": context, "tags": tags}
        return await self.write(text, **fields, **given)

    async def link(self, source: Breadcrumb, target: Breadcrumb, type: str = "references", weight: float = 1.0) -> None:
        await self.trail.edges.add([Edge(source=source.id, target=target.id, type=type, weight=weight)], by=self.me)


def agent(name: str = "assistant", *, trigger: Any = None, **sources: Any) -> AgentDefinition:
    return definition_of({"agent_id": name, "context_trigger": trigger, "context_sources": sources})


def quiet(**sources: Any) -> AgentDefinition:
    """An agent without sources of its own."""
    off = {"semantic": {"enabled": False}, "session": {"enabled": False}, "graph": {"enabled": False}}
    return agent(**{**off, **sources})


def ids_of(found: Sequence[Any]) -> list[str]:
    return [each.id for each in found]


async def handled_all(place: Place, *names: str) -> None:
    """Return when these handlers have nothing left to do."""
    head = await place.trail.log.head()
    for name in names:
        await until(
            place.trail,
            lambda state: state.cursor >= head and state.pending + state.claimed == 0,
            name,
            place.me,
        )


@pytest.fixture
async def place(tmp_path: Path, clock: ManualClock, me: Principal) -> AsyncIterator[Place]:
    """A trail with vectors and the definitions that come with Clew."""
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, HashEmbedder())
    await bootstrap(trail, me, tuple(filter(_is_definition, read_pieces())))
    yield Place(trail, me, clock)
    await trail.close()
