"""Issues and commit messages to the files that were changed for them: Clew beside FTS5, ripgrep, ctags and, where it
is installed, aider's repository map, on the same files; and beside these with source files alone."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from knowledge_calls import find_repository
from knowledge_peers.aider_map import AiderMap, has_aider
from knowledge_peers.checkout import Checkout
from knowledge_peers.contender import Contender
from knowledge_peers.ctags import Ctags
from knowledge_peers.fts5 import Fts5
from knowledge_peers.ours import Ours
from knowledge_peers.ripgrep import Ripgrep
from knowledge_peers.sources import SourcesAlone
from ranking import read, score
from speed.report import Finding, Promise, Row
from speed.timing import percentile, tell

QUESTIONS = "code_loc_dev"
MEASURE = "question to files"
SOURCES = ", sources"
LEAST = {"swe-bench-lite": 0.60, "commit": 0.68}


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """How well and how fast one contender answered one question; `number` is its line."""

    repo: str
    number: int
    set: str
    way: str
    ndcg: float
    ms: float
    found: Sequence[str] = ()


class Kept:
    """The answers so far, in a file if one is given, so that an interrupted run can continue."""

    def __init__(self, place: Path | None) -> None:
        self._place = place
        lines = place.read_bytes().splitlines() if place is not None and place.is_file() else []
        self.answers = [msgspec.json.decode(line, type=Answered) for line in lines if line.endswith(b"}")]

    def missing(self, number: int, ways: Sequence[str]) -> list[str]:
        """The contenders that have not answered a question yet."""
        answered = {each.way for each in self.answers if each.number == number}
        return [way for way in ways if way not in answered]

    def add(self, answers: Sequence[Answered]) -> None:
        self.answers += answers
        if self._place is not None:
            with self._place.open("ab") as file:
                file.writelines(msgspec.json.encode(each) + b"\n" for each in answers)


def measure_localisation(
    data: Path,
    repositories: Path,
    *,
    every: int = 1,
    only: Sequence[str] = (),
    ways: Sequence[str] = (),
    aider: Path | None = None,
    kept: Path | None = None,
) -> list[Finding]:
    """nDCG@10 by set and contender, milliseconds per question, and the targets. Missing contenders are skipped and
    named."""
    place = data / f"{QUESTIONS}.jsonl"
    if not place.is_file():
        return [_skipped("clew", f"{place.name} is not there")]
    rows = [{**row, "number": number} for number, row in enumerate(read(place), 1)][::every]
    able, findings = _ways(aider)
    ways = [way for way in able if not ways or way in ways]
    answers = Kept(kept)
    for name in dict.fromkeys(row["repo"] for row in rows if not only or row["repo"] in only):
        git = find_repository(repositories, name)
        if git is None:
            findings.append(_skipped("clew", f"{name} is not among the repositories"))
            continue
        missing = {row["number"]: answers.missing(row["number"], ways) for row in rows if row["repo"] == name}
        asked = [{**row, "ways": missing[row["number"]]} for row in rows if missing.get(row["number"])]
        tell(f"{name}: {len(asked)} questions")
        for some in _answer(git, asked, aider):
            answers.add(some)
    numbers = {row["number"] for row in rows}
    return [*_rows([each for each in answers.answers if each.number in numbers and each.way in ways]), *findings]


def _ways(aider: Path | None) -> tuple[list[str], list[Finding]]:
    """The contenders that can run, and rows that name the others."""
    missing = {
        "ripgrep": "" if shutil.which("rg") else "rg is not installed",
        "ctags": "" if shutil.which("ctags") else "ctags is not installed",
        "aider": "" if has_aider(aider) else "no Python with aider was given (--aider PYTHON)",
    }
    here = ["fts5", *(way for way, reason in missing.items() if not reason)]
    both = [way + which for way in here for which in ("", SOURCES)]
    return ["clew", *both], [_skipped(way, reason) for way, reason in missing.items() if reason]


def _answer(git: Path, rows: Sequence[Mapping[str, Any]], aider: Path | None) -> Iterator[list[Answered]]:
    """The answers of its contenders to each question, at the commit that it was asked at."""
    ways = dict.fromkeys(way for row in rows for way in row["ways"])
    if not ways:
        return
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        contenders = {way: _open(way, tree, Path(folder), aider) for way in ways}
        checkout = Checkout(git, tree, contenders)
        for row in rows:
            checkout.move_to(row["base_commit"])
            yield [_ask(way, contenders[way], row) for way in row["ways"]]
        for contender in contenders.values():
            contender.close()


def _open(way: str, tree: Path, folder: Path, aider: Path | None) -> Contender:
    if way.endswith(SOURCES):
        return SourcesAlone(_open(way.removesuffix(SOURCES), tree, folder, aider))
    if way == "clew":
        return Ours(folder)
    if way == "fts5":
        return Fts5()
    if way == "ripgrep":
        return Ripgrep(tree)
    if way == "ctags":
        return Ctags(tree)
    assert aider is not None
    return AiderMap(tree, aider)


def _ask(way: str, contender: Contender, row: Mapping[str, Any]) -> Answered:
    began = time.perf_counter()
    found = contender.search(row["query"])
    taken = 1000 * (time.perf_counter() - began)
    ndcg = score(found, dict(row))["ndcg"]
    return Answered(repo=row["repo"], number=row["number"], set=row["set"], way=way, ndcg=ndcg, ms=taken, found=found)


def _rows(answers: Sequence[Answered]) -> list[Finding]:
    """A row for each set and contender, and the targets of Clew."""
    findings: list[Finding] = []
    for name in dict.fromkeys(each.set for each in answers):
        of_set = [each for each in answers if each.set == name]
        for way in dict.fromkeys(each.way for each in of_set):
            mine = [each for each in of_set if each.way == way]
            times = [each.ms for each in mine]
            values = {
                "nDCG@10": statistics.mean(each.ndcg for each in mine),
                "ms": statistics.mean(times),
                "p95 ms": percentile(times, 0.95),
            }
            findings.append(Row(measure=f"{MEASURE}, {name}", records=len(mine), contender=way, values=values))
        ours = [each.ndcg for each in of_set if each.way == "clew"]
        if name in LEAST and ours:
            promise = Promise(
                name=f"{MEASURE}, {name}, nDCG@10", records=len(ours), value=statistics.mean(ours), target=LEAST[name]
            )
            findings.append(promise)
    return findings


def _skipped(contender: str, reason: str) -> Row:
    return Row(measure=MEASURE, records=0, contender=contender, note=f"skipped: {reason}")
