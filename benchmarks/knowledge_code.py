"""Speed of the code index: indexing, detection of changes, lookups of symbols and callers, and memory.

Usage: knowledge_code.py FOLDER... [--only MEASURE,...] [--serena PYTHON]

Each measure takes the folder of a repository and a scratch folder, and returns rows and targets. Folders are read and
never written. Measures: index, noticing, lookups, memory, beside (ripgrep, ctags and, with a Python that has it,
Serena).
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

from clew.clock import SystemClock
from clew.knowledge.code.graph import CodeGraph, open_code
from clew.knowledge.code.watch import CodeWatch
from knowledge_peers.raw_tools import measure_beside
from speed.report import Finding, Promise, Row, render
from speed.timing import percentile, tell

LOOKUPS, WALKS, CHANGES, CHANGED = 500, 100, 10, 50
LEAST_RATE, MOST_LOOKUP, MOST_DIRECT, MOST_DEEP = 200.0, 2.0, 5.0, 30.0
MOST_NOTICING, MOST_SEARCHABLE, MOST_CHANGED, MOST_MEMORY = 300.0, 500.0, 2.0, 500.0
MEMORY_SYMBOLS = 100_000


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
