"""Paraphrases: how many questions are answered by what an earlier one in other words left in the intent cache, and that
none is answered by what only looks like it.

Usage: knowledge_paraphrases.py [--pairs DIR] [--data DIR] [--repos DIR] [--show tuned|all] [--shared]

Every pair of benchmarks/paraphrases is asked in both orders, by rules alone and with the embedder that comes with Clew.
Pairs of real web queries are read from --data and from a repository in --repos by their numbers, and left out where
these are absent. They are also asked of a resolver whose repository is the corpus of functions in --data, as questions
that a model answers: there what both find counts as well. --shared asks all queries one after the other, and tells
which are served by another. Ends with 1 when a figure misses its mark.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from clew.clock import ManualClock
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.intents import classify
from clew.llm.embedders import open_embedder
from clew.trail.store import Embedder
from knowledge_asking import CORPUS, open_asking
from knowledge_calls import find_repository
from speed.report import Finding, Promise, Row, render

PAIRS = Path(__file__).parent / "paraphrases"
ROOT = Path(__file__).resolve().parents[2]
DATA, REPOS = ROOT / "shared" / "data", ROOT / "repositories"
QUERIES_REPO = "Jun-jie-Huang/CoCLR"
LEAST_SERVED = 0.6
HALVES = ("tuned", "held out")
WEB, ASKED = "real web queries, by their words", "real web queries, with what they find"
AS_A_QUESTION = "where is the function for this: {}"
"""Web queries ask no team; put so, they ask ours for a place in the code."""
FOR_A_MODEL = "explain the function for this: {}"
"""Put so, a model is asked for the answer."""
QUERY_FILES = ("code_search_dev.jsonl", "data/qa/cosqa-dev.json", "data/search/cosqa-retrieval-test-500.json")
_LANGUAGE = re.compile(r"\b(?:(?:in|using|with|from|on) )?python ?[23]?\b(?:(?<=^python)\W+(?=how ))?")
"""Every query names it, some with a sign after it; nobody does who asks about a repository in that language."""

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
    """Two queries, each by its file and its number there, from 1; and whether they want the same."""

    id: str
    half: str
    a: tuple[str, int]
    b: tuple[str, int]
    is_same: bool


def read_pairs(name: str, folder: Path = PAIRS) -> list[Pair]:
    """The pairs of one file, `same` or `apart`, in its order."""
    return [msgspec.json.decode(line, type=Pair) for line in (folder / f"{name}.jsonl").read_bytes().splitlines()]


def read_web_pairs(
    data: Path, repositories: Path, folder: Path = PAIRS, *, put: str = AS_A_QUESTION
) -> tuple[list[tuple[Pair, bool]], list[str]]:
    """Pairs of real queries, `put` as questions, with whether they are one; and the files of queries that are not
    there."""
    references = [
        msgspec.json.decode(line, type=Reference) for line in (folder / "web_queries.jsonl").read_bytes().splitlines()
    ]
    texts = {name: read_queries(name, data, repositories) for name in QUERY_FILES}
    here = [each for each in references if texts[each.a[0]] and texts[each.b[0]]]
    pairs = [(_web_pair(each, texts, put), each.is_same) for each in here]
    return pairs, [name for name in QUERY_FILES if not texts[name]]


def read_queries(name: str, data: Path, repositories: Path) -> list[str]:
    """The queries of a file of the data, or else of the repository that they come from; none where it is absent."""
    if (data / name).is_file():
        return [msgspec.json.decode(line)["query"] for line in (data / name).read_bytes().splitlines()]
    git = find_repository(repositories, QUERIES_REPO)
    if git is None:
        return []
    shown = subprocess.run(["git", f"--git-dir={git}", "show", f"HEAD:{name}"], capture_output=True, check=False)
    return [row["doc"] for row in msgspec.json.decode(shown.stdout)] if shown.returncode == 0 else []


def measure_paraphrases(
    pairs: Path = PAIRS, data: Path = DATA, repositories: Path = REPOS, embedder: Embedder | None = None
) -> list[Finding]:
    """Shares served by half and intent, of paraphrases and of the same words again; wrong answers among near misses and
    among all questions kept at once; and the promises."""
    embedder = embedder or open_default()
    same, apart = read_pairs("same", pairs), read_pairs("apart", pairs)
    findings = [_row(half, same, apart, embedder) for half in HALVES]
    findings += [_row_of_intent(intent, same, embedder) for intent in dict.fromkeys(each.intent for each in same)]
    findings += measure_web_queries(pairs, data, repositories, embedder)
    wrong = len(find_hits(apart, embedder))
    held_out = [each for each in same if each.half == "held out"]
    crowd = find_strangers(same, embedder)
    return [
        *findings,
        _promise("paraphrases served", len(same), _served(same, embedder), LEAST_SERVED),
        _promise("paraphrases served, held out", len(held_out), _served(held_out, embedder), LEAST_SERVED),
        _promise("near misses served", len(apart), float(wrong), 0.0, at_least=False),
        _promise("near misses served that find the same", len(apart), float(_found_alike(apart)), 0.0, at_least=False),
        _promise("served by another question", len(same), float(len(crowd)), 0.0, at_least=False),
    ]


def open_default() -> Embedder:
    """The embedder that comes with Clew."""
    embedder = open_embedder("wordllama")
    assert embedder is not None
    return embedder


def measure_web_queries(pairs: Path, data: Path, repositories: Path, embedder: Embedder) -> list[Finding]:
    """Real queries for one function: those that want the same, and those that only share the function."""
    rows, missing = read_web_pairs(data, repositories, pairs)
    findings: list[Finding] = [
        Row(measure=WEB, records=0, contender=name, note="skipped: it is not there") for name in missing
    ]
    for half in HALVES:
        mine = [row for row in rows if row[0].half == half]
        same, apart = (_chosen(mine, is_same=wanted) for wanted in (True, False))
        values = {"served": _served(same, embedder), "apart": float(len(apart))}
        values |= {"wrong": float(len(find_hits(apart, embedder)))}
        findings.append(Row(measure=WEB, records=len(same), contender=half, values=values))
    return findings + asyncio.run(measure_asked(pairs, data, repositories, embedder)) if rows else findings


async def measure_asked(pairs: Path, data: Path, repositories: Path, embedder: Embedder) -> list[Finding]:
    """The same queries put as questions for a model, asked of a resolver."""
    if not (data / CORPUS).is_file():
        return [Row(measure=ASKED, records=0, contender=CORPUS, note="skipped: it is not there")]
    rows, _ = read_web_pairs(data, repositories, pairs, put=FOR_A_MODEL)
    async with open_asking(data, embedder) as asking:
        hits = set(await asking.find_hits(order for pair, _ in rows for order in _orders(pair)))
    halves = [(half, [row for row in rows if row[0].half == half]) for half in HALVES]
    same, apart = (_chosen(rows, is_same=wanted) for wanted in (True, False))
    return [
        *(_row_asked(half, mine, hits, embedder) for half, mine in halves),
        _promise("real web queries served", len(same), _share(same, hits), LEAST_SERVED),
        _promise("real web queries wrongly served", len(apart), _share(apart, hits), 0.0, at_least=False),
    ]


def _row_asked(half: str, rows: Sequence[tuple[Pair, bool]], hits: Set[tuple[str, str]], embedder: Embedder) -> Finding:
    same, apart = (_chosen(rows, is_same=wanted) for wanted in (True, False))
    values = {"served": _share(same, hits), "by words alone": _served(same, embedder), "apart": float(len(apart))}
    values |= {"wrong": 2 * len(apart) * _share(apart, hits)}
    return Row(measure=ASKED, records=len(same), contender=half, values=values)


def _chosen(rows: Iterable[tuple[Pair, bool]], *, is_same: bool) -> list[Pair]:
    return [pair for pair, wants_same in rows if wants_same is is_same]


async def find_shared(data: Path, repositories: Path, embedder: Embedder) -> list[tuple[str, str]]:
    """Of all queries, each asked once, those that are served: by which, and this."""
    queries = [query for name in QUERY_FILES for query in read_queries(name, data, repositories)]
    async with open_asking(data, embedder) as asking:
        return await asking.find_shared(dict.fromkeys(as_a_question(query, FOR_A_MODEL) for query in queries))


def find_hits(pairs: Iterable[Pair], embedder: Embedder) -> list[tuple[str, str]]:
    """What was asked first and what was then served by it, of each pair in both orders."""
    orders = [order for pair in pairs for order in _orders(pair)]
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


def _orders(pair: Pair) -> tuple[tuple[str, str], tuple[str, str]]:
    return (pair.a, pair.b), (pair.b, pair.a)


def _share(pairs: Sequence[Pair], hits: Set[tuple[str, str]]) -> float:
    return sum(order in hits for pair in pairs for order in _orders(pair)) / (2 * len(pairs)) if pairs else 0.0


def _found_alike(pairs: Iterable[Pair]) -> int:
    """How many would be served if both questions of each pair found the very same."""
    served = 0
    for first, second in (order for pair in pairs for order in _orders(pair)):
        cache = IntentCache(ManualClock(_NOW))
        cache.put(first, classify(first), first, found=["one"])
        served += cache.get_found(second, classify(second), found=["one"]) is not None
    return served


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


def _web_pair(reference: Reference, texts: Mapping[str, Sequence[str]], put: str) -> Pair:
    one, other = (as_a_question(texts[name][number - 1], put) for name, number in (reference.a, reference.b))
    return Pair(id=reference.id, half=reference.half, kind="web", a=one, b=other)


def as_a_question(query: str, put: str = AS_A_QUESTION) -> str:
    """A web query as somebody would put it who knows the language of the repository."""
    return put.format(" ".join(_LANGUAGE.sub(" ", query).split()))


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
    parser.add_argument("--repos", type=Path, default=REPOS, help="a folder of git directories")
    parser.add_argument("--show", choices=("tuned", "all"), help="tell the pairs that fail")
    parser.add_argument("--shared", action="store_true", help="tell which of all real queries share an answer")
    given = parser.parse_args()
    if given.shared:
        shared = asyncio.run(find_shared(given.data, given.repos, open_default()))
        print(*(f"{by.partition(': ')[2]} | {query.partition(': ')[2]}" for by, query in shared), sep="\n")
        return
    if given.show:
        print(*tell_failures(given.pairs, given.show, open_default()), sep="\n")
    findings = measure_paraphrases(given.pairs, given.data, given.repos)
    print(render(findings))
    sys.exit(0 if all(each.is_kept for each in findings if isinstance(each, Promise)) else 1)


if __name__ == "__main__":
    main()
