"""Facts in plain sentences, and what becomes of those that disagree."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.history.chronicle import Chronicle
from clew.knowledge.history.entries import ArchiveQuery
from clew.knowledge.history.extraction import extract_facts, resolve_conflicts
from clew.trail.store import Trail


@pytest.fixture
def chronicle(trail: Trail, me: Principal, clock: ManualClock) -> Chronicle:
    return Chronicle(trail, me, "s1", clock)


@pytest.mark.req("SYL-22")
@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("The default of `max_retries` is 3.", ("max_retries", "default", "3")),
        ("As of today, timeout defaults to 30 seconds, as agreed.", ("timeout", "default", "30 seconds")),
        ("clew requires Python 3.11 or newer.", ("clew", "minimum version of Python", "3.11 or newer")),
        ("We use SQLite for the trail.", ("the trail", "choice", "SQLite")),
        ("The parser lives in src/clew/parse.py.", ("parser", "place", "src/clew/parse.py")),
        ("The limit for uploads is 10 MB.", ("uploads", "limit", "10 MB")),
    ],
)
async def test_plain_statements_become_facts(chronicle: Chronicle, sentence: str, stated: tuple[str, str, str]) -> None:
    entry = await chronicle.store(f"We talked.\n{sentence}\nThen we left.", "insight")
    [fact] = extract_facts(entry)
    assert (fact.subject.removeprefix("As of today, "), fact.attribute, fact.value) == stated
    assert (fact.cite, fact.valid_from) == (entry.id, entry.created_at)


async def test_other_text_is_left_alone(chronicle: Chronicle) -> None:
    entry = await chronicle.store("It was a good day. Nothing is decided, is it? " + "a " * 5_000, "general")
    assert extract_facts(entry) == []


@pytest.mark.req("SYL-22", "BEY-05")
async def test_the_same_writer_may_change_their_mind_and_others_disagree(
    chronicle: Chronicle, clock: ManualClock
) -> None:
    for text, writer in (
        ("timeout defaults to 10", "ann"),
        ("timeout defaults to 20", "ann"),
        ("timeout defaults to 30", "bob"),
    ):
        await chronicle.store(text, "decision", source=writer)
        clock.advance(hours=1)
    entries = await chronicle.query(ArchiveQuery(current_only=True))
    resolved = resolve_conflicts(entries)

    assert {each.belief.fact.value for each in resolved.current} == {"20", "30"}
    assert [each.belief.fact.value for each in resolved.retired] == ["10"]
    assert [{each.one.fact.value, each.other.fact.value} for each in resolved.open] == [{"20", "30"}]
    assert len(await chronicle.query()) == 3
