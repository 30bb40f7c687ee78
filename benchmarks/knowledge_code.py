"""Speed of the code index: indexing, detection of changes, lookups of symbols and callers, and memory.

Usage: knowledge_code.py FOLDER... [--only MEASURE,...] [--serena PYTHON]

Each measure takes the folder of a repository and a scratch folder, and returns rows and targets. Folders are read and
never written. Measures: index, noticing, lookups, asks (warm questions in process, with the catalog), memory, beside
(ripgrep, ctags and, with a Python that has it, Serena).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from clew.app import open_app
from clew.catalog.operations.answers import Question
from clew.clock import SystemClock
from clew.config import Config, HygieneConfig
from clew.knowledge.code.files import TEST, kind_of
from clew.knowledge.code.graph import CodeGraph, open_code
from clew.knowledge.code.watch import CodeWatch
from knowledge_peers.raw_tools import measure_beside
from speed.report import Finding, Promise, Row, render
from speed.timing import percentile, tell

LOOKUPS, WALKS, CHANGES, CHANGED = 500, 100, 10, 50
LEAST_RATE, MOST_LOOKUP, MOST_DIRECT, MOST_DEEP = 200.0, 2.0, 5.0, 30.0
MOST_NOTICING, MOST_SEARCHABLE, MOST_CHANGED, MOST_MEMORY = 300.0, 500.0, 2.0, 500.0
MEMORY_SYMBOLS = 100_000
ASKED, ROUNDS, MOST_WARM_ASK = 8, 5, 15.0
"""Symbols that questions are about, the rounds in which each is asked, and the promise in milliseconds."""


async def measure_index(root: Path, scratch: Path) -> list[Finding]:
    """From nothing to all files parsed, stored, searchable and linked by names; then values are followed too."""
    async with open_code(scratch / "index", root, SystemClock(), None) as graph:
        began = time.perf_counter()
        marks: dict[str, float] = {}

        def report(done: int, total: int, what: str) -> None:
            marks.setdefault(what, time.perf_counter() - began)

        done = await graph.refresh(report)
        whole = time.perf_counter() - began
        python = len([file for file in await graph.files() if file.language == "python"])
    seconds = marks.get("following", whole)
    rate = done.files / seconds
    values = {"s": seconds, "files/s": rate, "python files": python, "first s": marks.get("reading", 0.0)}
    values |= {"followed s": whole}
    row = Row(measure="index", records=done.files, contender="clew", values=values)
    return [row, Promise(name="index, files/s", records=done.files, value=rate, target=LEAST_RATE)]


async def measure_noticing(root: Path, scratch: Path) -> list[Finding]:
    """A check of all files without changes, and an update of a copy with some changed files."""
    copy = scratch / "copy"
    shutil.copytree(root, copy, symlinks=True)
    async with open_code(scratch / "noticing", copy, SystemClock(), None) as graph:
        files = (await graph.refresh()).files
        await graph.refresh()  # files that were written a moment ago are read again
        looks = [await _seconds(graph.refresh()) for _ in range(CHANGES)]
        chosen = random.Random(1).sample([file.path for file in await graph.files("**/*.py")], CHANGED)
        for path in chosen:
            with (copy / path).open("a", encoding="utf-8") as file:
                file.write("\n\ndef added_for_measuring():\n    pass\n")
        taken = await _seconds(graph.refresh())
        searchable = await _measure_searchable(graph, copy / chosen[0])
    noticed = 1000 * percentile(looks, 0.5)
    values = {"no change ms": noticed, f"{CHANGED} changed s": taken, "one searchable ms": searchable}
    return [
        Row(measure="noticing", records=files, contender="clew", values=values),
        Promise(name="noticing, ms", records=files, value=noticed, target=MOST_NOTICING, at_least=False),
        Promise(name=f"{CHANGED} changed, s", records=files, value=taken, target=MOST_CHANGED, at_least=False),
        Promise(name="searchable, ms", records=files, value=searchable, target=MOST_SEARCHABLE, at_least=False),
    ]


async def _measure_searchable(graph: CodeGraph, place: Path) -> float:
    """The median milliseconds from writing a file to an answer with the new content."""
    told: asyncio.Queue[object] = asyncio.Queue()

    async def on_change(paths: object, bulk: bool) -> None:
        told.put_nowait(paths)

    found = []
    async with CodeWatch(graph, on_change):
        while not told.empty():
            told.get_nowait()
        for at in range(CHANGES):
            began = time.perf_counter()
            with place.open("a", encoding="utf-8") as file:
                file.write(f"\n\ndef searchable_{at}():\n    pass\n")
            await told.get()
            if not await graph.search(f"searchable_{at}", limit=1):
                raise RuntimeError("the written text is not found")
            found.append(time.perf_counter() - began)
    return 1000 * percentile(found, 0.5)


async def measure_lookups(root: Path, scratch: Path) -> list[Finding]:
    """Symbols by reference, and callers one and three steps away."""
    async with open_code(scratch / "lookups", root, SystemClock(), None) as graph:
        files = (await graph.refresh()).files
        graph.is_watched = True  # as in a long-running program, which does not check all files before each answer
        refs = _some_symbols(graph)
        lookups = [await _seconds(graph.symbol(ref)) for ref in refs[:LOOKUPS]]
        direct = [await _seconds(graph.dependents(ref, edge_type="calls")) for ref in refs[:WALKS]]
        deep = [await _seconds(graph.dependents(ref, edge_type="calls", depth=3)) for ref in refs[:WALKS]]
    found = {"symbol": lookups, "callers": direct, "callers, depth 3": deep}
    values = {f"{name} p95 ms": 1000 * percentile(times, 0.95) for name, times in found.items()}
    targets = (MOST_LOOKUP, MOST_DIRECT, MOST_DEEP)
    return [
        Row(measure="lookups", records=files, contender="clew", values=values),
        *(
            Promise(name=name, records=files, value=value, target=target, at_least=False)
            for (name, value), target in zip(values.items(), targets, strict=True)
        ),
    ]


def _some_symbols(graph: CodeGraph) -> list[str]:
    with graph.store.reading() as sql:
        query = (
            "SELECT f.path || '#' || s.qualname FROM symbols s JOIN files f ON f.id = s.file"
            " WHERE s.kind IN ('function', 'method') ORDER BY s.id"
        )
        found = [ref for (ref,) in sql.execute(query)]
    return random.Random(1).sample(found, min(len(found), LOOKUPS))


async def measure_asks(root: Path, scratch: Path) -> list[Finding]:
    """Questions of several kinds about symbols of the folder, in a process that has answered before and watches the
    files. Cached answers are dropped before each question."""
    copy = scratch / "asks"
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".clew"))
    config = Config(folder=copy / ".clew", hygiene=HygieneConfig(enabled=False))
    took: dict[str, list[float]] = {}
    used: list[float] = []
    async with open_app(config) as app:
        await app.bootstrap()
        knowledge, catalog = app.knowledge(), (await app.workspace()).catalog
        async with CodeWatch(knowledge.code):
            await knowledge.gather()
            asked = [each for symbol in _documented(knowledge.code) for each in _questions(symbol).items()]
            for turn in range(ROUNDS + 1):
                for kind, text in asked:
                    knowledge.resolver.cache.clear()
                    question = Question(query=f"{text} ({turn})")  # the catalog's cache does not know it yet
                    began = time.process_time()
                    seconds = await _seconds(catalog.ask(question, by=app.me))
                    if turn:  # the first turn loads the index
                        took.setdefault(kind, []).append(1000 * seconds)
                        used.append(1000 * (time.process_time() - began))
            files = len(await knowledge.code.files())
    every = [each for times in took.values() for each in times]
    p95 = percentile(every, 0.95)
    values = {"p50 ms": percentile(every, 0.5), "p95 ms": p95, "processor p95 ms": percentile(used, 0.95)}
    values |= {f"{kind} p95 ms": percentile(times, 0.95) for kind, times in took.items()}
    row = Row(measure="asks", records=files, contender="clew", values=values)
    return [row, Promise(name="ask, p95 ms", records=files, value=p95, target=MOST_WARM_ASK, at_least=False)]


class _Documented(NamedTuple):
    path: str
    name: str
    doc: str


def _documented(graph: CodeGraph) -> list[_Documented]:
    """Some functions and classes with descriptions, none of a test."""
    query = (
        "SELECT f.path, s.name, s.doc FROM symbols s JOIN files f ON f.id = s.file"
        " WHERE s.kind IN ('function', 'method', 'class') AND s.doc != '' ORDER BY s.id"
    )
    with graph.store.reading() as sql:
        found = [_Documented(*row) for row in sql.execute(query)]
    own = [each for each in found if not kind_of(each.path, each.name) & TEST] or found
    return random.Random(1).sample(own, min(len(own), ASKED))


def _questions(symbol: _Documented) -> dict[str, str]:
    """A question of each kind about a symbol."""
    words = " ".join(symbol.doc.split()[:10])
    return {
        "place": f"where is the code for this: {words}",
        "name": f"what does {symbol.name} do",
        "uses": f"what calls {symbol.name}",
        "tests": f"which tests cover {symbol.name}",
        "path": f"what is {symbol.path} for",
        "history": f"what changed recently in {symbol.path.rpartition('/')[0] or symbol.path}",
        "unknown": f"where is the teleporter of {symbol.name}s",
    }


_MEASURE_MEMORY = """
import asyncio, resource, sys
from pathlib import Path
from clew.clock import SystemClock
from clew.knowledge.code.graph import open_code
from clew.llm.embedders import open_embedder

async def main():
    embedder = open_embedder("wordllama")
    async with open_code(Path(sys.argv[2]), Path(sys.argv[1]), SystemClock(), embedder) as graph:
        files = (await graph.refresh()).files
        await graph.search("where is the configuration read")
        with graph.store.reading() as sql:
            symbols = sql.execute("SELECT count(*) FROM symbols").fetchone()[0]
        print(files, symbols, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

asyncio.run(main())
"""


async def measure_memory(root: Path, scratch: Path) -> list[Finding]:
    """The peak memory of a process that has indexed, linked and searched, relative to 100,000 symbols."""
    argv = [sys.executable, "-c", _MEASURE_MEMORY, str(root), str(scratch / "memory")]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, check=True)
    files, symbols, kilobytes = map(int, done.stdout.split())
    megabytes = kilobytes / 1000
    values = {"symbols": symbols, "MB": megabytes}
    found: list[Finding] = [Row(measure="memory", records=files, contender="clew", values=values)]
    at_size = megabytes * min(1.0, MEMORY_SYMBOLS / symbols)
    promise = Promise(
        name="memory for 100,000 symbols, MB", records=files, value=at_size, target=MOST_MEMORY, at_least=False
    )
    return [*found, promise]


async def _seconds(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


MEASURES: dict[str, Callable[[Path, Path], Awaitable[list[Finding]]]] = {
    "index": measure_index,
    "noticing": measure_noticing,
    "lookups": measure_lookups,
    "asks": measure_asks,
    "memory": measure_memory,
    "beside": measure_beside,
}


async def measure_code(
    root: Path, scratch: Path, only: Sequence[str] = (), serena: Path | None = None
) -> list[Finding]:
    """The chosen measures of one folder, or all."""
    findings: list[Finding] = []
    for name, measure in (MEASURES | {"beside": partial(measure_beside, serena=serena)}).items():
        if not only or name in only:
            tell(f"{name} of {root.name}")
            findings += await measure(root, scratch)
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a folder of code")
    parser.add_argument("--only", default="", help="only these measures, separated by commas")
    parser.add_argument("--serena", type=Path, help="a Python that has serena and jedi-language-server")
    given = parser.parse_args()
    only = tuple(filter(None, given.only.split(",")))
    for folder in given.folders:
        root = folder.resolve()
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as scratch:
            findings = asyncio.run(measure_code(root, Path(scratch), only, given.serena))
        print(f"## {root.name}\n\n{render(findings)}\n", flush=True)


if __name__ == "__main__":
    main()
