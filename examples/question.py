"""A question about a repository, a part of this one, and the lines that answer it."""

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("src/clew/trail", "docs/decisions")
"""The parts of this repository that the question is about."""
QUESTION = "where is the lease of a claim extended"
CITED = 4
WIDTH = 110


def say(text: str = "") -> None:
    """One line, at once, and not longer than a screen is wide."""
    print(text if len(text) <= WIDTH else text[: WIDTH - 1] + "…", flush=True)


async def show_question() -> None:
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        place = Path(folder) / "repository"
        copy_repository(place)
        files = sum(1 for each in place.rglob("*") if each.is_file() and ".git" not in each.parts)
        say(f"1  A question about a repository: a part of Clew itself, {files} files, read for the first time.\n")
        say(f'  $ clew ask "{QUESTION}"')
        answer = json.loads(
            await run_clew("ask", QUESTION, "--json", folder=place, CLEW_TRUST=str(Path(folder) / "trust.json"))
        )
        for each in answer["known"][:CITED]:
            say(f"  {each['path']}:{each['start']}")
            say(f"      {each['text']}")
        say()


def copy_repository(place: Path) -> None:
    """A clone of parts of this repository with its history; without one, the part of the installed package."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        clone = ["git", "clone", "--quiet", "--local", "--no-checkout", str(ROOT), str(place)]
        steps = (clone, ["git", "sparse-checkout", "set", *PARTS], ["git", "checkout", "--quiet"])
        if all(run_quietly(each, place if place.exists() else ROOT) for each in steps):
            return
    shutil.rmtree(place, ignore_errors=True)
    package = importlib.util.find_spec("clew")
    assert package is not None
    assert package.origin is not None
    source = Path(package.origin).parent / "trail"
    shutil.copytree(source, place / "trail", ignore=shutil.ignore_patterns("__pycache__"))


def run_quietly(command: list[str], folder: Path) -> bool:
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


async def run_clew(*words: str, folder: Path | None = None, **variables: str) -> str:
    """The output of a command."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clew", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **variables},
    )
    printed, problem = await process.communicate()
    if process.returncode:
        sys.exit(problem.decode())
    return printed.decode()
