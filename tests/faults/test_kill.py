"""Kill -9 under concurrent writers and handlers, again and again on one file; then count."""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import NotFound
from clew.trail.model.event import Event
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.faults.processes import PATIENCE, Child, drain, open_at
from tests.faults.writer import ME, content_of, echo, word_of, write_until_killed

ROUNDS = int(os.environ.get("CLEW_FAULT_ROUNDS", "40"))
SAMPLE = 20
"""Rounds without `--full`."""
SEARCHES = 150


@pytest.mark.slow
@pytest.mark.req("RCR-22")
@pytest.mark.req("BEY-07")
async def test_kills_lose_no_acknowledged_write_skip_no_event_and_repeat_no_output(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    rounds = ROUNDS if request.config.getoption("--full") else min(ROUNDS, SAMPLE)
    kill_again_and_again(folder, rounds)
    trail = await open_at(folder)
    try:
        await drain(trail, [echo], ME, timeout=2 * PATIENCE)
        notes = list(read_notebook(folder))
        events = await read_log(trail)
        assert len([event for event in events if event.schema_name == "note.v1"]) > 2 * rounds, (
            "hardly anything was written"
        )
        await check_records(trail, notes)
        check_versions(events)
        check_outputs(events)
        check_keys(notes, events)
        await check_search(trail, notes)
        assert await trail.dead_letters.list(by=ME) == []
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()


def kill_again_and_again(folder: Path, rounds: int) -> None:
    """Start a process a round and kill it at a random moment. One process in three stays alive beside the next one. So
    the file is sometimes recovered after all died, and sometimes shared with a process that dies."""
    moments, alive = random.Random(7), list[Child]()
    for round in range(rounds):
        child = Child(write_until_killed, folder, round)
        alive.append(child)
        assert child.hear() == "ready"
        time.sleep(moments.uniform(0.020, 0.150))  # the moment of the kill, not a wait for a condition
        if len(alive) == 1 and moments.random() < 1 / 3 and round < rounds - 1:
            continue
        for victim in alive:
            with victim:
                victim.kill()
        alive.clear()


def read_notebook(folder: Path) -> Iterator[tuple[str, str, int, str]]:
    for line in (folder / "notebook").read_text().splitlines():
        verb, id, version, name = line.split()
        yield verb, id, int(version), name


async def read_log(trail: Trail) -> list[Event]:
    events, after, head = list[Event](), 0, await trail.log.head()
    while after < head:
        some, after = await trail.log.read(after, by=ME, limit=5_000)
        events += some
    return events


async def check_records(trail: Trail, notes: list[tuple[str, str, int, str]]) -> None:
    """Acknowledged records exist with their content; deleted ones do not."""
    gone = {id for verb, id, _, _ in notes if verb == "deleted"}
    in_doubt = {id for verb, id, _, _ in notes if verb == "deleting"} - gone
    for verb, id, version, name in notes:
        if verb != "wrote":
            continue
        try:
            found = await trail.records.get(id, by=ME, version=version)
        except NotFound:
            assert id in gone | in_doubt, f"{name} version {version} was acknowledged and is lost"
        else:
            assert id not in gone, f"{name} was deleted and is back"
            assert found.context == content_of(name, version)


def check_versions(events: list[Event]) -> None:
    """Each record's events are its versions one after the other, from its creation on, and at most one end."""
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    lives: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        lives[event.breadcrumb_id].append(event)
    for id, life in lives.items():
        changes = [event for event in life if event.type != "breadcrumb.deleted"]
        assert [event.version for event in changes] == list(range(1, len(changes) + 1)), id
        assert [event.type for event in changes] == ["breadcrumb.created"] + ["breadcrumb.updated"] * (len(changes) - 1)
        assert life[: len(changes)] == changes, f"{id} changed after it was deleted"
        assert len(life) - len(changes) <= 1, f"{id} was deleted twice"


def check_outputs(events: list[Event]) -> None:
    """Each event of a note has one output, and those of one session came in the order of their events."""
    wanted = Counter(event.seq for event in events if event.schema_name == "note.v1")
    outputs = [event for event in events if event.schema_name == "echo.v1"]
    written = Counter(handled_by(output) for output in outputs)
    assert written - wanted == Counter(), "an output was written twice, or without an event"
    assert wanted - written == Counter(), "an event was skipped"
    sessions: dict[str, list[int]] = defaultdict(list)
    for output in outputs:
        sessions[output.tags[1]].append(handled_by(output))
    for session, handled in sessions.items():
        assert handled == sorted(handled), f"the events of {session} were handled out of order"


def handled_by(output: Event) -> int:
    return int(output.tags[0].removeprefix("event:"))


def check_keys(notes: list[tuple[str, str, int, str]], events: list[Event]) -> None:
    """All callers with a key got the same record."""
    made = Counter(event.breadcrumb_id for event in events if event.schema_name == "keyed.v1")
    answers: dict[str, set[str]] = defaultdict(set)
    for verb, id, _, key in notes:
        if verb == "keyed":
            answers[key].add(id)
    assert all(len(ids) == 1 for ids in answers.values()), "one key was answered with two records"
    keys = Counter(
        event.breadcrumb.context["key"] for event in events if event.schema_name == "keyed.v1" if event.breadcrumb
    )
    assert set(keys.values()) == set(made.values()) == {1}, "one key made two records"


async def check_search(trail: Trail, notes: list[tuple[str, str, int, str]]) -> None:
    """A word of one record finds that record; a word of a deleted record finds nothing."""
    sample = random.Random(8)
    stats = await trail.upkeep.stats(by=ME)
    listed = await trail.records.list(Selector(schema_name="scrap.v1"), by=ME, limit=1_000)
    assert stats.schemas.get("scrap.v1", 0) == len(listed.items)
    written = sorted({(id, name) for verb, id, _, name in notes if verb == "wrote" and "w" in name})
    for id, name in sample.sample(written, min(SEARCHES, len(written))):
        hits = (await trail.index.search(SearchRequest(text=word_of(name), ranking="text"), by=ME)).hits
        assert [hit.breadcrumb.id for hit in hits] == [id], f"a search for the word of {name}"
    deleted = sorted({name for verb, _, _, name in notes if verb == "deleted"})
    for name in sample.sample(deleted, min(SEARCHES, len(deleted))):
        hits = (await trail.index.search(SearchRequest(text=word_of(name), ranking="text"), by=ME)).hits
        assert hits == (), f"a search finds {name}, which is deleted"
