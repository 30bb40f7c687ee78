"""Beliefs: whether the ledger answers as of any time, retires only replaced beliefs, and shows contradictions.

Usage: knowledge_beliefs.py [--pairs DIR] [--scratch DIR]

Every pair of benchmarks/beliefs is recorded by an owner of its own on one trail, in its order and in the other, with no
model and no embedder. Prints one JSON object; the exit code is 1 if a figure misses its target.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.history.beliefs import Belief, BeliefFact, BeliefLedger, BeliefStanding, relate
from clew.trail import open_trail
from clew.trail.store import Trail

PAIRS = Path(__file__).parent / "beliefs"
MARKS = {"as_of_right": (0.99, 1.0), "wrong_retirements": (0.0, 0.01), "contradictions_surfaced": (0.9, 1.0)}
"""The minimum and maximum of each figure."""

_NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One statement of a pair."""

    subject: str
    attribute: str
    value: str
    source: str
    version: str
    date: str
    path: str
    commit: str
    words: str
    condition: str = ""
    until: str | None = None
    many: bool = False
    holds: bool = True


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two statements and their relation."""

    id: str
    label: str
    hard: bool
    why: str
    repo: str
    a: Side
    b: Side
    then: list[str]
    now: list[str]
    by: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the ledger for one pair in one order."""

    pair: Pair
    as_of_right: bool
    retired: tuple[str, ...]
    disagrees: bool
    relation: str


def read_pairs(folder: Path = PAIRS) -> list[Pair]:
    """All pairs, in order of file and line."""
    files = sorted(folder.glob("*.jsonl"))
    return [msgspec.json.decode(line, type=Pair) for file in files for line in file.read_bytes().splitlines()]


async def measure(scratch: Path, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The figures over all pairs, each recorded in both orders."""
    clock = ManualClock(_NOW)
    trail = await open_trail(f"sqlite://{scratch}/beliefs.db", clock)
    began = time.perf_counter()
    try:
        outcomes = [await judge(trail, clock, pair, is_turned=turned) for pair in pairs for turned in (False, True)]
    finally:
        await trail.close()
    return {**figures(outcomes), "seconds": round(time.perf_counter() - began, 2)}


async def judge(trail: Trail, clock: ManualClock, pair: Pair, *, is_turned: bool) -> Outcome:
    """Record one pair and ask the ledger about it."""
    ledger = BeliefLedger(trail, Principal(owner_id=f"{pair.id}{'-turned' if is_turned else ''}"), clock)
    names = ("b", "a") if is_turned else ("a", "b")
    beliefs: dict[str, Belief] = {}
    for name in names:
        clock.advance(seconds=1)
        beliefs[name] = await ledger.add(fact_of(getattr(pair, name), pair.repo))
    ids = {belief.id: name for name, belief in beliefs.items()}
    history = [each for subject in {pair.a.subject, pair.b.subject} for each in await ledger.history(subject)]
    return Outcome(
        pair=pair,
        as_of_right=await _answers_rightly(ledger, pair, beliefs[names[0]]),
        retired=tuple(sorted(ids[each.belief.id] for each in history if each.retired_by is not None)),
        disagrees=any(each.disagrees_with for each in history),
        relation=relate(beliefs["a"], beliefs["b"]),
    )


async def _answers_rightly(ledger: BeliefLedger, pair: Pair, first: Belief) -> bool:
    """The answers for then, for now, and as of the time when only the first was known."""
    then = await ledger.as_of(_day(min(pair.a.date, pair.b.date)))
    now = await ledger.as_of(_NOW)
    known = await ledger.as_of(_day(max(pair.a.date, pair.b.date)), first.recorded_at)
    alone = [told(first.fact)] if first.fact.valid_to is None else []
    return values(then) == pair.then and values(now) == pair.now and values(known) == alone


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Shares over outcomes. A retirement is wrong if the label has none, or the opposite one."""
    wrong = [each for each in outcomes if each.retired != _retired_by_label(each.pair) and each.retired]
    missed = [each for each in outcomes if not each.retired and _retired_by_label(each.pair)]
    apart = [each for each in outcomes if each.pair.label == "contradicts"]
    others = [each for each in outcomes if each.pair.label != "contradicts"]
    return {
        "pairs": len({each.pair.id for each in outcomes}),
        "hard": len({each.pair.id for each in outcomes if each.pair.hard}),
        "as_of_right": _share([each.as_of_right for each in outcomes]),
        "wrong_retirements": _share([each in wrong for each in outcomes]),
        "missed_retirements": _share([each in missed for each in outcomes]),
        "contradictions_surfaced": _share([each.disagrees for each in apart]),
        "false_contradictions": _share([each.disagrees for each in others]),
        "labels_right": _share([each.relation in _relations(each.pair) for each in outcomes]),
        "wrong": sorted({each.pair.id for each in outcomes if each.relation not in _relations(each.pair)}),
    }


def relation_of(pair: Pair) -> str:
    """The result of the rules alone for a pair, as a label."""
    one, other = (Belief(id=name, fact=fact_of(getattr(pair, name), pair.repo), recorded_at=_NOW) for name in "ab")
    found = relate(one, other)
    return pair.label if found in _relations(pair) else f"{found}, not {pair.label}"


def misses(found: dict[str, Any]) -> list[str]:
    """The figures that miss their mark."""
    return [name for name, (least, most) in MARKS.items() if not least <= found[name] <= most]


def fact_of(side: Side, repo: str) -> BeliefFact:
    return BeliefFact(
        subject=side.subject,
        attribute=side.attribute,
        value=side.value,
        condition=side.condition,
        many=side.many,
        holds=side.holds,
        source=side.source,
        version=side.version,
        valid_from=_day(side.date),
        valid_to=_day(side.until) if side.until else None,
        cite=f"{repo}@{side.commit}:{side.path}",
    )


def values(standing: Sequence[BeliefStanding]) -> list[str]:
    """The valid beliefs, in the notation of the pairs."""
    return sorted(told(each.belief.fact) for each in standing)


def told(fact: BeliefFact) -> str:
    return fact.value if fact.holds else f"not {fact.value}"


def _retired_by_label(pair: Pair) -> tuple[str, ...]:
    return ("b" if pair.by == "a" else "a",) if pair.label == "supersedes" else ()


def _relations(pair: Pair) -> tuple[str, ...]:
    return ("supersedes" if pair.by == "a" else "superseded",) if pair.label == "supersedes" else (pair.label,)


def _share(held: Sequence[bool]) -> float:
    return round(sum(held) / len(held), 4) if held else 0.0


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, default=PAIRS, help="where the pairs are")
    parser.add_argument("--scratch", type=Path, default=None, help="where the trail is written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=given.scratch) as scratch:
        found = asyncio.run(measure(Path(scratch), read_pairs(given.pairs)))
    print(json.dumps(found, indent=2))
    sys.exit(1 if misses(found) else 0)


if __name__ == "__main__":
    main()
