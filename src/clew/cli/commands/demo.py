"""`clew demo`: the examples that come with Clew, run by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import clew
from clew.cli.options import Json
from clew.cli.terminal.output import note, print_json, print_rows
from clew.decode_errors import suggest
from clew.errors import ClewError, NotFound

PARTS = {
    "walk": "An agent goes from a question to its answer in five calls, and what that costs.",
    "events": "The trail is searched by words and by meaning, and followed live.",
}
"""The demos of `run_demo.py`."""
KNOWLEDGE = "09_knowledge.py"
"""An example that reads the repository that it is part of."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A program of the examples. `summary` is the first sentence of its docstring."""

    name: str
    summary: str
    command: tuple[str, ...]


def demo(
    name: Annotated[str, Parameter(help="The demo; without it, all are listed.")] = "",
    /,
    *,
    json: Json = False,
) -> int:
    """Run an example, or list all of them.

    Each demo works in a temporary folder and removes it. None needs a key or a network. `clew demo start` shows the
    main things in two screens; on a terminal it leaves a server running until Ctrl-C.

        clew demo
        clew demo start
    """
    found = find_demos()
    if name:
        return _run(name, found)
    if json:
        print_json([{"name": each.name, "summary": each.summary} for each in found])
        return 0
    print_rows(("name", "shows"), [(each.name, each.summary) for each in found], main=1)
    note("Run one with `clew demo NAME`.")
    return 0


def find_demos() -> list[Demo]:
    """All demos. Raises ClewError if the examples are not installed."""
    folder = _find_folder()
    start = folder / "start.py"
    parts = [
        Demo(start.stem, _first_sentence(start), (str(start),)),
        *(Demo(name, summary, (str(folder / "run_demo.py"), name)) for name, summary in PARTS.items()),
    ]
    scripts = [
        path for path in sorted(folder.glob("[0-9][0-9]_*.py")) if path.name != KNOWLEDGE or _is_checkout(folder)
    ]
    return parts + [Demo(path.stem[3:].replace("_", "-"), _first_sentence(path), (str(path),)) for path in scripts]


def _run(name: str, demos: list[Demo]) -> int:
    chosen = next((each for each in demos if each.name == name), None)
    if chosen is None:
        error = NotFound("demo", name)
        error.hint = suggest(name, [each.name for each in demos], "Demos are")
        raise error
    process = subprocess.Popen([sys.executable, *chosen.command])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the demo gets it too, and tidies up
            continue


def _find_folder() -> Path:
    """The examples: in the package if it was installed from a wheel, otherwise beside the sources of a checkout."""
    package = Path(clew.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / "run_demo.py").is_file():
            return folder
    raise ClewError("the examples are not installed", hint="Install Clew from its wheel, or use a checkout")


def _is_checkout(folder: Path) -> bool:
    return (folder.parent / "src" / "clew").is_dir()


def _first_sentence(path: Path) -> str:
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())
    return f"{text.partition('. ')[0].rstrip('.')}."
