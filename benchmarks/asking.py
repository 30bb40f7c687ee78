"""How well `clew ask` answers questions about repositories, next to three simpler ways in the same run.

Usage: asking.py --repos DIR [--questions FILE]... [--clew PROGRAM] [--every N] [--json FILE]

Each question names a repository and a commit. DIR holds git directories (`owner+name/repo`, `owner/name` or `name`);
each repository is checked out into a scratch folder, and `clew ask --json QUESTION` runs there. A hit is a citation
among the first k that overlaps a gold range, or is a gold commit. An unanswerable question counts as recognised if the
answer has no citation. Beside it: SQLite FTS5 over windows of 40 lines, the same fused with the default embedder, and
ripgrep. Without --questions: ../shared/data/asking_dev.jsonl, and the questions in benchmarks/asking, which were
written before anybody saw an answer. Missing data and missing repositories are skipped, and named. The exit code is 1
if a figure misses its target on the dev set.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clew.knowledge.base import LATE
from clew.llm.embedders import open_embedder
from knowledge_calls import find_repository
from knowledge_peers.words import words_of
from speed.report import Finding, Promise, Row, describe_machine, render, write_json
from speed.timing import percentile, tell

HERE = Path(__file__).resolve().parent
DEV = HERE.parents[1] / "shared" / "data" / "asking_dev.jsonl"
OWN = tuple(HERE / "asking" / f"{name}.jsonl" for name in ("questions", "blind", "blind_second"))
WINDOW, STEP, SHOWN, LOOKED_AT = 40, 20, 6, 200
FUSION = 20
MAX_BYTES = 1_000_000
TARGETS = {"hit@1": 0.55, "hit@3": 0.72, "hit@6": 0.82}
LOCATE_TARGET, UNKNOWN_TARGET, SILENT_TARGET = 0.65, 0.5, 0.05


class Place(NamedTuple):
    """A cited range of lines, or a commit."""

    path: str = ""
    start: int = 0
    end: int = 0
    commit: str = ""


class Score:
    """Hits of one way to answer, by kind of question."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, row: dict[str, Any], cited: Sequence[Place]) -> None:
        at = next((rank for rank, place in enumerate(cited[:SHOWN], 1) if fits(place, row["gold"])), 0)
        for key in ("all", row["kind"]):
            count = self.counts[key]
            if row["unknown"]:
                count.update(unknown=1, recognised=int(not cited))
                continue
            hits = {f"hit@{k}": int(0 < at <= k) for k in (1, 3, 6)}
            count.update(asked=1, silent=int(not cited), **hits)

    def share(self, name: str, kind: str = "all") -> float:
        count = self.counts[kind]
        return count[name] / (count["asked"] or 1)

    @property
    def recognised(self) -> float:
        return self.counts["all"]["recognised"] / (self.counts["all"]["unknown"] or 1)


def fits(place: Place, gold: Sequence[dict[str, Any]]) -> bool:
    """Whether a citation overlaps a gold range or is a gold commit."""
    if place.commit:
        return any(each.get("commit", "").startswith(place.commit[:10]) for each in gold)
    return any(
        each.get("path") == place.path and place.start <= each["end"] and place.end >= each["start"] for each in gold
    )


def ask(program: str, folder: Path, question: str) -> list[Place] | None:
    """The citations of `clew ask --json`; None where it failed or was late."""
    done = subprocess.run(
        [program, "ask", "--json", question], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        return None
    if LATE in answer["notes"]:
        return None
    return [
        Place(each.get("path", ""), each.get("start", 0), each.get("end", 0), each.get("commit", ""))
        for each in answer["known"]
        if each.get("path") or each.get("commit")
    ]


class Windows:
    """A repository in overlapping windows, searched by words, by words and vectors, and with ripgrep."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: list[Place] = []
        self._sql = sqlite3.connect(":memory:")
        self._sql.execute("CREATE VIRTUAL TABLE t USING fts5(path, body, tokenize='porter unicode61')")
        texts = [self._put(path, start, lines) for path, start, lines in _windows(folder)]
        self._embedder = open_embedder("wordllama")
        self._vectors = _normed(self._embedder.embed([text[:2_000] for text in texts])) if self._embedder else None

    def search(self, question: str) -> Iterator[tuple[str, list[Place]]]:
        words = words_of(question)
        by_words = self._by_words(words)
        yield "fts5, windows", self._distinct(by_words)
        if self._embedder is not None and self._vectors is not None:
            vector = _normed(self._embedder.embed([" ".join(words)]))[0]
            nearest = np.argsort(-(self._vectors @ vector))[:LOOKED_AT].tolist()
            scores: Counter[int] = Counter()
            for order in (by_words, nearest):
                scores.update({at: 1 / (FUSION + rank) for rank, at in enumerate(order)})
            yield "fts5 and wordllama, windows", self._distinct([at for at, _ in scores.most_common()])
        if shutil.which("rg"):
            yield "ripgrep", self._ripgrep(words)

    def _put(self, path: str, start: int, lines: Sequence[str]) -> str:
        self._places.append(Place(path, start + 1, start + len(lines)))
        split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", "\n".join(lines)).replace("_", " ")
        self._sql.execute("INSERT INTO t VALUES (?, ?)", (path.replace("/", " "), split))
        return f"{path.replace('/', ' ')} {split}"

    def _by_words(self, words: Sequence[str]) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in words)
        sql = f"SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t, 2, 1) LIMIT {LOOKED_AT}"
        return [row - 1 for (row,) in self._sql.execute(sql, (match,))] if match else []

    def _ripgrep(self, words: Sequence[str]) -> list[Place]:
        """Lines with the most of the words, rare words first, one a file."""
        if not words:
            return []
        patterns = [part for word in words for part in ("-e", word)]
        command = ["rg", "--ignore-case", "--fixed-strings", "--line-number", "--no-heading", "--max-columns", "300"]
        done = subprocess.run([*command, *patterns, "."], cwd=self._folder, capture_output=True, check=False)
        printed = done.stdout.decode(errors="replace")
        lines = [line.removeprefix("./").split(":", 2) for line in printed.splitlines()]
        whole = [each for each in lines if len(each) == 3 and each[1].isdigit()]
        found = [(path, int(number), text.lower()) for path, number, text in whole]
        holders = Counter(word for _, _, text in found for word in words if word in text)
        scored = [
            (sum(math.log(1 + len(found) / holders[word]) for word in words if word in text), path, line)
            for path, line, text in found
        ]
        best: dict[str, Place] = {}
        for _, path, line in sorted(scored, key=lambda each: -each[0])[: 10 * LOOKED_AT]:
            best.setdefault(path, Place(path, max(1, line - STEP), line + STEP))
        return list(best.values())[:SHOWN]

    def _distinct(self, order: Sequence[int]) -> list[Place]:
        found: list[Place] = []
        for at in order:
            place = self._places[at]
            if not any(place.path == one.path and place.start <= one.end and one.start <= place.end for one in found):
                found.append(place)
        return found[:SHOWN]


def _windows(folder: Path) -> Iterator[tuple[str, int, list[str]]]:
    listed = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True).stdout
    for path in filter(None, listed.split("\n")):
        file = folder / path
        if file.is_symlink() or not file.is_file() or file.stat().st_size > MAX_BYTES:
            continue
        try:
            lines = file.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError:
            continue
        for start in range(0, len(lines), STEP):
            yield path, start, lines[start : start + WINDOW]


def _normed(vectors: Sequence[bytes]) -> np.ndarray:
    found = np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


def measure(questions: Path, repos: Path, program: str, every: int) -> list[Finding]:
    """The figures of one set of questions."""
    if not questions.is_file():
        return [Row(measure=questions.name, records=0, contender="clew", note=f"skipped: {questions} is not there")]
    rows = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()][::every]
    scores: defaultdict[str, Score] = defaultdict(Score)
    findings: list[Finding] = []
    seconds: list[float] = []
    for repo in dict.fromkeys(row["repo"] for row in rows):
        git = find_repository(repos, repo)
        if git is None:
            note = f"skipped: {repo} is not among the repositories"
            findings.append(Row(measure=questions.name, records=0, contender="clew", note=note))
            continue
        asked = [row for row in rows if row["repo"] == repo]
        tell(f"{repo}: {len(asked)} questions")
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as scratch:
            folder = Path(scratch) / repo.rpartition("/")[2]
            subprocess.run(["git", "clone", "-q", str(git), str(folder)], check=True, capture_output=True)
            subprocess.run(["git", "-C", str(folder), "checkout", "-q", asked[0]["commit"]], check=True)
            windows = Windows(folder)
            subprocess.run([program, "index"], cwd=folder, check=False, capture_output=True)
            for row in asked:
                began = time.perf_counter()
                answered = ask(program, folder, row["question"])
                scores["clew ask"].add(row, answered or [])
                seconds.append(time.perf_counter() - began)
                if answered is None:
                    note = f"counted as silent: {row['id']} failed or was late"
                    findings.append(Row(measure=questions.name, records=0, contender="clew", note=note))
                for way, cited in windows.search(row["question"]):
                    scores[way].add(row, cited)
    return [*findings, *_findings(questions.name, scores, len(rows), seconds, is_dev=questions == DEV)]


def _findings(
    name: str, scores: dict[str, Score], number: int, seconds: Sequence[float], *, is_dev: bool
) -> Iterator[Finding]:
    for way, score in scores.items():
        shares = {hit: score.share(hit) for hit in TARGETS} | {"locate hit@3": score.share("hit@3", "locate")}
        more = {"silent": score.share("silent"), "unknown recognised": score.recognised}
        yield Row(measure=name, records=number, contender=way, values={**shares, **more})
    ours = scores.get("clew ask")
    if ours is None:
        return
    yield Row(
        measure=f"{name}, seconds of a whole process",
        records=len(seconds),
        contender="clew ask",
        values={"p50": percentile(seconds, 0.5), "p95": percentile(seconds, 0.95)},
    )
    if not is_dev:
        return
    for hit, target in TARGETS.items():
        yield Promise(name=f"{name}, {hit}", records=number, value=ours.share(hit), target=target)
    yield Promise(name="where, hit@3", records=number, value=ours.share("hit@3", "locate"), target=LOCATE_TARGET)
    yield Promise(name="unanswerable recognised", records=number, value=ours.recognised, target=UNKNOWN_TARGET)
    silent = ours.share("silent")
    yield Promise(name="silent though answerable", records=number, value=silent, target=SILENT_TARGET, at_least=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True, help="a folder of git directories")
    parser.add_argument("--questions", type=Path, action="append", help="a file of questions; may be repeated")
    parser.add_argument("--clew", default=str(Path(sys.executable).with_name("clew")))
    parser.add_argument("--every", type=int, default=1, help="use each N-th question only")
    parser.add_argument("--json", type=Path, help="where the results go")
    given = parser.parse_args()
    findings = [
        found
        for questions in given.questions or (DEV, *OWN)
        for found in measure(questions, given.repos, given.clew, given.every)
    ]
    print(render(findings))
    if given.json:
        write_json(given.json, findings, {"machine": describe_machine(HERE)})
    sys.exit(any(isinstance(each, Promise) and not each.is_kept for each in findings))


if __name__ == "__main__":
    main()
