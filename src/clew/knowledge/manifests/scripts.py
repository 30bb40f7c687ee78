"""The lines of a project that somebody runs: the scripts of `package.json`, the targets of make, and plain lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from clew.knowledge.manifests.formats import read_json, table

MAX_SCRIPTS = 500
MAX_LINES = 5_000

_ELSEWHERE = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd", "make": "-C"}
"""How a program is told to work in another folder."""
_SCRIPT = re.compile(r"[\w][\w:.-]{0,60}")
_TARGET = re.compile(r"([A-Za-z0-9][\w.-]{0,60})\s*:(?!=)")


class Script(NamedTuple):
    """A line that somebody runs: `run` is how, `line` what it does."""

    run: str
    line: str


def read_scripts(path: str, text: str, runner: str = "npm") -> list[Script]:
    """The lines of a file that run something. Those of a named script or target are run by that name; the others have
    no way to run them."""
    folder, _, name = path.rpartition("/")
    if name == "package.json":
        start = _in_folder(runner, folder)
        found = table(read_json(text).table.get("scripts")).items()
        named = ((key, line) for key, line in found if _SCRIPT.fullmatch(key) and isinstance(line, str))
        return [Script(f"{start} run {key}", line) for key, line in named][:MAX_SCRIPTS]
    if name.lower() in ("makefile", "gnumakefile"):
        return list(_from_make(text, _in_folder("make", folder)))
    return [Script("", line) for line in text.splitlines()[:MAX_LINES] if not line.lstrip().startswith("#")]


def _in_folder(program: str, folder: str) -> str:
    return f"{program} {_ELSEWHERE[program]} {shlex.quote(folder)}" if folder else program


def _from_make(text: str, start: str) -> Iterator[Script]:
    target = ""
    for line in text.splitlines()[:MAX_LINES]:
        if line.startswith("\t"):
            yield Script(f"{start} {target}" if target else "", line.strip())
        elif found := _TARGET.match(line):
            target = found[1]
        elif line.strip() and not line.startswith("#"):
            target = ""
