"""Hygiene and dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clew.app import App
from clew.trail.model.event import Consumer
from clew.trail.model.selector import Selector
from tests.cli.conftest import Clew

Put = Callable[..., str]
InTrail = Callable[..., Any]


@pytest.mark.req("RCR-12")
def test_a_run_removes_what_has_expired_and_reports_it(clew: Clew, put: Put) -> None:
    put("old", "--ttl", "2020-01-01T00:00:00Z", "--tag", "mine")
    put("new", "--ttl", "1h", "--tag", "mine")
    assert clew("hygiene", "run").out == "Removed 1 breadcrumb, 0 idle agents, 0 subscriptions.\n"
    assert [row[3] for row in clew("trail", "ls", "--tag", "mine").rows] == ["new"]
    report = clew("hygiene", "stats", "--json").json
    assert (report["runs_completed"], report["total_breadcrumbs_purged"], report["hygiene_enabled"]) == (1, 1, True)
    assert report["last_run_duration_ms"] >= 0
    names = [row[0] for row in clew("hygiene", "stats").rows]
    assert names[1:] == ["runs_completed", "total_breadcrumbs_purged", "last_run_duration_ms", "hygiene_enabled"]
    assert clew("hygiene", "run", "--json").json == {"breadcrumbs": 0, "agents": 0, "subscriptions": 0}


def test_without_a_run_there_is_nothing_to_report(clew: Clew, put: Put) -> None:
    put("here")
    result = clew("hygiene", "stats")
    assert (result.code, result.out, result.err) == (0, "", "No report yet. `clew hygiene run` makes one.\n")
    assert clew("hygiene", "stats", "--json").json == {}


@pytest.fixture
def dead_letters(put: Put, in_trail: InTrail) -> list[str]:
    """Three events that a consumer gave up on."""

    async def give_up(app: App) -> list[str]:
        selector = Selector(all_tags=("mine",))
        await app.trail.deliveries.register(Consumer(name="painter", selector=selector, start="beginning"), by=app.me)
        claims = await app.trail.deliveries.claim("painter", by=app.me, worker="w", limit=10)
        for claim in claims:
            await app.trail.deliveries.fail(claim, "no \x1b[31mpaint", by=app.me, retry=False)
        return [letter.id for letter in await app.trail.dead_letters.list(by=app.me)]

    for at in range(3):
        put(f"t{at}", "--tag", "mine")
    return list(in_trail(give_up))


def test_dead_letters_are_listed_retried_and_dropped(clew: Clew, dead_letters: list[str], in_trail: InTrail) -> None:
    lines = clew("dlq", "ls").rows
    assert [line[0] for line in lines] == dead_letters
    assert {(line[1], line[3], line[5]) for line in lines} == {("painter", "1", "no \\x1b[31mpaint")}
    assert clew("dlq", "ls", "--consumer", "other").out == ""
    assert clew("dlq", "drop", dead_letters[0]).out == "1 dead letter dropped.\n"
    assert clew("dlq", "retry", dead_letters[1]).out == "1 event will be retried.\n"
    assert clew("dlq", "retry", "--all").out == "1 event will be retried.\n"
    assert clew("dlq", "ls", "--json").json == {"items": []}
    assert clew("dlq", "retry", "--all", "--json").json == {"retried": []}

    async def claim(app: App) -> int:
        return len(await app.trail.deliveries.claim("painter", by=app.me, worker="w", limit=10))

    assert in_trail(claim) == 2


def test_retried_and_dropped_letters_are_listed_in_json(clew: Clew, dead_letters: list[str]) -> None:
    assert clew("dlq", "drop", dead_letters[0], "--json").json == {"dropped": dead_letters[:1]}
    assert clew("dlq", "retry", *dead_letters[1:], "--json").json == {"retried": dead_letters[1:]}


def test_a_letter_that_is_not_there_is_reported(clew: Clew, put: Put) -> None:
    put("here")
    for verb in ("retry", "drop"):
        unknown, missing = clew("dlq", verb, "99-99"), clew("dlq", verb)
        assert (unknown.code, missing.code) == (1, 2)
        assert "99-99" in unknown.err
        assert "clew dlq ls" in missing.err
    assert clew("dlq", "retry", "--all").out == "0 events will be retried.\n"
    both = clew("dlq", "retry", "1-1", "--all")
    assert (both.code, both.err) == (2, "clew: --all: cannot be combined with an ID. Give one or the other\n")
