"""One call of code in a sandbox: a JSON value in, a JSON value out, or an error of one of five kinds."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import ToolFailure, ToolFailureKind
from clew.tools.sandbox.output_text import Mask, clean_text
from clew.tools.sandbox.process_tree import OnOutput
from clew.tools.sandbox.program import Confinement, Program, ProgramResult
from clew.tools.sandbox.sandbox import Sandbox

MAX_INPUT = 4_000_000
"""The limit for the input of a call, in bytes of JSON."""
_MAX_STACK = 8_000


class _Error(msgspec.Struct, frozen=True):
    kind: str
    type: str
    message: str
    stack: str


class _CodeAnswer(msgspec.Struct, frozen=True):
    value: Any = None
    error: _Error | None = None


async def call_code(
    sandbox: Sandbox, program: Program, confinement: Confinement, *, on_output: OnOutput | None = None
) -> Any:
    """Call the function of the code, and return its result with secrets masked.

    Raises ToolFailure for any error, with the lines of the code where it happened.
    """
    if (size := len(msgspec.json.encode(program.input))) > MAX_INPUT:
        raise ToolFailure("validation", f"the input has {size:,} bytes of JSON, over the limit of {MAX_INPUT:,}")
    ran = await sandbox.run(program, confinement, on_output=on_output)
    _check_end(ran, confinement)
    mask = Mask(confinement.secrets.values())
    answer = _read_answer(ran)
    if answer.error is not None:
        raise _failure(answer.error, mask, confinement)
    return mask.value(answer.value)


def _check_end(ran: ProgramResult, confinement: Confinement) -> None:
    match ran.killed_by:
        case "timeout":
            raise ToolFailure("timeout", f"took longer than {confinement.seconds:g} seconds", retryable=True)
        case "memory":
            raise _out_of_memory(confinement)
        case "output":
            raise ToolFailure("runtime", f"produced more than {confinement.output_bytes:,} bytes of output")
        case "disk":
            raise ToolFailure("runtime", f"wrote more than {confinement.disk_mb:,} MB to the disk")
    if ran.notes:
        raise ToolFailure("permission", "; ".join(ran.notes))
    if not ran.result:
        raise ToolFailure(
            "runtime", f"ended with code {ran.code} before it returned a result", stack=ran.stderr[-_MAX_STACK:]
        )
    if len(ran.result) > confinement.output_bytes:
        raise ToolFailure("runtime", f"produced more than {confinement.output_bytes:,} bytes of output")


def _read_answer(ran: ProgramResult) -> _CodeAnswer:
    try:
        return msgspec.json.decode(ran.result, type=_CodeAnswer)
    except (msgspec.DecodeError, RecursionError):
        raise ToolFailure("runtime", "returned a result that is not JSON") from None


def _failure(error: _Error, mask: Mask, confinement: Confinement) -> ToolFailure:
    kind: ToolFailureKind
    match error.kind:
        case "memory":
            return _out_of_memory(confinement)
        case "permission" | "config" | "validation" as kind:
            pass
        case _:
            kind = "runtime"
    message = mask.text(clean_text(f"{error.type}: {error.message}".encode(errors="replace")))
    stack = mask.text(clean_text(error.stack[-_MAX_STACK:].encode(errors="replace")))
    return ToolFailure(kind, " ".join(message.split()), stack=stack)


def _out_of_memory(confinement: Confinement) -> ToolFailure:
    return ToolFailure("runtime", f"used more than {confinement.memory_mb:,} MB of memory")
