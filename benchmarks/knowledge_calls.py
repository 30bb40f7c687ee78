"""The call graph: small Python programs whose calls are all known, next to a search by name; the callers of random
functions of four repositories; and the time to follow the calls of a whole folder.

Usage: knowledge_calls.py [--data DIR] [--repos DIR] [--folder DIR] [--callers]

`callers/sample.jsonl` has 60 functions, drawn at random (seeded) from the code outside tests and examples, with their
callers: established by reading every line with the name, for Python also by a trace of the repository's own tests. A
function calls another if it names it, constructs its class, reads it as a property, or iterates, enters or indexes its
object. Operators, truth tests and built-ins such as `repr` are listed as `implicit` and count in the last column only.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.clock import SystemClock
from clew.knowledge.code.graph import open_code
from clew.knowledge.code.python_calls.modules import Modules
from clew.knowledge.code.python_calls.program import PythonFlow
from clew.knowledge.code.python_calls.statements import summarize
from speed.report import Finding, Promise, Row, render

ROOT = Path(__file__).resolve().parents[2]
DATA, REPOS = ROOT / "shared" / "data", ROOT / "repositories"
QUESTIONS = "callgraph_dev"
SAMPLE = Path(__file__).parent / "callers" / "sample.jsonl"
LEAST_F1 = 0.95
LEAST_RECALL, LEAST_PRECISION = 0.93, 0.97
MOST_SECONDS = 2.0
"""For a thousand files, from their summaries to all calls."""
_CALL = re.compile(r"\b(\w+)\s*\(")
_SCOPE = re.compile(r"^(\s*)(?:async\s+)?(?:def|class)\s+(\w+)")

Callers = Callable[[Mapping[str, bytes]], Mapping[str, set[str]]]


def measure_calls(data: Path, repositories: Path) -> list[Finding]:
    """Precision, recall and F1 over pairs of question and caller, by feature and in all; and the middle F1 of a
    question. Empty, with a note, if the set or its repository is missing."""
    place = data / f"{QUESTIONS}.jsonl"
    if not place.is_file():
        return [_skipped(f"{place.name} is not there")]
    rows = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
    git = find_repository(repositories, rows[0]["repo"])
    if git is None:
        return [_skipped(f"{rows[0]['repo']} is not among the repositories")]
    programs = {path: read_program(git, rows[0]["commit"], path) for path in dict.fromkeys(row["path"] for row in rows)}
    contenders: dict[str, Callers] = {"clew": follow, "names alone": by_name}
    findings: list[Finding] = []
    for name, ask in contenders.items():
        found = {path: ask(program) for path, program in programs.items()}
        answers = [(row, found[row["path"]].get(row["callee"], set())) for row in rows]
        findings += _rows(name, answers)
        if name == "clew":
            f1 = _scores(answers)["F1"]
            findings.append(Promise(name="who calls what, F1", records=len(rows), value=f1, target=LEAST_F1))
    return findings


def measure_callers(repositories: Path) -> list[Finding]:
    """Precision and recall of callers over pairs of function and caller: certain ones, and with likely ones."""
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    answers: list[tuple[dict[str, Any], set[str], set[str]]] = []
    for name in dict.fromkeys(row["repo"] for row in rows):
        git = find_repository(repositories, name)
        if git is None:
            return [_skipped(f"{name} is not among the repositories", "callers of random functions")]
        asked = [row for row in rows if row["repo"] == name]
        with tempfile.TemporaryDirectory() as folder:
            _extract(git, asked[0]["commit"], Path(folder, "tree"))
            answers += asyncio.run(_ask_callers(Path(folder), asked))
    certain = _caller_scores([(row, found) for row, found, _ in answers])
    listed = _caller_scores([(row, found | likely) for row, found, likely in answers])
    measure, records = "callers of random functions", len(rows)
    return [
        Row(measure=measure, records=records, contender="clew, without likely ones", values=certain),
        Row(measure=measure, records=records, contender="clew", values=listed),
        Promise(name="callers, recall", records=records, value=listed["recall"], target=LEAST_RECALL),
        Promise(name="callers, precision", records=records, value=listed["precision"], target=LEAST_PRECISION),
    ]


async def _ask_callers(folder: Path, rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], set[str], set[str]]]:
    """By function, its callers and its likely callers as `path#qualname`."""
    answers = []
    async with open_code(folder / "index", folder / "tree", SystemClock(), None) as graph:
        await graph.refresh()
        for row in rows:
            found = await graph.callers(f"{row['path']}#{row['symbol']}")
            links = {link.node.id.removeprefix("code:") for each in found.symbols for link in each.callers}
            likely = {f"{call.path}#{call.caller}".rstrip("#") for call in found.places if call.is_likely}
            answers.append((row, links, likely))
    return answers


def _caller_scores(answers: Sequence[tuple[dict[str, Any], set[str]]]) -> dict[str, float]:
    right = sum(len(found & set(row["callers"])) for row, found in answers)
    wanted = sum(len(row["callers"]) for row, _ in answers)
    implicit = sum(len(row.get("implicit", ())) for row, _ in answers)
    each = [len(found & set(row["callers"])) / len(row["callers"]) for row, found in answers if row["callers"]]
    return {
        "precision": right / max(1, sum(len(found) for _, found in answers)),
        "recall": right / max(1, wanted),
        "mean recall": sum(each) / max(1, len(each)),
        "recall with implicit": right / max(1, wanted + implicit),
    }


def measure_speed(folder: Path) -> list[Finding]:
    """Summaries of all Python files of a folder, following their calls, and following them again after a change."""
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.py"))}
    began = time.perf_counter()
    summaries = {path: summarize(content) for path, content in contents.items()}
    summarized = time.perf_counter()
    flow = PythonFlow(summaries)
    calls = sum(len(flow.calls(path)) for path in summaries)
    followed = time.perf_counter() - summarized
    changes = []
    for path in sorted(summaries)[:: max(1, len(summaries) // 20)]:
        start = time.perf_counter()
        flow.update({path: summaries[path]})
        changes.append(time.perf_counter() - start)
    values = {
        "summaries files/s": len(contents) / (summarized - began),
        "calls": calls,
        "following s": followed,
        "a change ms": 1000 * sorted(changes)[len(changes) // 2],
    }
    thousand, files = followed * 1_000 / max(1, len(contents)), len(contents)
    return [
        Row(measure="following calls", records=files, contender="clew", values=values),
        Promise(name="following 1,000 files, s", records=files, value=thousand, target=MOST_SECONDS, at_least=False),
    ]


def find_repository(repositories: Path, name: str) -> Path | None:
    """The git directory of a repository: `owner+name/repo`, `owner+name`, `owner/name` or `name`, bare or not."""
    joined = name.replace("/", "+")
    for place in (f"{joined}/repo", joined, name, name.rpartition("/")[2]):
        for git in (repositories / place / ".git", repositories / place):
            if (git / "HEAD").is_file():
                return git
    return None


def _archive(git: Path, tree: str) -> tarfile.TarFile:
    command = ["git", f"--git-dir={git}", "archive", tree]
    return tarfile.open(fileobj=io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout))


def _extract(git: Path, commit: str, folder: Path) -> None:
    with _archive(git, commit) as files:
        files.extractall(folder, filter="data")


def read_program(git: Path, commit: str, path: str) -> dict[str, bytes]:
    """The Python files of one small program."""
    with _archive(git, f"{commit}:{path}") as files:
        members = [member for member in files if member.isfile() and member.name.endswith(".py")]
        return {member.name: files.extractfile(member).read() for member in members}  # type: ignore[union-attr]


def follow(program: Mapping[str, bytes]) -> Mapping[str, set[str]]:
    """By callee, the callers that Clew finds, in the notation of the set."""
    modules = Modules(program)
    flow = PythonFlow({path: summarize(content) for path, content in program.items()})
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in program:
        for call in flow.calls(path):
            name = _joined(modules.name(call.target_path), call.target)
            found[name].add(_joined(modules.name(path), call.caller))
    return found


def by_name(program: Mapping[str, bytes]) -> Mapping[str, set[str]]:
    """The results of a search by name: each symbol whose last name is written before a bracket counts as called
    there."""
    modules = Modules(program)
    defined: defaultdict[str, set[str]] = defaultdict(set)
    written: list[tuple[str, str]] = []
    for path, content in program.items():
        scopes: list[tuple[int, str]] = []
        for line in content.decode(errors="replace").splitlines():
            depth = len(line) - len(line.lstrip())
            scopes = [scope for scope in scopes if scope[0] < depth] if line.strip() else scopes
            around = _joined(modules.name(path), *(name for _, name in scopes))
            if scope := _SCOPE.match(line):
                scopes.append((depth, scope[2]))
                defined[scope[2]].add(_joined(around, scope[2]))
            else:
                written += [(name, around) for name in _CALL.findall(line)]
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, around in written:
        for callee in defined[name]:
            found[callee].add(around)
    return found


def _rows(contender: str, answers: Sequence[tuple[dict[str, Any], set[str]]]) -> list[Finding]:
    by_feature: defaultdict[str, list[tuple[dict[str, Any], set[str]]]] = defaultdict(list)
    for answer in answers:
        by_feature[answer[0]["feature"]].append(answer)
    parts = {**dict(sorted(by_feature.items())), "all": list(answers)}
    return [
        Row(measure=f"who calls what: {part}", records=len(some), contender=contender, values=_scores(some))
        for part, some in parts.items()
    ]


def _scores(answers: Sequence[tuple[dict[str, Any], set[str]]]) -> dict[str, float]:
    """Over all pairs, and the mean F1 of a question."""
    pairs = [(found, set(row["relevant"])) for row, found in answers]
    right = sum(len(found & wanted) for found, wanted in pairs)
    given, wanted_all = sum(len(found) for found, _ in pairs), sum(len(wanted) for _, wanted in pairs)
    each = [2 * len(found & wanted) / (len(found) + len(wanted)) for found, wanted in pairs]
    return {
        "precision": right / max(1, given),
        "recall": right / max(1, wanted_all),
        "F1": 2 * right / max(1, given + wanted_all),
        "macro F1": sum(each) / max(1, len(each)),
    }


def _joined(*names: str) -> str:
    return ".".join(name for name in names if name)


def _skipped(reason: str, measure: str = "who calls what: all") -> Row:
    return Row(measure=measure, records=0, contender="clew", note=f"skipped: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repos", type=Path, default=REPOS, help="a folder of git directories")
    parser.add_argument("--folder", type=Path, help="a folder of Python files for the time measurements")
    parser.add_argument("--callers", action="store_true", help="ask for the callers of random functions too")
    arguments = parser.parse_args()
    findings = measure_calls(arguments.data, arguments.repos)
    if arguments.callers:
        findings += measure_callers(arguments.repos)
    if arguments.folder is not None:
        findings += measure_speed(arguments.folder)
    sys.stdout.write(render(findings) + "\n")


if __name__ == "__main__":
    main()
