"""Whether `clew ask` finds the literal of a pasted message, whose placeholders have values in it.

Usage: asking_messages.py --repos DIR [--number N] [--clew PROGRAM] [--json FILE]

DIR holds git directories (`owner+name/repo`, `owner/name` or `name`). From the newest commit of each repository, up to
N literals with placeholders are drawn with a fixed seed, in code that is neither a test nor beside the product. Their
placeholders are filled in with random values. A hit is a citation among the first k of a line with that literal.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from asking import Place, ask
from clew.knowledge.code.files import kind_of
from knowledge_calls import find_repository
from speed.report import Finding, Row, describe_machine, render, write_json
from speed.timing import tell

REPOSITORIES = (
    *("BurntSushi/ripgrep", "clap-rs/clap", "encode/httpx", "expressjs/express", "fastify/fastify", "gin-gonic/gin"),
    *("google/gson", "honojs/hono", "pallets/werkzeug", "psf/requests", "pytest-dev/pytest", "sinatra/sinatra"),
    "spf13/cobra",
)
SEED, PER_REPOSITORY, MAX_LINE = 20, 15, 400
LEAST_WORDS, LEAST_LETTERS = 3, 12
"""Literals with less constant text are no messages."""
_C_LIKE = r"%[-+#0]*\d*(?:\.\d+)?[a-zA-Z]"
PLACEHOLDERS = {
    ".py": (r"f?([\"'])(?P<text>(?:(?!\1)[^\\]){12,})\1", r"%(?:\(\w+\))?[-+#0]*[sdrif]|\{[^{}]*\}"),
    ".go": (r"\"(?P<text>(?:[^\"\\]|\\.){12,})\"", _C_LIKE),
    ".java": (r"\"(?P<text>(?:[^\"\\]|\\.){12,})\"", _C_LIKE),
    ".rs": (r"\"(?P<text>(?:[^\"\\]|\\.){12,})\"", r"\{[^{}]*\}"),
    ".js": (r"`(?P<text>[^`\\]{12,})`", r"\$\{[^{}]*\}"),
    ".ts": (r"`(?P<text>[^`\\]{12,})`", r"\$\{[^{}]*\}"),
    ".rb": (r"\"(?P<text>(?:[^\"\\]|\\.){12,})\"", r"#\{[^{}]*\}"),
}
"""By file ending, the patterns of literals and of their placeholders."""
WORDS = ("kestrel", "/srv/marble/lantern.cfg", "oblong", "Thistle", "quartz-7", "amber_pike", "f3c9", "two herons")


class DrawnLiteral(NamedTuple):
    """A literal with placeholders, as a message with values, and the lines that have it."""

    message: str
    places: tuple[Place, ...]


def draw(folder: Path, number: int, chance: random.Random) -> list[DrawnLiteral]:
    """Some literals of a checked out repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True).stdout
    found: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for path in listed.splitlines():
        ending = Path(path).suffix
        if ending in PLACEHOLDERS and not kind_of(path) and not path.endswith("test.go"):
            for line, text in _literals(folder / path, ending):
                found[ending, text].append(Place(path, line, line))
    chosen = chance.sample(sorted(found), min(number, len(found)))
    return [
        DrawnLiteral(_filled(text, PLACEHOLDERS[ending][1], chance), tuple(found[ending, text]))
        for ending, text in chosen
    ]


def _literals(file: Path, ending: str) -> Iterator[tuple[int, str]]:
    literal, placeholder = PLACEHOLDERS[ending]
    in_tests = False
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        in_tests = in_tests or "#[cfg(test)]" in line
        if in_tests or len(line) > MAX_LINE or line.lstrip().startswith(("//", "#", "*")):
            continue
        for match in re.finditer(literal, line):
            constants = re.split(placeholder, match["text"])
            words = re.findall(r"[A-Za-z]{2,}", " ".join(constants))
            if len(constants) > 1 and len(words) >= LEAST_WORDS and sum(map(len, words)) >= LEAST_LETTERS:
                yield number, match["text"]


def _filled(text: str, placeholder: str, chance: random.Random) -> str:
    """A message made from a literal."""

    def value(found: re.Match[str]) -> str:
        if found[0].endswith("d"):
            return str(chance.randrange(2, 5_000))
        word = chance.choice(WORDS)
        return f'"{word}"' if found[0].endswith("q") else word

    filled = re.sub(placeholder, value, text)
    return " ".join(re.sub(r"\\(.)", lambda found: " " if found[1] in "nrt" else found[1], filled).split())


def measure(repos: Path, program: str, number: int) -> list[Finding]:
    chance = random.Random(SEED)
    ranks: list[int] = []
    lines = 0
    findings: list[Finding] = []
    for repo in REPOSITORIES:
        git = find_repository(repos, repo)
        if git is None:
            note = f"skipped: {repo} is not among the repositories"
            findings.append(Row(measure="pasted messages", records=0, contender="clew", note=note))
            continue
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as scratch:
            folder = Path(scratch) / repo.rpartition("/")[2]
            subprocess.run(["git", "clone", "-q", str(git), str(folder)], check=True, capture_output=True)
            literals = draw(folder, number, chance)
            tell(f"{repo}: {len(literals)} messages")
            subprocess.run([program, "index"], cwd=folder, check=False, capture_output=True)
            for each in literals:
                cited = ask(program, folder, each.message) or []
                ranks.append(next((rank for rank, one in enumerate(cited, 1) if _has_line(one, each)), 0))
                lines += bool(cited) and cited[0] in each.places
    total = len(ranks) or 1
    values = {f"hit@{k}": sum(0 < rank <= k for rank in ranks) / total for k in (1, 3)}
    values["first cites the line alone"] = lines / total
    return [*findings, Row(measure="pasted messages", records=len(ranks), contender="clew ask", values=values)]


def _has_line(cited: Place, literal: DrawnLiteral) -> bool:
    return any(cited.path == place.path and cited.start <= place.start <= cited.end for place in literal.places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True, help="a folder of git directories")
    parser.add_argument("--number", type=int, default=PER_REPOSITORY, help="messages of each repository")
    parser.add_argument("--clew", default=str(Path(sys.executable).with_name("clew")))
    parser.add_argument("--json", type=Path, help="where the results go")
    given = parser.parse_args()
    findings = measure(given.repos, given.clew, given.number)
    print(render(findings))
    if given.json:
        write_json(given.json, findings, {"machine": describe_machine(Path(__file__).parent)})


if __name__ == "__main__":
    main()
