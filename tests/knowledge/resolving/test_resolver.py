"""From a question to an answer: what is kept, what is known, and a model for the rest; always with its sources."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.knowledge.base import Knowledge
from clew.knowledge.evidence.conflicts import Conflict
from clew.knowledge.evidence.trust import Evidence, Parts
from clew.knowledge.resolving.intents import Classified
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.resolver import SCHEMA, suffices
from clew.llm import open_embedder
from clew.llm.requests import Answer, Model, ModelRequest, OnText
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.kinds import ConflictKind
from clew.trail.selector import Selector
from clew.trail.store import Trail
from tests.knowledge.code.repositories import make_repository, write

FILES = {
    "src/retry.py": (
        '"""Trying again."""\n\nclass RetryPolicy:\n    """How often a request is tried again."""\n\n\n'
        'def backoff(attempt):\n    """Seconds to wait before the next attempt."""\n    return 2 ** attempt\n'
    ),
    "src/client.py": "from src.retry import backoff\n\ndef fetch(url):\n    return backoff(1)\n",
}


class Writer:
    """A model that says one thing, and counts how often it is asked."""

    def __init__(self, says: str) -> None:
        self.says = says
        self.asked: list[ModelRequest] = []

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> Answer:
        self.asked.append(request)
        return Answer(content=self.says)


@pytest.fixture
async def shelf_trail(tmp_path: Path, clock: ManualClock, me: Principal) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    await bootstrap(opened, me)
    yield opened
    await opened.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", FILES)


async def known(trail: Trail, clock: ManualClock, me: Principal, root: Path, model: Model | None = None) -> Knowledge:
    from clew.knowledge.base import open_knowledge

    found = open_knowledge(trail, clock, root.parent, root, me, open_embedder("wordllama"), model)
    await found.gather()
    return found


@pytest.fixture
async def knowledge(shelf_trail: Trail, clock: ManualClock, me: Principal, root: Path) -> AsyncIterator[Knowledge]:
    found = await known(shelf_trail, clock, me, root)
    yield found
    await found.close()


@pytest.mark.req("SYL-89")
async def test_an_answer_cites_lines_that_exist_at_the_content_it_names(
    knowledge: Knowledge, me: Principal, root: Path
) -> None:
    answer = await knowledge.resolver.resolve("where is backoff", by=me)
    assert (answer.status, answer.layer, answer.is_verified) == ("ok", "graph", True)
    assert answer.sources
    for source in answer.sources:
        place = re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?@([0-9a-f]{10})", source.place)
        assert place is not None, source.place
        lines = (root / place[1]).read_text().splitlines()
        assert int(place[2]) <= len(lines)
        node = await knowledge.code.symbol(place[1])
        assert (node.content_hash or "").startswith(place[4])
        assert f"[{source.number}] {source.place}" in answer.text
    assert answer.sources[0].place.startswith("src/retry.py:7")


@pytest.mark.req("SYL-89", "SYL-61")
async def test_the_same_in_other_words_costs_nothing_until_the_file_changes(
    knowledge: Knowledge, me: Principal, root: Path
) -> None:
    first = await knowledge.resolver.resolve("where is the backoff function", by=me)
    again = await knowledge.resolver.resolve("which file has backoff?", by=me)
    assert (first.layer, again.layer, again.tokens) == ("graph", "cache", 0)
    assert again.sources == first.sources

    write(root, "src/retry.py", "# moved\n" + FILES["src/retry.py"])
    after = await knowledge.resolver.resolve("where is backoff", by=me)
    assert after.layer == "graph"
    assert after.sources[0].place.startswith("src/retry.py:8")


@pytest.mark.req("SYL-89")
async def test_every_answer_leaves_what_it_was_made_of_on_the_trail(
    knowledge: Knowledge, shelf_trail: Trail, me: Principal
) -> None:
    for _ in range(2):
        await knowledge.resolver.resolve("where is backoff", by=me, session_id="s1")
    page = await shelf_trail.records.list(Selector(schema_name=SCHEMA), by=me, oldest_first=True)
    first, second = (each.context for each in page.items)
    assert [first["layer"], second["layer"]] == ["graph", "cache"]
    assert first["sources"][0]["place"].startswith("src/retry.py:7")
    assert first["latency_ms"] > 0
    assert (first["tokens"], first["intent"], first["subject"]) == (0, "LOCATE", "backoff")
    assert {"layer:cache", "session:s1"} <= set(page.items[1].tags)


async def test_what_nobody_knows_has_no_source_and_says_so(knowledge: Knowledge, me: Principal) -> None:
    answer = await knowledge.resolver.resolve("where is zzqx blorf", by=me)
    assert (answer.status, answer.sources) == ("no_matches", ())
    assert "Nothing that is known" in answer.text


@pytest.mark.parametrize("question", ["", "  \n", "x" * 5_000])
async def test_a_question_that_is_none_is_refused(knowledge: Knowledge, me: Principal, question: str) -> None:
    with pytest.raises(InvalidInput):
        await knowledge.resolver.resolve(question, by=me)


@pytest.mark.req("SYL-89")
async def test_what_a_model_says_and_nothing_bears_out_is_marked_and_never_kept(
    shelf_trail: Trail, clock: ManualClock, me: Principal, root: Path
) -> None:
    writer = Writer("We use Redis for the backoff [1]. See [9].")
    knowledge = await known(shelf_trail, clock, me, root, writer)
    try:
        answers = [await knowledge.resolver.resolve("explain the backoff", by=me) for _ in range(2)]
    finally:
        await knowledge.close()
    assert [each.layer for each in answers] == ["model", "model"]
    assert all(each.text.startswith("[UNVERIFIED]") and not each.is_verified for each in answers)
    assert any("[9]" in warning for warning in answers[0].warnings)
    assert answers[0].tokens > 0
    assert len(writer.asked) == 2


@pytest.mark.req("SYL-89")
async def test_what_the_code_bears_out_is_kept(
    shelf_trail: Trail, clock: ManualClock, me: Principal, root: Path
) -> None:
    writer = Writer("The backoff is in src/retry.py [1].")
    knowledge = await known(shelf_trail, clock, me, root, writer)
    try:
        first = await knowledge.resolver.resolve("explain the backoff", by=me)
        again = await knowledge.resolver.resolve("how does the backoff work", by=me)
    finally:
        await knowledge.close()
    assert (first.layer, first.is_verified) == ("model", True)
    assert (again.layer, again.tokens, again.saved_tokens) == ("cache", 0, first.tokens)
    assert len(writer.asked) == 1


def evidence(score: float, trust: float) -> Evidence:
    """Evidence of about this quality."""
    rest = score - 0.25 * trust / 100 - 0.25
    parts = Parts(similarity=min(1.0, rest / 0.35), trust=trust, freshness=1.0, verified=rest > 0.35)
    parts = msgspec.structs.replace(parts, similarity=(rest - (0.15 if parts.verified else 0.0)) / 0.35)
    return Evidence(name="a", content="b", parts=parts)


GOOD, FAIR, DOUBTED = evidence(0.9, 100), evidence(0.7, 100), evidence(0.85, 60)
CONFLICT = Conflict(kind=ConflictKind.SEMANTIC, description="a against b")


@pytest.mark.req("SYL-90")
@pytest.mark.parametrize(
    ("target", "intent", "chosen", "conflicts", "enough"),
    [
        (Target.LIBRARIAN, Intent.LOCATE, [FAIR], [], True),
        (Target.LIBRARIAN, Intent.LOCATE, [FAIR], [CONFLICT], True),
        (Target.LIBRARIAN, Intent.LOCATE, [], [], False),
        (Target.LIBRARIAN, Intent.GENERAL, [GOOD, GOOD], [], True),
        (Target.LIBRARIAN, Intent.GENERAL, [GOOD], [], False),
        (Target.LIBRARIAN, Intent.GENERAL, [GOOD, FAIR], [], False),
        (Target.LIBRARIAN, Intent.GENERAL, [GOOD, DOUBTED], [], False),
        (Target.LIBRARIAN, Intent.GENERAL, [GOOD, GOOD], [CONFLICT], False),
        (Target.ARCHIVALIST, Intent.HISTORICAL, [GOOD, GOOD], [], True),
        (Target.LIBRARIAN, Intent.EXPLAIN, [GOOD, GOOD], [], False),
        (Target.LIBRARIAN, Intent.PATTERN, [GOOD, GOOD], [], False),
    ],
)
def test_when_sources_are_enough(
    target: Target, intent: Intent, chosen: Sequence[Evidence], conflicts: Sequence[Conflict], enough: bool
) -> None:
    assert suffices(Classified(target=target, intent=intent), chosen, conflicts) is enough


async def test_what_was_just_written_is_known_though_nobody_watches(
    knowledge: Knowledge, me: Principal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 0.0)
    write(root, "src/quux.py", "def frobnicate():\n    return 1\n")
    answer = await knowledge.resolver.resolve("where is frobnicate", by=me)
    assert answer.sources[0].place.startswith("src/quux.py:1")
