"""Answers in the words of a model: when they are used, and the treatment of unsupported statements."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from clew.app import App
from clew.knowledge.answering.question import parse_question
from clew.knowledge.answering.resolver import suffices
from clew.knowledge.evidence.conflicts import SourceConflict
from clew.knowledge.evidence.trust import Evidence, EvidenceParts
from clew.knowledge.nodes.kinds import ConflictKind, NodeDomain, NodeType
from clew.knowledge.nodes.node_store import UNVERIFIED, build_node
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from tests.knowledge.doors import ask, opened

EXPLAIN = "explain how backoff works"


@asynccontextmanager
async def opened_with(tmp_path: Path, *said: str) -> AsyncIterator[tuple[App, ScriptedModel]]:
    model = ScriptedModel([ScriptedTurn(user="/(?s).*/", say=each) for each in said])
    async with opened(tmp_path, model="small") as app:
        app.knowledge(open_models(app.config, {}).with_model("small", model))
        await app.knowledge().gather()
        yield app, model


@pytest.mark.req("SYL-89")
async def test_verified_words_are_cached_beside_their_citations(tmp_path: Path) -> None:
    async with opened_with(tmp_path, "The backoff is in src/retry.py [1].") as (app, model):
        first, again = await ask(app, EXPLAIN), await ask(app, EXPLAIN)
        cached = await app.knowledge().resolver.resolve(EXPLAIN, by=app.me, session_id=app.me.session or "")
    assert first.text == again.text == "The backoff is in src/retry.py [1]."
    assert first.known[0].path == "src/retry.py"
    assert (cached.layer, cached.tokens, cached.saved_tokens > 0) == ("cache", 0, True)
    assert len(model.requests) == 1


@pytest.mark.req("SYL-89")
async def test_unverified_words_are_marked_and_never_cached(tmp_path: Path) -> None:
    said = "We use Kafka for the backoff [1]. See [9]."
    async with opened_with(tmp_path, said, said) as (app, model):
        answers = [await ask(app, EXPLAIN) for _ in range(2)]
    for answer in answers:
        assert answer.text.startswith(UNVERIFIED)
        assert any("[9]" in note for note in answer.notes)
    assert len(model.requests) == 2


async def test_a_key_reaches_neither_the_model_nor_the_answer(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    async with opened_with(tmp_path, f"The backoff uses {key} [1].") as (app, model):
        (app.knowledge().root / "src/keyed.py").write_text(f'def backoff_key():\n    """Backoff of {key}."""\n')
        await app.knowledge().gather()
        answer = await ask(app, EXPLAIN)
    assert model.requests
    assert key not in str(model.requests)
    assert key not in str(answer)


def evidence(score: float, trust: float) -> Evidence:
    """Evidence of about this quality."""
    rest = score - 0.25 * trust / 100 - 0.25
    parts = EvidenceParts(similarity=min(1.0, rest / 0.35), trust=trust, freshness=1.0, verified=rest > 0.35)
    parts = msgspec.structs.replace(parts, similarity=(rest - (0.15 if parts.verified else 0.0)) / 0.35)
    return Evidence(name="a", content="b", parts=parts)


GOOD, FAIR, DOUBTED = evidence(0.9, 100), evidence(0.7, 100), evidence(0.85, 60)
CONFLICT = SourceConflict(kind=ConflictKind.SEMANTIC, description="a against b")


@pytest.mark.req("SYL-90")
@pytest.mark.parametrize(
    ("question", "chosen", "conflicts", "enough"),
    [
        ("where is backoff", [FAIR], [], True),
        ("where is backoff", [FAIR], [CONFLICT], True),
        ("where is backoff", [], [], False),
        ("how do I deploy", [GOOD, GOOD], [], True),
        ("how do I deploy", [GOOD], [], False),
        ("how do I deploy", [GOOD, FAIR], [], False),
        ("how do I deploy", [GOOD, DOUBTED], [], False),
        ("how do I deploy", [GOOD, GOOD], [CONFLICT], False),
        ("why was jam dropped", [GOOD, GOOD], [], True),
        ("explain the backoff", [GOOD, GOOD], [], False),
        ("what is our caching strategy", [GOOD, GOOD], [], False),
    ],
)
def test_sources_suffice_for_places_and_where_they_are_good_and_agree(
    question: str, chosen: Sequence[Evidence], conflicts: Sequence[SourceConflict], enough: bool
) -> None:
    parsed = parse_question(question, datetime(2026, 11, 16, tzinfo=UTC))
    assert suffices(parsed, chosen, conflicts) is enough


@pytest.mark.req("SYL-78")
async def test_words_are_checked_against_the_notes_of_the_caller_and_not_of_the_owner(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedTurn(user="/(?s).*/", say="We use redis for caching [1].") for _ in range(2)])
    async with opened(tmp_path, model="small", scopes=frozenset({"vault"})) as app:
        app.knowledge(open_models(app.config, {}).with_model("small", model))
        await app.knowledge().gather()
        fields = build_node("Cache", NodeDomain.HISTORY, NodeType.DECISION, "We use memcached for caching.", {})
        await app.trail.records.create(msgspec.structs.replace(fields, scopes=("vault",)), by=app.me)
        outside = msgspec.structs.replace(app.me, scopes=frozenset[str]())
        texts = [(await ask(app, "explain how open_cache works", by)).text for by in (outside, app.me)]
    assert texts[0] == "We use redis for caching [1]."
    assert texts[1].startswith(UNVERIFIED)
