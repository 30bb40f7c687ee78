"""Runs the content of `config.py`, in a process of its own; see `python_file`. The report goes to standard output,
to which the output of the file cannot write."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import msgspec

from clew.config.define import settings_of
from clew.config.model import Config
from clew.errors import ConfigError

NAME = "config"
"""The variable that holds the settings."""
MAX_RESULT = 1_000_000


class RunnerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of running the file: settings, or an error with its line (0 if unknown)."""

    settings: dict[str, Any] = {}
    error: str = ""
    line: int = 0


def main(path: str) -> NoReturn:
    """Run the file whose content is on standard input, and write a report."""
    content = sys.stdin.buffer.read()
    out = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    written = msgspec.json.encode(run(path, content))
    if len(written) > MAX_RESULT:
        written = msgspec.json.encode(RunnerReport(error=f"the settings are over {MAX_RESULT:,} bytes"))
    with os.fdopen(out, "wb") as pipe:
        pipe.write(written)
    os._exit(0)  # threads that the file started do not hold it up


def run(path: str, content: bytes) -> RunnerReport:
    """The settings that the file defines, or its error."""
    names: dict[str, Any] = {"__name__": "clew_config", "__file__": path}
    try:
        exec(compile(content, path, "exec"), names)
    except SyntaxError as error:
        line = (error.lineno or 0) if error.filename == path else _line_in(path, error)
        return RunnerReport(error=f"{type(error).__name__}: {error.msg}", line=line)
    except ConfigError as error:
        return RunnerReport(error=str(error), line=_line_in(path, error))
    except BaseException as error:  # the boundary to the user's own code
        return RunnerReport(error=f"{type(error).__name__}: {error}", line=_line_in(path, error))
    found = names.get(NAME)
    if not isinstance(found, Config):
        return RunnerReport(error=f"there is no `{NAME}`: write {NAME} = define_config(...)")
    return RunnerReport(settings=settings_of(found))


def _line_in(path: str, error: BaseException) -> int:
    """The innermost line of the file on the way to an error."""
    line, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == path:
            line = at.tb_lineno
        at = at.tb_next
    return line
