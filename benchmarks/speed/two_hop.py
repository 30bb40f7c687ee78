"""A set of questions that words alone do not answer, and how much of it a graph walk finds that flat search does not.

It is made by rule from the real conversations of `memory_dev`: a question is in the set when an answer to it shares no
word with it (names of the speakers aside), but a turn at most two before or after the answer shares two or more. Both
ways of building a context get the same tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import Stemmer

from clew.access import Principal
from clew.clock import SystemClock
from clew.context.builder import ContextBuilder
from clew.context.definition import AgentDefinition, definition_of
from clew.context.edges import EdgeBuilder
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import Flow, shipped_flow
from clew.trail.search.text import STOP, split_text
from clew.trail.store import Trail

TOKENS = 1_000
"""The token budget of both kinds of contexts."""
NEAR = 2
SHARED = 2
TURN = "conversation.turn.v1"
_stem = Stemmer.Stemmer("english").stemWord


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with the turns that answer it and share nothing with it."""

    text: str
    conversation: str
    answers: tuple[str, ...]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    conversation: str
    session: str
    speaker: str
    text: str


def read_turns(data: Path) -> list[Turn]:
    """All turns in order."""
    return [_turn(row) for row in _rows(data / "memory_dev_corpus.jsonl")]


def _turn(row: Mapping[str, Any]) -> Turn:
    session = row["id"].rpartition(":")[0].replace(":", "-")
    return Turn(id=row["id"], conversation=row["set"], session=session, speaker=row["name"], text=row["description"])


def find_questions(data: Path, turns: Sequence[Turn]) -> list[Question]:
    """The questions of the set, in their order."""
    words = {turn.id: words_of(turn.text) for turn in turns}
    names = {turn.conversation: set[str]() for turn in turns}
    near: dict[str, list[str]] = {}
    for at, turn in enumerate(turns):
        names[turn.conversation] |= words_of(turn.speaker.split()[0])
        around = turns[max(0, at - NEAR) : at + NEAR + 1]
        near[turn.id] = [each.id for each in around if each.session == turn.session and each.id != turn.id]
    found = []
    for row in _rows(data / "memory_dev.jsonl"):
        asked = words_of(row["query"]) - names[row["set"]]
        answers = tuple(
            id
            for id in row["relevant"]
            if id in words and not words[id] & asked and any(len(words[each] & asked) >= SHARED for each in near[id])
        )
        if answers:
            found.append(Question(text=row["query"], conversation=row["set"], answers=answers))
    return found


def words_of(text: str) -> set[str]:
    """The stems of the words that mean something."""
    return {_stem(word) for word in split_text(text).parts if word not in STOP and len(word) > 2}


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


async def measure(
    data: Path, scratch: Path, *, tokens: int = TOKENS, conversations: int | None = None, embedder: str = "wordllama"
) -> dict[str, float]:
    """The recall of both ways in per cent, the lead of the walk in points, and the number of questions."""
    turns = read_turns(data)
    wanted = list(dict.fromkeys(turn.conversation for turn in turns))[:conversations]
    kept = [turn for turn in turns if turn.conversation in wanted]
    questions = [each for each in find_questions(data, turns) if each.conversation in wanted]
    trail = await open_trail(f"sqlite://{scratch}/two_hop.db", embedder=open_embedder(embedder))
    try:
        ids = await _load(trail, kept)
        flat, graph = await _compare(trail, questions, ids, tokens)
    finally:
        await trail.close()
    return {
        "questions": len(questions),
        "tokens": tokens,
        "flat recall %": round(100 * flat, 1),
        "graph recall %": round(100 * graph, 1),
        "points ahead": round(100 * (graph - flat), 1),
    }


async def _load(trail: Trail, turns: Sequence[Turn]) -> dict[str, str]:
    """Write the turns, each conversation for an owner of its own, and link them; the ids by turn."""
    flow = shipped_flow(read_pieces())
    ids: dict[str, str] = {}
    for conversation in dict.fromkeys(turn.conversation for turn in turns):
        by = Principal(owner_id=conversation)
        await bootstrap(trail, by)
        drafts = [
            Draft(
                title=turn.speaker,
                schema_name=TURN,
                context={"text": turn.text},
                tags=(f"session:{turn.session}",),
                idempotency_key=turn.id,
            )
            for turn in turns
            if turn.conversation == conversation
        ]
        written = await trail.records.create_many(drafts, by=by)
        ids |= {str(draft.idempotency_key): each.id for draft, each in zip(drafts, written, strict=True)}
        edges = EdgeBuilder(trail, flow, by=by)
        for each in written:
            await edges.link(each)
    return ids


async def _compare(
    trail: Trail, questions: Sequence[Question], ids: Mapping[str, str], tokens: int
) -> tuple[float, float]:
    """The mean recall by search alone, and by search and walk."""
    flow = shipped_flow(read_pieces())
    builder = ContextBuilder(trail, None, flow, SystemClock())
    recalls: dict[str, list[float]] = {"flat": [], "graph": []}
    for question in questions:
        by = Principal(owner_id=question.conversation)
        context = {"message": question.text, "content": question.text, "source": "benchmark"}
        asked = await trail.records.create(Draft(title="Question", schema_name=flow.message, context=context), by=by)
        for name, agent in agents(flow, tokens).items():
            shown = {item.id for item in (await builder.build(asked, agent, by=by)).receipt.items}
            found = sum(ids[id] in shown for id in question.answers)
            recalls[name].append(found / len(question.answers))
        await trail.records.delete(asked.id, by=by)
    return tuple(sum(each) / max(1, len(each)) for each in recalls.values())  # type: ignore[return-value]  # two


def agents(flow: Flow, tokens: int) -> dict[str, AgentDefinition]:
    """Two agents that differ in how they look: by search alone, and by search and walk."""
    shares = {"knowledge": 1.0}
    flat = {"semantic": {"schemas": [TURN], "limit": 100}, "graph": {"enabled": False}}
    graph = {"semantic": {"schemas": [TURN], "limit": 10}, "graph": {"limit": 100}}
    return {
        name: definition_of({"agent_id": name, "context_sources": {**sources, "tokens": tokens, "shares": shares}})
        for name, sources in {"flat": flat, "graph": graph}.items()
    }
