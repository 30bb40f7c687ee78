"""The isolation levels of this machine and their mechanisms, found by trial and not by versions."""

from __future__ import annotations

import os
import socket
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import msgspec

from clew.errors import ClewError
from clew.tools.sandbox.calls import call_code
from clew.tools.sandbox.cgroups import find_parents
from clew.tools.sandbox.program import Confinement, Program
from clew.tools.sandbox.runtimes import find_deno
from clew.tools.sandbox.sandbox import Sandbox

What = Literal["filesystem", "network", "processes", "memory", "time", "syscalls"]
_PROCESSES = 24
_MEMORY_MB = 128
_BY = {
    "bubblewrap": {
        "filesystem": "mount namespace",
        "network": "network namespace",
        "processes": "process namespace",
        "syscalls": "seccomp",
    },
    "landlock": {"filesystem": "Landlock", "network": "Landlock and seccomp", "syscalls": "seccomp"},
    "none": {},
}
_LIMITS = {
    "landlock": (
        "programs cannot create files in folders that hold secrets or a repository",
        "a program that may write anywhere can still change the permissions and times of your other files",
    )
}
"""The limits of a wall that enforces every level."""
_found: dict[str, Isolation] = {}


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of isolation. `by` names the mechanism, or is empty if nothing enforces it."""

    what: What
    enforced: bool
    by: str = ""


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """The wall, the levels that it enforced in a trial, the languages that can run, and the limits of the wall."""

    wall: str
    levels: tuple[Level, ...]
    languages: tuple[str, ...]
    limits: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[What, ...]:
        return tuple(level.what for level in self.levels if not level.enforced)


async def find_levels(sandbox: Sandbox) -> Isolation:
    """Try each kind of isolation in the sandbox, once per process. If the trial cannot run, nothing is enforced."""
    if sandbox.wall not in _found:
        refused = await _try(sandbox)
        refused["time"] = await _ends_in_time(sandbox)
        levels = (
            Level(what=what, enforced=refused.get(what, False), by=_by(sandbox.wall, what)) for what in get_args(What)
        )
        languages = ("python", *(("javascript", "typescript") if find_deno() else ()))
        shown = tuple(each if each.enforced else msgspec.structs.replace(each, by="") for each in levels)
        limits = _LIMITS.get(sandbox.wall, ())
        _found[sandbox.wall] = Isolation(wall=sandbox.wall, levels=shown, languages=languages, limits=limits)
    return _found[sandbox.wall]


async def _try(sandbox: Sandbox) -> dict[str, bool]:
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        canary = Path(folder, "canary")
        canary.write_text("seen")
        program = Program(
            language="python",
            code=files("clew.tools.sandbox").joinpath("probe.py").read_text("utf-8"),
            input={
                "canary": str(canary),
                "port": listener.getsockname()[1],
                "processes": _PROCESSES,
                "memory_mb": _MEMORY_MB,
            },
        )
        try:
            confinement = Confinement(processes=_PROCESSES, memory_mb=_MEMORY_MB, seconds=30)
            refused: dict[str, bool] = await call_code(sandbox, program, confinement)
        except ClewError:
            return {}
        return refused


async def _ends_in_time(sandbox: Sandbox) -> bool:
    program = Program(language="python", code="def run(input, context):\n    while True: pass")
    try:
        return (await sandbox.run(program, Confinement(seconds=0.3))).killed_by == "timeout"
    except ClewError:
        return False


def _by(wall: str, what: What) -> str:
    limits = {"memory": "limit of each process and a watch over all", "time": "clock outside", "processes": "rlimit"}
    grouped = (
        {"memory": "control group", "processes": "control group"} if find_parents() and wall == "bubblewrap" else {}
    )
    parts = [
        _BY[wall].get(what, ""),
        grouped.get(what) or ("" if what == "processes" and _is_root() else limits.get(what, "")),
    ]
    return ", ".join(part for part in parts if part)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
