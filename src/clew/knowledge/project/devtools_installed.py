"""Whether a tool is there to be run, and in which version: looked up in folders, never by running it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from clew.knowledge.manifests.installed import find_npm, find_python
from clew.knowledge.project.devtools_data import known_tools

MAX_VERSION = 60
_VERSION = re.compile(r"[\w.*^~<>=!|, +-]+")
_BINARIES = ("node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", "bin")


def is_installed(root: str, tool: str, run_command: str = "") -> bool:
    """Whether the project or the path of programs has the program of a tool."""
    program = _program(tool, run_command)
    if not program or "/" in program or "\\" in program:
        return False
    local = (os.path.join(root, folder, name) for folder in _BINARIES for name in (program, f"{program}.exe"))
    return any(map(os.path.isfile, local)) or shutil.which(program) is not None


def installed_version(root: str, tool: str) -> str:
    """The version of a tool that is installed in the project itself; empty where it cannot be told."""
    known = known_tools().get(tool)
    package = (known.package if known else "") or tool
    found = find_npm(Path(root), package) or find_python(Path(root), package)
    version = found.version if found is not None else ""
    return version if len(version) <= MAX_VERSION and version.isprintable() else ""


def shown_version(said: str) -> str:
    """A version as manifests write it, or nothing: what else may stand there is not shown."""
    is_one = len(said) <= MAX_VERSION and _VERSION.fullmatch(said) and re.search(r"\d", said)
    return said if is_one else ""


def _program(tool: str, run_command: str) -> str:
    known = known_tools().get(tool)
    if known is not None:
        return known.binary or tool
    return (run_command or tool).split()[0] if (run_command or tool).strip() else ""
