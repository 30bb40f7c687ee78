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
"""The value for the whole network in `Confinement.net`."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A command (`argv`, with its `stdin`), or `code` in a language.

    Code defines a function with one of `names`, which is called with `input` and `context`. `ProgramResult.result` has
    its return value as JSON.
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
            raise InvalidInput("program", "must be either a command (argv) or code in a language")


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """The paths, hosts and variables that a program may reach. All others are denied.

    `read`, `write` and `deny` are paths, relative to `cwd`. A writable path is readable. Below them, keys and passwords
    (`.env`, `.ssh`, `.aws`), `.clew` and `deny` are hidden, and files that make programs run (`.git/hooks`, `.vscode`)
    are read-only. `programs` are folders of installed programs and libraries, which are readable as a whole. `disk_mb`
    limits its writes. `net` lists hosts, with or without a port. Code gets `secrets` as `context.secrets`; they are
    masked in all output.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
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
    """The result of a run. Output is text without escape sequences and secrets; `code` is negative for a signal.

    `notes` list created files that were renamed, because they would make programs run on this machine.
    """

    code: int
    stdout: str
    stderr: str
    seconds: float
    killed_by: KilledBy | None = None
    result: bytes = b""
    notes: tuple[str, ...] = ()
