"""The seven skills of the history."""

from __future__ import annotations

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.history.journal import ALL, DECISIONS, FAILURES, Archive
from clew.knowledge.history.links import anchor_id
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import NodeFilter, ScoredNode
from clew.trail.model.edge import EdgeType
from clew.trail.store import Trail


@pytest.fixture
def archive(trail: Trail, me: Principal) -> Archive:
    return Archive(trail, me)


def only(wanted: NodeFilter = ALL, **parts: object) -> NodeFilter:
    return msgspec.structs.replace(wanted, **parts)


def contents(found: list[ScoredNode]) -> list[str]:
    return [one.node.content for one in found]


@pytest.mark.req("SYL-96", "SYL-98", "O6")
async def test_a_summary_reports_its_edges_and_they_can_be_walked(
    archive: Archive, trail: Trail, me: Principal
) -> None:
    stored = await archive.store_summary(
        "Tokens are checked before the body is read",
        "feature",
        "s1",
        code_references=["auth/token.py#check", "auth/body.py:12"],
        tags=["auth"],
        metadata={"agent": "coder", "task_id": "t-7", "confidence": 0.9},
    )
    assert stored.edges == 2

    reached = await NodeGraph(trail, me).traverse(stored.node_id, EdgeType.REFERENCED_IN)
    assert {node.id for node in reached} == {
        anchor_id("acme", "auth/token.py#check"),
        anchor_id("acme", "auth/body.py"),
    }
    edges = await trail.edges.of(stored.node_id, by=me)
    assert [edge.weight for edge in edges] == [0.9, 0.9]
    node = await NodeGraph(trail, me).get_node(stored.node_id)
    assert (node.session_id, node.source, node.metadata["task_id"]) == ("s1", "coder", "t-7")
    [found] = await archive.find("checking tokens before the body")
    assert found.node.id == stored.node_id


@pytest.mark.req("SYL-96")
async def test_a_summary_that_cannot_be_stored_leaves_nothing(archive: Archive, trail: Trail, me: Principal) -> None:
    before = (await trail.upkeep.stats(by=me)).breadcrumbs
    with pytest.raises(InvalidInput, match="confidence"):
        await archive.store_summary("x", "feature", "s1", metadata={"confidence": 2})
    with pytest.raises(InvalidInput, match="not a place"):
        await archive.store_summary("x", "feature", "s1", code_references=["/etc/passwd"])
    with pytest.raises(InvalidInput, match="content"):
        await archive.store_summary(" ", "feature", "s1")
    with pytest.raises(InvalidInput, match="session_id"):
        await archive.store_summary("x", "feature", "")
    assert (await trail.upkeep.stats(by=me)).breadcrumbs == before


@pytest.mark.req("SYL-96")
async def test_history_is_searched_by_meaning_type_session_and_time(archive: Archive, clock: ManualClock) -> None:
    await archive.store_summary("The login page was made faster", "refactoring", "s1")
    clock.advance(days=1)
    later = clock.now()
    clock.advance(days=1)
    await archive.store_summary("The login page now asks for a second factor", "feature", "s2")

    assert len(await archive.find("login page")) == 2
    assert contents(await archive.find("login page", 10, only(metadata={"summary_type": "feature"}))) == [
        "The login page now asks for a second factor"
    ]
    assert contents(await archive.find("login page", 10, only(session_id="s1"))) == ["The login page was made faster"]
    assert len(await archive.find("login page", 10, only(created_after=later))) == 1
    assert len(await archive.find("login page", 1)) == 1


@pytest.mark.req("SYL-96")
async def test_a_pattern_that_occurred_once_is_left_out(archive: Archive) -> None:
    await archive.store_summary("Wrap network calls in a retry with backoff", "pattern", "s1", tags=["network"])
    await archive.store_summary("Network calls: wrap them in retry with backoff", "pattern", "s2", tags=["network"])
    await archive.store_summary("Network calls log their duration", "pattern", "s2", tags=["logging"])

    [found] = await archive.find_patterns("network calls")
    assert {each.node.session_id for each in found} == {"s1", "s2"}
    assert len(await archive.find_patterns("network calls", min_occurrences=1)) == 2
    assert await archive.find_patterns("network calls", min_occurrences=3) == []
    assert await archive.find_patterns("network calls", category="logging") == []


@pytest.mark.req("SYL-96")
async def test_failures_are_found_with_their_resolution(archive: Archive) -> None:
    solved = await archive.store_summary(
        "The import failed on a circular reference", "failure", "s1", metadata={"resolution": "moved the constant"}
    )
    await archive.store_summary("The import failed without a network", "failure", "s1")
    await archive.store_summary("The import got a progress bar", "feature", "s1")

    assert len(await archive.find("import failed", 10, FAILURES)) == 2
    [found] = await archive.find("import failed", 10, only(FAILURES, metadata={"resolved": True}))
    assert (found.node.id, found.node.metadata["resolution"]) == (solved.node_id, "moved the constant")


@pytest.mark.req("SYL-96")
async def test_a_session_tells_its_history_in_order(trail: Trail, clock: ManualClock) -> None:
    archive = Archive(trail, Principal(owner_id="acme", agent_id="ann", session="s1"))
    for kind in ("task_completion", "decision", "failure"):
        await archive.store_summary(f"a {kind}", kind, "s1")
        clock.advance(minutes=1)
    await archive.store_summary("elsewhere", "decision", "s2")

    told = [node.content for node in await archive.get_session_history()]
    assert told == ["a task_completion", "a decision", "a failure"]
    newest = [node.content for node in await archive.get_session_history("s1", chronological=False)]
    assert newest == told[::-1]
    for include, content in (("decisions", "a decision"), ("tasks", "a task_completion"), ("failures", "a failure")):
        [only] = await archive.get_session_history(include=include)  # type: ignore[arg-type]  # they are such words
        assert only.content == content
    assert await archive.get_session_history("never was") == []


async def test_without_a_session_its_history_cannot_be_asked_for(archive: Archive) -> None:
    with pytest.raises(InvalidInput, match="no session"):
        await archive.get_session_history()


@pytest.mark.req("SYL-96")
async def test_the_code_of_an_entry_is_found(archive: Archive, stranger: Principal, trail: Trail) -> None:
    stored = await archive.store_summary("Cleaned up", "refactoring", "s1", code_references=["a.py", "a.py", "b.py#f"])
    assert stored.edges == 2
    assert {node.metadata["ref"] for node in await archive.get_code_for_history(stored.node_id)} == {
        "code:a.py",
        "code:b.py#f",
    }
    with pytest.raises(NotFound):
        await Archive(trail, stranger).get_code_for_history(stored.node_id)


@pytest.mark.req("SYL-96")
async def test_decisions_about_a_topic_are_found(archive: Archive) -> None:
    for at in range(12):
        await archive.store_summary(f"We store sessions in table {at}", "decision", "s1")
    await archive.store_summary("Sessions are faster now", "feature", "s1")
    found = await archive.find("where sessions are stored", wanted=DECISIONS)
    assert len(found) == 10
    assert all(one.node.metadata["summary_type"] == "decision" for one in found)
    assert len(await archive.find("where sessions are stored", 3, DECISIONS)) == 3
