"""Records of the sandbox: the program, its confinement, and the result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from clew.errors import InvalidInput

Language = Literal["javascript", "typescript", "python"]
LANGUAGES: tuple[Language, ...] = ("javascript", "typescript", "python")
KilledBy = Literal["timeout", "memory", "output", "disk"]

EVERYWHERE = "*"
"""In `Confinement.net`: the whole network."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A command (`argv`, with what it reads on `stdin`), or `code` in a language.

    Code defines a function of one of `names`, which is called with `input` and `context`. `ProgramResult.result` is
    its result as JSON.
    """

    argv: tuple[str, ...] = ()
    stdin: bytes = b""
    code: str = ""
    language: Language | None = None
    names: tuple[str, ...] = ("run",)
    input: Any = None
    context: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.argv) == (self.language is not None):
            raise InvalidInput("program", "is either a command (argv) or code in a language")


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """The paths, hosts and variables that a program may reach. All that is not named is out of reach: no file, no host,
    no variable.

    `read`, `write` and `deny` are paths, relative to `cwd`; what may be written may be read. Below them keys and
    passwords (`.env`, `.ssh`, `.aws`), `.clew` and `deny` stay out of reach, and what makes programs run (`.git/hooks`,
    `.vscode`) is not changed. `disk_mb` is how much it may write. `net` names hosts, with or without a port.
    `secrets` reach code as `context.secrets`, and are masked in all that comes out.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    net: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    secrets: Mapping[str, str] = msgspec.field(default_factory=dict)
    seconds: float = 300.0
    memory_mb: int = 512
    processes: int = 64
    output_bytes: int = 1_000_000
    disk_mb: int = 2_048
    cwd: str = ""

    def __post_init__(self) -> None:
        if min(self.seconds, self.memory_mb, self.processes, self.output_bytes, self.disk_mb) <= 0:
            what = "seconds, memory_mb, processes, output_bytes and disk_mb"
            raise InvalidInput("confinement", f"{what} must be more than 0")


class ProgramResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. Output is text without escape sequences and secrets; `code` is negative for a signal.

    `notes` say what it made that was moved aside, since it would make programs run on this machine.
    """

    code: int
    stdout: str
    stderr: str
    seconds: float
    killed_by: KilledBy | None = None
    result: bytes = b""
    notes: tuple[str, ...] = ()
