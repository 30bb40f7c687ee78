"""Looking up symbols and making an index, beside ripgrep and Universal Ctags on the same files, in turns, and beside
Serena where it is installed."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.clock import SystemClock
from clew.knowledge.code.graph import CodeGraph, open_code
from knowledge_peers.serena_lookup import has_serena, time_lookups
from speed.report import Finding, Row
from speed.timing import percentile

LOOKUPS, SERENA_LOOKUPS, WARM_UPS = 60, 20, 3
LOOKUP = "symbol by name"
CTAGS = ("ctags", "--quiet", "--options=NONE", "--sort=yes")
RIPGREP = ("rg", "--word-regexp", "--fixed-strings", "--line-number", "--no-messages")


async def measure_beside(root: Path, scratch: Path, serena: Path | None = None) -> list[Finding]:
    """Seconds from nothing to an index, and milliseconds to the definition of a symbol by its name; each with how many
    times as long as ours the other takes."""
    async with open_code(scratch / "beside", root, SystemClock(), None) as graph:
        began = time.perf_counter()
        files = (await graph.refresh()).files
        ours = time.perf_counter() - began
        graph.is_watched = True  # as in a long-running program, which does not check all files before each answer
        tags = scratch / "tags"
        known = await graph.files()
        theirs = _index_with_ctags(root, [file.path for file in known], tags)
        findings = _index_rows(files, ours, theirs)
        findings += await _measure_lookups(graph, root, tags, files)
        python = [file.path for file in known if file.language == "python"]
        return [*findings, _measure_serena(serena, root, python, _some_names(graph, "python"), scratch)]


def _index_with_ctags(root: Path, paths: Sequence[str], tags: Path) -> float | None:
    if shutil.which("ctags") is None:
        return None
    began = time.perf_counter()
    listed = "\n".join(paths).encode()
    subprocess.run([*CTAGS, "-f", tags, "-L", "-"], cwd=root, input=listed, capture_output=True, check=True)
    return time.perf_counter() - began


def _index_rows(files: int, ours: float, theirs: float | None) -> list[Finding]:
    measure = "index beside ctags"
    mine = Row(measure=measure, records=files, contender="clew, calls too", values={"s": ours, "× ours": 1.0})
    if theirs is None:
        return [mine, _skipped(measure, "ctags", "ctags")]
    return [mine, Row(measure=measure, records=files, contender="ctags", values={"s": theirs, "× ours": theirs / ours})]


async def _measure_lookups(graph: CodeGraph, root: Path, tags: Path, files: int) -> list[Finding]:
    """In turns, so that other load on the machine affects all equally."""
    commands: dict[str, Callable[[str], list[str]]] = {
        "ripgrep": lambda name: [*RIPGREP, name, str(root)],
        "readtags": lambda name: ["readtags", "-t", str(tags), name],
        "an empty program": lambda _: ["true"],
    }
    programs = {"ripgrep": "rg", "readtags": "readtags", "an empty program": "true"}
    here = [way for way, program in programs.items() if shutil.which(program) and (way != "readtags" or tags.exists())]
    times: dict[str, list[float]] = {way: [] for way in ("clew", *here)}
    for at, name in enumerate(_some_names(graph)):
        taken = {"clew": await _look_up(graph, name)} | {way: _run(commands[way](name)) for way in here}
        for way, seconds in taken.items() if at >= WARM_UPS else ():
            times[way].append(1000 * seconds)
    if not times["clew"]:
        return [Row(measure=LOOKUP, records=files, contender="clew", note="skipped: there are no symbols")]
    rows = [_row(LOOKUP, files, way, times) for way in times]
    return [*rows, *(_skipped(LOOKUP, way, programs[way]) for way in programs if way not in here)]


def _measure_serena(serena: Path | None, root: Path, paths: Sequence[str], names: Sequence[str], scratch: Path) -> Row:
    """It runs after the others, because it starts slowly."""
    if serena is None or not has_serena(serena):
        note = "skipped: no Python with serena and jedi-language-server was given (--serena PYTHON)"
        return Row(measure=LOOKUP, records=0, contender="serena", note=note)
    if len(names) <= WARM_UPS:
        return Row(measure=LOOKUP, records=0, contender="serena", note="skipped: there are no symbols")
    try:
        first, times = time_lookups(serena, root, paths, names[:SERENA_LOOKUPS], scratch)
    except RuntimeError as error:
        return Row(measure=LOOKUP, records=len(paths), contender="serena", note=f"skipped: {error}")
    values = {"p50 ms": 1000 * percentile(times, 0.5), "p95 ms": 1000 * percentile(times, 0.95), "first s": first}
    return Row(measure=LOOKUP, records=len(paths), contender="serena, Python alone", values=values)


def _row(measure: str, files: int, way: str, times: dict[str, list[float]]) -> Row:
    p50, p95 = (percentile(times[way], share) for share in (0.5, 0.95))
    against = p50 / percentile(times["clew"], 0.5)
    return Row(measure=measure, records=files, contender=way, values={"p50 ms": p50, "p95 ms": p95, "× ours": against})


async def _look_up(graph: CodeGraph, name: str) -> float:
    began = time.perf_counter()
    await graph.symbol(name)
    return time.perf_counter() - began


def _run(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - began


def _some_names(graph: CodeGraph, language: str = "%") -> list[str]:
    """Names of exactly one function or method, ignoring case, so that all tools find the same."""
    query = (
        "SELECT max(s.name) FROM symbols s JOIN files f ON f.id = s.file GROUP BY lower(s.name)"
        " HAVING count(*) = 1 AND max(s.kind) IN ('function', 'method') AND max(f.language) LIKE ? ORDER BY 1"
    )
    with graph.store.reading() as sql:
        found = [name for (name,) in sql.execute(query, (language,))]
    return random.Random(1).sample(found, min(len(found), LOOKUPS + WARM_UPS))


def _skipped(measure: str, contender: str, program: str) -> Row:
    return Row(measure=measure, records=0, contender=contender, note=f"skipped: {program} is not installed")
