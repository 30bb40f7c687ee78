"""The tool `exec`: runs shell commands in a working folder, inside the sandbox."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Annotated, Protocol

import msgspec

from clew.errors import InvalidInput
from clew.fences import clean
from clew.secrecy import mask_document
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.path_denials import Denials
from clew.tools.permissions.policy import Policy
from clew.tools.processes import QUIET, OnOutput
from clew.tools.sandbox.program import Confinement, KilledBy, Program, ProgramResult
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

MAX_SECONDS = 600
MAX_COMMAND = 20_000
OUTPUT_BYTES = 60_000
"""The limit for each of the two streams."""
DENIED_AS = ("exec", "read-file")
"""The tools whose denied paths a command cannot reach."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)]

_WHY = {
    "timeout": "it was killed with all its processes, because it took longer than {seconds:g} seconds",
    "memory": "it was killed, because it used too much memory",
    "output": "it was killed, because it printed too much",
    "disk": "it was killed, because it wrote too much to the disk",
}


class CommandRunner(Protocol):
    """Runs commands, usually a sandbox."""

    async def run(
        self, program: Program, confinement: Confinement, *, on_output: OnOutput | None = None
    ) -> ProgramResult:
        """Run a program to its end. All its processes are dead when this returns or is cancelled."""
        ...


class ShellLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a command, and the hosts that it may reach."""

    memory_mb: int = 2_048
    disk_mb: int = 2_048
    processes: int = 256
    net: tuple[str, ...] = ()


class CommandResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a command. `exit_code` is negative for a signal. `error` is the reason if the command was killed.
    `notes` list created files that were renamed for security."""

    exit_code: int
    stdout: str
    stderr: str
    killed_by: KilledBy | None
    seconds: float
    error: str = ""
    notes: tuple[str, ...] = ()


def shell_tools(
    folder: WorkingFolder, sandbox: CommandRunner, limits: ShellLimits | None = None, *, denials: Denials | None = None
) -> tuple[Tool, ...]:
    """Return the tool `exec`. A command may read and write the working folder except for denied paths. Background
    processes end with it."""
    allowed, shut = limits or ShellLimits(), denials or Denials(Policy(), *DENIED_AS)

    @tool(
        name="exec",
        effects=Effects(destroys=True),
        limits=ToolLimits(seconds=MAX_SECONDS + 30, characters=4 * OUTPUT_BYTES),
        category="shell",
    )
    async def execute(command: str, ctx: ToolContext, cwd: str = "", timeout: Seconds = 120.0) -> CommandResult:
        """Run a shell command in the working folder and return exit_code, stdout, stderr, killed_by and seconds. It has
        no input, and its background processes end with it. To read, find or change files, use the tools for files.

        Args:
            command: the shell command
            cwd: folder to run it in, relative to the working folder
            timeout: seconds after which it is killed
        """
        _check(command)
        place = folder.locate(cwd)
        if not folder.is_folder(place):
            raise InvalidInput("cwd", f"{cwd!r} is not a folder", hint="Leave it out for the working folder")
        denied = await asyncio.to_thread(shut.beside(ctx.policy).existing, folder.root)
        confinement = msgspec.structs.replace(
            _confinement(folder.root, allowed), deny=denied, seconds=timeout, cwd=os.path.join(folder.root, place)
        )
        program = Program(argv=(_shell(), "-c", command))
        return _executed(await sandbox.run(program, confinement, on_output=_reporter(ctx)), timeout)

    return (execute,)


def _confinement(root: str, allowed: ShellLimits) -> Confinement:
    return Confinement(
        write=(root,),
        net=allowed.net,
        env=QUIET,
        memory_mb=allowed.memory_mb,
        disk_mb=allowed.disk_mb,
        processes=allowed.processes,
        output_bytes=OUTPUT_BYTES,
    )


def _check(command: str) -> None:
    if not command.strip() or "\0" in command or len(command) > MAX_COMMAND:
        raise InvalidInput("command", f"must have 1 to {MAX_COMMAND:,} characters")
    if not command.isascii() and command.encode(errors="replace").decode() != command:
        raise InvalidInput("command", "has an invalid character (a lone surrogate)")


def _shell() -> str:
    return shutil.which("bash") or "/bin/sh"


def _reporter(ctx: ToolContext) -> OnOutput | None:
    """Return a function that reports output as progress; None if nobody listens."""
    report = ctx.report
    if report is None:
        return None
    characters = 0

    async def tell(text: str) -> None:
        nonlocal characters
        characters += len(text)
        await report(characters, None, _safe(text))

    return tell


def _executed(ran: ProgramResult, timeout: float) -> CommandResult:
    return CommandResult(
        exit_code=ran.code,
        stdout=_safe(ran.stdout),
        stderr=_safe(ran.stderr),
        killed_by=ran.killed_by,
        seconds=round(ran.seconds, 3),
        error=_WHY[ran.killed_by].format(seconds=timeout) if ran.killed_by else "",
        notes=ran.notes,
    )


def _safe(text: str) -> str:
    """Remove invisible characters, and mask secrets."""
    return mask_document(clean(text))
