"""Whether a tool is there to be run, and in which version: looked up in folders, never by running it."""

from __future__ import annotations

import fnmatch
import os
import shutil
from pathlib import PurePosixPath

from clew.knowledge.code.blobs import read_content
from clew.knowledge.project.devtools_data import known_tools
from clew.knowledge.project.devtools_manifests import MAX_VERSION, read_json

_BINARIES = ("node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", "bin")
_LIBRARIES = (".venv/lib", "venv/lib")


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
    content = (
        read_content(root, str(PurePosixPath("node_modules", package, "package.json"))) if _plain(package) else None
    )
    if content is not None:
        said = read_json(content.body.decode("utf-8", "replace")).get("version")
        return said if isinstance(said, str) and len(said) <= MAX_VERSION and said.isprintable() else ""
    return _python_version(root, package)


def _python_version(root: str, package: str) -> str:
    wanted = f"{package.replace('-', '_')}-*.dist-info"
    for library in _LIBRARIES:
        for python in _listed(os.path.join(root, library)):
            names = _listed(os.path.join(root, library, python, "site-packages"))
            for name in fnmatch.filter(names, wanted):
                return name.removesuffix(".dist-info").rpartition("-")[2][:MAX_VERSION]
    return ""


def _program(tool: str, run_command: str) -> str:
    known = known_tools().get(tool)
    if known is not None:
        return known.binary or tool
    return (run_command or tool).split()[0] if (run_command or tool).strip() else ""


def _plain(package: str) -> bool:
    return ".." not in package and not package.startswith("/") and " " not in package


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
