"""Test runs whose results come from a process that the tests cannot write to: `recorder_host` starts pytest, and
`pytest_recorder` reports to it."""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from clew.team.evidence import sandboxed
from clew.team.evidence.sandboxed.import_recorder import FOLDER
from clew.tools.sandbox.program import Program

PLUGIN = "pytest_recorder"
_MODULES = {
    "import_recorder.py": "sitecustomize.py",
    f"{PLUGIN}.py": f"{PLUGIN}.py",
    "recorder_host.py": "recorder_host.py",
}
"""Maps the modules that a check needs to their file names in its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFolders:
    """The temporary folders of one check: commands can write to `scratch`, and only read from `modules`."""

    scratch: Path
    modules: Path

    @property
    def imported(self) -> Path:
        return self.scratch / "imported"

    def variables(self, python_path: str) -> dict[str, str]:
        """The environment variables that make Python load the modules."""
        path = f"{self.modules}:{python_path}".rstrip(":")
        return {"PYTHONPATH": path, FOLDER: str(self.imported)}

    def remove(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.modules, ignore_errors=True)


def make_scratch(place: Path) -> Path:
    """A new temporary folder for the files of one command."""
    scratch = place / "scratch" / secrets.token_hex(8)
    scratch.mkdir(parents=True)
    return scratch


def make_folders(place: Path) -> CheckFolders:
    """New temporary folders for one check."""
    scratch = make_scratch(place)
    modules = scratch.with_name(f"{scratch.name}-modules")
    modules.mkdir()
    source = Path(sandboxed.__path__[0])
    for name, target in _MODULES.items():
        shutil.copyfile(source / name, modules / target)
    return CheckFolders(scratch=scratch, modules=modules)


def host_program(program: Program, folders: CheckFolders, python: str, nonce: str) -> Program:
    """The program as a child of the test host, which prints the summary after `nonce`."""
    argv = (python, "-I", "-S", str(folders.modules / "recorder_host.py"), *program.argv)
    return msgspec.structs.replace(program, argv=argv, stdin=nonce.encode())


def split_summary(stdout: str, nonce: str) -> tuple[str, dict[str, Any] | None]:
    """The output of the tests, and the summary of the host; None if the host printed none."""
    text, mark, summary = stdout.rpartition(f"\n{nonce} ")
    if not mark:
        return stdout, None
    try:
        parsed = json.loads(summary)
    except ValueError:
        return text, None
    return text, parsed if isinstance(parsed, dict) else None
