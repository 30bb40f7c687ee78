"""The sandbox: one wall, the language runtimes, and the policy for machines without a wall."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Protocol

import msgspec

from clew.errors import SandboxUnavailable
from clew.tools.sandbox.bubblewrap import BubblewrapWall, find_bubblewrap
from clew.tools.sandbox.folders.quarantine import set_aside
from clew.tools.sandbox.folders.reachable_paths import Grants, around, resolve_grants
from clew.tools.sandbox.landlock import LandlockWall, find_landlock
from clew.tools.sandbox.process_tree import OnOutput, ResultPipe, execute
from clew.tools.sandbox.program import Confinement, Program, ProgramResult
from clew.tools.sandbox.runtimes import build_command, find_deno
from clew.tools.sandbox.wall import NoWall, Wall

log = logging.getLogger(__name__)

_HINT = "Install bubblewrap, or use Linux 5.13 or newer with Landlock; `clew doctor` shows what is available"


class SandboxStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the sandbox isolates files and network, and the id of a running program."""

    isolated: bool
    pid: int | None = None


class Sandbox(Protocol):
    """Runs programs in isolation."""

    @property
    def wall(self) -> str:
        """bubblewrap, landlock or none."""
        ...

    async def run(
        self, program: Program, confinement: Confinement, *, on_output: OnOutput | None = None
    ) -> ProgramResult:
        """Run a program to its end. Kill all its processes on a timeout, an exceeded limit or cancellation.

        `on_output` receives whole lines as they are printed. Raises ToolFailure for a confinement that cannot be
        enforced, and SandboxUnavailable without isolation in production.
        """
        ...

    def status(self) -> SandboxStatus:
        """Return whether programs are isolated, and the id of a running one."""
        ...


class LocalSandbox:
    """Runs programs on this machine behind one wall. No program can reach the paths of `deny`."""

    def __init__(self, wall: Wall, *, production: bool, deny: Sequence[str] = ()) -> None:
        self._wall = wall
        self._production = production
        self._deny = tuple(deny)
        self._running: list[int] = []
        self._has_warned = False

    @property
    def wall(self) -> str:
        return self._wall.name

    def status(self) -> SandboxStatus:
        return SandboxStatus(isolated=self._is_isolated, pid=self._running[-1] if self._running else None)

    async def run(
        self, program: Program, confinement: Confinement, *, on_output: OnOutput | None = None
    ) -> ProgramResult:
        confinement = msgspec.structs.replace(confinement, deny=(*confinement.deny, *self._deny))
        grants = await self._resolve(confinement)
        with ResultPipe(is_wanted=program.language == "python") as results:
            reach = grants if self._is_isolated else _without_holders(grants)
            command = build_command(program, confinement, reach, result_to=results.target)
            command = msgspec.structs.replace(command, needs=(*command.needs, *confinement.programs))
            if not (self._is_isolated or command.confines_itself):
                self._accept_no_wall()
            with self._wall.enclose(command, confinement, grants) as launch:
                running = execute(
                    command,
                    launch,
                    confinement,
                    results=results,
                    running=self._running,
                    on_output=on_output,
                    writes=grants.write,
                )
                return await _guarded(running, grants)

    async def _resolve(self, confinement: Confinement) -> Grants:
        if not (confinement.read or confinement.write):
            return resolve_grants(confinement)
        # it may search large folders; only Deno follows links without a check
        return await asyncio.to_thread(resolve_grants, confinement, is_thorough=not self._is_isolated)

    @property
    def _is_isolated(self) -> bool:
        return self._wall.name != NoWall.name

    def _accept_no_wall(self) -> None:
        """Raise SandboxUnavailable in production, else warn once."""
        if self._production:
            raise SandboxUnavailable("this machine has no sandbox for commands and Python code", hint=_HINT)
        if not self._has_warned:
            log.warning("tools run without a sandbox: their files, network and processes are not isolated. %s", _HINT)
            self._has_warned = True


def _without_holders(grants: Grants) -> Grants:
    """Return grants for Deno alone: folders that hold denied paths are not writable.

    Deno would let a program rename such a folder, and so read the denied paths under another name.
    """
    write = (path for path in around(grants.write, (*grants.masked, *grants.kept)) if "," not in path)
    return msgspec.structs.replace(grants, read=(*grants.read, *grants.write), write=tuple(write))


async def _guarded(running: Awaitable[ProgramResult], grants: Grants) -> ProgramResult:
    """Return the result of a run, with a note on each renamed file. Cleans up after cancellation too."""
    if not grants.write:
        return await running
    try:
        ran = await running
    except BaseException:
        await asyncio.shield(asyncio.to_thread(set_aside, grants))
        raise
    notes = await asyncio.shield(asyncio.to_thread(set_aside, grants))
    return msgspec.structs.replace(ran, notes=notes)


def open_sandbox(*, production: bool, deny: Sequence[str] = (), wall: str = "auto") -> LocalSandbox:
    """Open a sandbox behind a wall: bubblewrap, landlock, none, or auto for the best one of this machine, found by a
    trial once per process.

    No program can reach the paths of `deny` and their companions, such as `trail.db-wal`. Raises SandboxUnavailable in
    production without a wall and without Deno, and for a wall that this machine does not have.
    """
    found = find_wall(wall)
    if production and isinstance(found, NoWall) and find_deno() is None:
        raise SandboxUnavailable("nothing on this machine can isolate programs", hint=_HINT)
    return LocalSandbox(found, production=production, deny=deny)


def find_wall(chosen: str = "auto") -> Wall:
    """Return the best wall of this machine, or the chosen one. Raises SandboxUnavailable if it is not there."""
    if chosen in ("auto", "bubblewrap") and (program := find_bubblewrap()) is not None:
        return BubblewrapWall(program)
    if chosen in ("auto", "landlock") and (version := find_landlock()):
        return LandlockWall(version)
    if chosen in ("auto", "none"):
        return NoWall()
    hint = f"Set adapters.sandbox to auto, or install it. {_HINT}"
    raise SandboxUnavailable(f"this machine has no {chosen} for adapters.sandbox", hint=hint)
