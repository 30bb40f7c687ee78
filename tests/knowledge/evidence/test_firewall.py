"""Statements of a model are checked before they are stored (SYL-78, SYL-79)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.knowledge.evidence.conflicts import list_conflicts
from clew.knowledge.evidence.firewall import CodeClaim, Firewall, Ground, disagreeing, examine, find_claims
from clew.knowledge.nodes.kinds import NodeType, SourceKind, Verification
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import Node, NodeFilter, ScoredNode
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.edge import EdgeType
from clew.trail.store import Trail
from tests.knowledge.nodes import CODE, HISTORY, node


class Book:
    """Ground with a few known files and subjects."""

    def __init__(self, files: Sequence[str] = (), known: Sequence[str] = (), against: Sequence[Node] = ()) -> None:
        self.files, self.known, self.against = files, known, against

    async def has(self, ref: str) -> bool:
        return ref in self.files

    async def supports(self, claim: CodeClaim) -> Sequence[str]:
        return ["src/a.py#f"] if claim.subject in self.known else []

    async def contradicts(self, claim: CodeClaim) -> Sequence[Node]:
        return self.against


@pytest.mark.req("SYL-79")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We use Redis for caching.", ("uses", "Redis", "caching")),
        ("and we use `msgspec.json` for records, too", ("uses", "msgspec.json", "records")),
        ("RetryPolicy implements Backoff.Strategy!", ("implements", "RetryPolicy", "Backoff.Strategy")),
        ("I think the parser is in src/clew/parse.py.", ("location", "parser", "src/clew/parse.py")),
        ("THE PARSER IS IN app/[id].tsx", ("location", "PARSER", "app/[id].tsx")),
    ],
)
def test_claims_are_found_by_three_patterns(text: str, expected: tuple[str, str, str]) -> None:
    assert [(claim.kind, claim.subject, claim.object) for claim in find_claims(text)] == [expected]


@pytest.mark.req("SYL-79")
@pytest.mark.parametrize(
    "text", ["", "We like Redis.", "it implements", "the parser is inside", "reuse X for Y", "..."]
)
def test_other_texts_claim_nothing(text: str) -> None:
    assert find_claims(text) == []


@given(st.text(max_size=300))
def test_any_text_can_be_looked_through(text: str) -> None:
    for claim in find_claims(f"we use {text} for {text} implements {text} the {text} is in {text}"):
        assert claim.subject
        assert claim.object


@pytest.mark.req("SYL-78")
@pytest.mark.parametrize(
    ("text", "files", "against", "confidence", "verified"),
    [
        ("we use Redis for caching", ["a.py"], False, 1.0, True),
        ("we use Kafka for caching", ["gone.py"], False, 0.40, False),
        ("we use Kafka for caching", [], False, 0.5, False),
        ("we use Kafka for queues. Nothing implements It", [], False, 0.25, False),
        ("we use Redis for caching", ["gone.py"], False, 0.8, True),
        ("we use Redis for caching", ["gone.py", "lost.py"], False, 0.64, False),
        ("we use Redis for caching", [], True, 0.7, False),
        ("we use Kafka for caching", ["gone.py"], True, 0.28, False),
        ("it went well", ["a.py"], False, 1.0, True),
        ("it went well", [], False, 1.0, False),
        ("it went well", ["gone.py"], False, 0.8, False),
        ("it went well", ["gone.py", "a.py"], False, 0.8, True),
    ],
)
async def test_confidence_falls_by_a_factor_for_each_thing_that_is_wrong(
    text: str, files: list[str], against: bool, confidence: float, verified: bool
) -> None:
    ground = Book(files=["a.py"], known=["Redis"], against=[node(HISTORY)] if against else [])
    found = await examine(text, files, ground)
    assert found.confidence == pytest.approx(confidence)
    assert found.verified is verified


@pytest.mark.req("SYL-78")
def test_history_contradicts_when_it_is_near_and_answers_the_same_otherwise() -> None:
    [claim] = find_claims("we use Redis for caching")
    said = {
        "other": ("we use Memcached for caching", 0.7),
        "far": ("we use Memcached for caching", 0.69),
        "same": ("We use `redis` for Caching", 0.9),
        "another matter": ("we use Redis for queues", 0.9),
        "another kind": ("caching implements Redis", 0.9),
    }
    found = [ScoredNode(node=node(HISTORY, name, text), similarity=near) for name, (text, near) in said.items()]
    assert [each.name for each in disagreeing(claim, found)] == ["other"]


class Code:
    """A graph of code with three places."""

    places = (
        node(
            CODE,
            "open_cache",
            "def open_cache():\n    return Redis()",
            id="code:src/cache.py#open_cache",
            path="src/cache.py",
        ),
        node(CODE, "Retry", "class Retry(Backoff): ...", id="code:src/retry.py#Retry", path="src/retry.py"),
        node(CODE, "cache.py", "opens the cache", id="code:src/cache.py", path="src/cache.py", node_type=NodeType.FILE),
    )

    async def search(self, query: str, *, limit: int = 10) -> list[ScoredNode]:
        return [ScoredNode(node=each, similarity=0.5) for each in self.places][:limit]

    async def symbol(self, ref: str) -> Node:
        for each in self.places:
            if each.id == ref:
                return each
        raise NotFound("symbol", ref)

    async def source(self, ref: str) -> str:
        raise NotFound("symbol", ref)


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock, me: Principal) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    await bootstrap(opened, me)
    yield opened
    await opened.close()


@pytest.fixture
def graph(trail: Trail, me: Principal) -> NodeGraph:
    return NodeGraph(trail, me)


@pytest.fixture
def firewall(trail: Trail, graph: NodeGraph, me: Principal) -> Firewall:
    async def anchors(refs: Sequence[str]) -> list[str]:
        return [(await graph.add_node(ref, CODE, NodeType.FILE, "", path=ref)).id for ref in refs]

    return Firewall(trail, me, Ground(Code(), graph), anchors)  # type: ignore[arg-type]


@pytest.mark.req("SYL-78")
@pytest.mark.parametrize(
    ("text", "files", "unsupported", "missing"),
    [
        ("we use Redis for caching", ["src/cache.py:3", "./src/cache.py#open_cache"], 0, 0),
        ("Retry implements Backoff", [], 0, 0),
        ("Retry implements Redis", [], 1, 0),
        ("the open_cache is in src/cache.py", [], 0, 0),
        ("the open_cache is in src.cache", [], 0, 0),
        ("the open_cache is in src", [], 0, 0),
        ("the open_cache is in src/retry.py", [], 1, 0),
        ("we use Kafka for caching", ["src/lost.py"], 1, 1),
        ("we use Red for caching", [], 1, 0),
    ],
)
async def test_claims_are_held_against_the_code(firewall: Firewall, text, files, unsupported, missing) -> None:
    _, verdict = await firewall.store("x", text, files=files)
    assert (len(verdict.unsupported), len(verdict.missing)) == (unsupported, missing)


@pytest.mark.req("SYL-79")
async def test_a_statement_that_passes_the_check_is_stored_with_trust_eighty_and_edges_to_its_evidence(
    firewall: Firewall, graph: NodeGraph
) -> None:
    kept, verdict = await firewall.store(
        "Caching", "we use Redis for caching", files=["src/cache.py"], session_id="s1", category="decision"
    )
    assert (kept.trust, kept.verified, kept.verification, kept.confidence) == (80, True, Verification.CODE, 1.0)
    assert (kept.content, kept.metadata, kept.session_id) == ("we use Redis for caching", {}, "s1")
    reached = await graph.traverse(kept.id, EdgeType.REFERENCES)
    assert {each.path for each in reached} == set(verdict.evidence) == {"src/cache.py#open_cache", "src/cache.py"}


@pytest.mark.req("SYL-79")
async def test_a_statement_that_fails_the_check_is_stored_with_trust_twenty_a_mark_and_the_reason(
    firewall: Firewall, graph: NodeGraph
) -> None:
    kept, _ = await firewall.store(
        "Queues",
        "we use Kafka for queues",
        files=["src/lost.py"],
        metadata={"agent": "ann"},
        node_type=NodeType.DECISION,
    )
    assert (kept.trust, kept.verified, kept.verification) == (20, False, Verification.NONE)
    assert kept.confidence == pytest.approx(0.4)
    assert kept.metadata == {
        "agent": "ann",
        "warnings": ["the code shows nothing of: we use Kafka for queues", "there is no file src/lost.py"],
        "contradictions": [],
        "needs_review": True,
    }
    assert await graph.traverse(kept.id, EdgeType.REFERENCES) == []
    for each in (
        await graph.get_node(kept.id),
        (await graph.similar_nodes("Kafka", filter=NodeFilter(domain=HISTORY)))[0].node,
    ):
        assert each.content == "[UNVERIFIED] we use Kafka for queues"


@pytest.mark.req("SYL-78", "SYL-85")
async def test_history_that_says_otherwise_speaks_against_a_claim(
    firewall: Firewall, graph: NodeGraph, trail: Trail, me: Principal
) -> None:
    known = await graph.add_node(
        "Caching", HISTORY, NodeType.DECISION, "After some talk we use Memcached for caching; it is simple."
    )
    kept, verdict = await firewall.store("x", "we use Redis for caching")
    assert (kept.verified, verdict.confidence) == (False, pytest.approx(0.7))
    assert kept.metadata["contradictions"] == [f"new: we use Redis for caching; known ({known.id}): Caching"]
    [conflict] = await list_conflicts(trail, by=me)
    assert (conflict.node_a, conflict.node_b, conflict.subject) == (kept.id, known.id, "caching")
    await graph.supersede(known.id, kept.id)
    _, later = await firewall.store("y", "we use Redis for caching")
    assert later.contradictions == []


@pytest.mark.req("SYL-79")
async def test_a_statement_that_cannot_be_checked_is_unverified_unless_a_person_made_it(firewall: Firewall) -> None:
    guess, verdict = await firewall.store("x", "it is faster this way")
    assert (guess.trust, guess.verified, verdict.checked) == (20, False, False)
    assert guess.content.startswith("[UNVERIFIED]")
    said, _ = await firewall.store("x", "I like tabs", said_by=SourceKind.USER)
    assert (said.trust, said.verified, said.verification) == (80, True, Verification.USER)
    wrong, _ = await firewall.store("x", "we use Kafka for queues", said_by=SourceKind.USER)
    assert (wrong.trust, wrong.verified) == (20, False)


async def test_keys_are_not_kept(firewall: Firewall) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    kept, _ = await firewall.store(f"key {secret}", f"we use {secret} for login", said_by=SourceKind.USER)
    assert secret not in f"{kept}"
