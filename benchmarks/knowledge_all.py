"""All benchmarks of knowledge, one after the other, and at the end the skipped parts and missed targets.

Usage: knowledge_all.py [--data DIR] [--repos DIR] [--aider PYTHON] [--serena PYTHON] [--kept FILE] [--only PART,...]
                        [FOLDER...]

Parts: beliefs, calls, search, code. The speed of the index is measured on these folders, by default on this repository.
The exit code is 1 if a target was missed or a part could not be run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA, REPOS = ROOT / "shared" / "data", ROOT / "repositories"
MISSED, SKIPPED = "| **no** |", "skipped: "


def commands(given: argparse.Namespace) -> dict[str, list[str]]:
    """The arguments of each part."""
    where = ["--data", str(given.data), "--repos", str(given.repos)]
    aider = ["--aider", str(given.aider)] if given.aider else []
    serena = ["--serena", str(given.serena)] if given.serena else []
    kept = ["--kept", str(given.kept)] if given.kept else []
    folders = [str(folder) for folder in given.folders or [HERE.parent]]
    return {
        "beliefs": [],
        "calls": where,
        "search": [*where, *aider, *kept],
        "code": [*folders, *serena],
    }


def run(part: str, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code of a part and its output, which is shown while it runs."""
    command = [sys.executable, str(HERE / f"knowledge_{part}.py"), *arguments]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            print(lines[-1], flush=True)
    return process.returncode, lines


def told(part: str, code: int, lines: Sequence[str]) -> list[str]:
    """The final summary of a part."""
    skipped = [f"{part}: {line.strip('| ')}" for line in lines if SKIPPED in line]
    missed = [f"{part}: not kept: {line.removesuffix(MISSED).strip('| ')}" for line in lines if MISSED in line]
    failed = [f"{part}: ended with {code}"] if code and not missed else []
    return skipped + missed + failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="a folder of code")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repos", type=Path, default=REPOS, help="a folder of git directories")
    parser.add_argument("--aider", type=Path, help="a Python that has aider")
    parser.add_argument("--serena", type=Path, help="a Python that has serena and jedi-language-server")
    parser.add_argument("--kept", type=Path, help="answers of the localisation so far")
    parser.add_argument("--only", default="", help="only these parts, separated by commas")
    given = parser.parse_args()
    only = tuple(filter(None, given.only.split(",")))
    summary, has_failed = [], False
    for part, arguments in commands(given).items():
        if only and part not in only:
            continue
        print(f"\n# {part}\n", flush=True)
        code, lines = run(part, arguments)
        summary += told(part, code, lines)
        has_failed = has_failed or code != 0 or any(MISSED in line for line in lines)
    print("\n# in short\n")
    print(*(summary or ["nothing was skipped, every promise was kept"]), sep="\n")
    sys.exit(1 if has_failed else 0)


if __name__ == "__main__":
    main()
