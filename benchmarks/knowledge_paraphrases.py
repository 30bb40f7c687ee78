"""Paraphrases: how many questions are answered by what an earlier one in other words left in the intent cache, and that
none is answered by what only looks like it.

Usage: knowledge_paraphrases.py [--pairs DIR] [--data DIR] [--show tuned|all]

Every pair of benchmarks/paraphrases is asked in both orders, by rules alone and with the embedder that comes with Clew.
Pairs of real web queries are read from --data by their lines, and left out where it is absent. Ends with 1 when a
figure misses its mark.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from clew.clock import ManualClock
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.intents import classify
from clew.llm.embedders import open_embedder
from clew.trail.store import Embedder
from speed.report import Finding, Promise, Row, render

PAIRS = Path(__file__).parent / "paraphrases"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LEAST_SERVED = 0.6
HALVES = ("tuned", "held out")
AS_A_QUESTION = "where is the function for this: {}"
"""Web queries ask no team; put so, they ask ours for a place in the code."""

_NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two questions that want the same or, in a near miss, do not."""

    id: str
    half: str
    kind: str
    a: str
    b: str
    intent: str = ""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Two lines of a file of queries, and whether they want the same."""

    id: str
    file: str
    a: int
    b: int
    is_same: bool


def read_pairs(name: str, folder: Path = PAIRS) -> list[Pair]:
    """The pairs of one file, `same` or `apart`, in its order."""
    return [msgspec.json.decode(line, type=Pair) for line in (folder / f"{name}.jsonl").read_bytes().splitlines()]


def read_web_pairs(data: Path, folder: Path = PAIRS) -> list[tuple[Pair, bool]]:
    """Pairs of real queries with whether they are one. Raises FileNotFoundError where the queries are not there."""
    references = [
        msgspec.json.decode(line, type=Reference) for line in (folder / "web_queries.jsonl").read_bytes().splitlines()
    ]
    texts = {name: (data / name).read_bytes().splitlines() for name in sorted({each.file for each in references})}
    return [(_web_pair(each, texts[each.file]), each.is_same) for each in references]


def measure_paraphrases(pairs: Path = PAIRS, data: Path = DATA, embedder: Embedder | None = None) -> list[Finding]:
    """Shares served by half and intent, of paraphrases and of the same words again; wrong answers among near misses and
    among all questions kept at once; and the promises."""
    embedder = embedder or open_default()
    same, apart = read_pairs("same", pairs), read_pairs("apart", pairs)
    findings = [_row(half, same, apart, embedder) for half in HALVES]
    findings += [_row_of_intent(intent, same, embedder) for intent in dict.fromkeys(each.intent for each in same)]
    findings += measure_web_queries(pairs, data, embedder)
    wrong = len(find_hits(apart, embedder))
    held_out = [each for each in same if each.half == "held out"]
    crowd = find_strangers(same, embedder)
    return [
        *findings,
        _promise("paraphrases served", len(same), _served(same, embedder), LEAST_SERVED),
        _promise("paraphrases served, held out", len(held_out), _served(held_out, embedder), LEAST_SERVED),
        _promise("near misses served", len(apart), float(wrong), 0.0, at_least=False),
        _promise("served by another question", len(same), float(len(crowd)), 0.0, at_least=False),
    ]


def open_default() -> Embedder:
    """The embedder that comes with Clew."""
    embedder = open_embedder("wordllama")
    assert embedder is not None
    return embedder


def measure_web_queries(pairs: Path, data: Path, embedder: Embedder) -> list[Finding]:
    """Real queries for one function: those that want the same, and those that only share the function."""
    try:
        rows = read_web_pairs(data, pairs)
    except FileNotFoundError as error:
        note = f"skipped: {Path(str(error.filename)).name} is not there"
        return [Row(measure="paraphrases", records=0, contender="real web queries", note=note)]
    same = [pair for pair, is_same in rows if is_same]
    apart = [pair for pair, is_same in rows if not is_same]
    values = {"served": _served(same, embedder), "wrong": float(len(find_hits(apart, embedder)))}
    return [Row(measure="paraphrases", records=len(rows), contender="real web queries", values=values)]


def find_hits(pairs: Iterable[Pair], embedder: Embedder) -> list[tuple[str, str]]:
    """What was asked first and what was then served by it, of each pair in both orders."""
    orders = [order for pair in pairs for order in ((pair.a, pair.b), (pair.b, pair.a))]
    return [(first, second) for first, second in orders if serves(first, second, embedder)]


def find_strangers(pairs: Sequence[Pair], embedder: Embedder) -> list[tuple[str, str]]:
    """With one side of every pair kept at once: questions that got the answer of another pair, and whose it was. Those
    that ask to go on are all one."""
    cache = IntentCache(ManualClock(_NOW), embedder)
    for pair in pairs:
        cache.put(pair.a, classify(pair.a), pair)
    found = [(pair, cache.get(pair.b, classify(pair.b))) for pair in pairs]
    return [
        (pair.b, kept.value.a)
        for pair, kept in found
        if kept is not None and kept.value.id != pair.id and (pair.intent, kept.value.intent) != ("RESUME", "RESUME")
    ]


def serves(first: str, second: str, embedder: Embedder) -> bool:
    """Whether the answer to one question, alone in the cache, is given to the other."""
    cache = IntentCache(ManualClock(_NOW), embedder)
    cache.put(first, classify(first), first)
    return cache.get(second, classify(second)) is not None


def _served(pairs: Sequence[Pair], embedder: Embedder) -> float:
    return len(find_hits(pairs, embedder)) / (2 * len(pairs)) if pairs else 0.0


def _repeated(pairs: Sequence[Pair], embedder: Embedder) -> float:
    texts = [text for pair in pairs for text in (pair.a, pair.b)]
    return sum(serves(text, text, embedder) for text in texts) / len(texts) if texts else 0.0


def _row(half: str, same: Sequence[Pair], apart: Sequence[Pair], embedder: Embedder) -> Finding:
    mine, others = ([pair for pair in pairs if pair.half == half] for pairs in (same, apart))
    values = {
        "served": _served(mine, embedder),
        "repeats served": _repeated(mine, embedder),
        "near misses": float(len(others)),
        "wrong": float(len(find_hits(others, embedder))),
    }
    return Row(measure="paraphrases", records=len(mine), contender=half, values=values)


def _row_of_intent(intent: str, same: Sequence[Pair], embedder: Embedder) -> Finding:
    mine = [pair for pair in same if pair.intent == intent]
    values = {half: _served([pair for pair in mine if pair.half == half], embedder) for half in HALVES}
    return Row(measure="paraphrases by intent", records=len(mine), contender=intent, values=values)


def _web_pair(reference: Reference, lines: Sequence[bytes]) -> Pair:
    one, other = (
        AS_A_QUESTION.format(msgspec.json.decode(lines[number - 1])["query"]) for number in (reference.a, reference.b)
    )
    return Pair(id=reference.id, half="real", kind="web", a=one, b=other)


def _promise(name: str, records: int, value: float, target: float, *, at_least: bool = True) -> Promise:
    return Promise(name=name, records=records, value=value, target=target, at_least=at_least)


def tell_failures(pairs: Path, half: str, embedder: Embedder) -> list[str]:
    """The paraphrases of a half that are not served and the near misses that are, one a line."""
    chosen = [[pair for pair in read_pairs(name, pairs) if half in (pair.half, "all")] for name in ("same", "apart")]
    missed = [pair for pair in chosen[0] if not find_hits([pair], embedder)]
    wrong = find_hits(chosen[1], embedder)
    return [f"not served: {each.a} | {each.b}" for each in missed] + [f"wrong: {one} | {two}" for one, two in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, default=PAIRS, help="where the pairs are")
    parser.add_argument("--data", type=Path, default=DATA, help="where the files of real queries are")
    parser.add_argument("--show", choices=("tuned", "all"), help="tell the pairs that fail")
    given = parser.parse_args()
    if given.show:
        print(*tell_failures(given.pairs, given.show, open_default()), sep="\n")
    findings = measure_paraphrases(given.pairs, given.data)
    print(render(findings))
    sys.exit(0 if all(each.is_kept for each in findings if isinstance(each, Promise)) else 1)


if __name__ == "__main__":
    main()
