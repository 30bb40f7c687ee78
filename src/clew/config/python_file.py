"""The settings of `.clew/config.py`. It is code of the folder, so it runs only after the user agreed to its exact
content. It runs in a separate process with a time limit. Only JSON comes back."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from clew.config.layers import MAX_BYTES, PYTHON
from clew.config.python_runner import RunnerReport
from clew.errors import ConfigError
from clew.files import read_file
from clew.secrecy import mask_secrets
from clew.trust import Trust, Wish, digest_parts, printable, real_folder

KIND = "config"
SECONDS = 10.0
"""How long the file may run."""
MAX_REASON = 300
_START = "import sys; sys.path.append(sys.argv[2]); from clew.config.python_runner import main; main(sys.argv[1])"

_log = logging.getLogger(__name__)
_known: dict[tuple[str, str], dict[str, Any]] = {}
"""The settings of files that ran in this process, by path and digest: a command reads its settings more than once."""
_noticed: set[tuple[str, str]] = set()


def python_wish(folder: Path) -> Wish | None:
    """The wish to run config.py as it is now; None without the file. Raises ConfigError."""
    content = _read(folder / PYTHON)
    return None if content is None else _wish(folder, content)


def may_run(folder: Path) -> bool:
    """Whether the folder has a config.py that the user agreed to, as it is now. Raises ConfigError."""
    wish = python_wish(folder)
    return wish is not None and not _find_refusal(wish)


def read_python(folder: Path) -> dict[str, Any]:
    """The settings of config.py, as config.toml would hold them; without the user's consent, no settings and a notice.
    Raises ConfigError with file and line."""
    content = _read(folder / PYTHON)
    if content is None:
        return {}
    wish = _wish(folder, content)
    key = (wish.folder, wish.digest)
    if key not in _known:
        if reason := _find_refusal(wish):
            if key not in _noticed:
                _noticed.add(key)
                _log.warning("%s is ignored: %s", folder / PYTHON, reason)
            return {}
        _known[key] = _run(folder, content)
    return _known[key]


def _find_refusal(wish: Wish) -> str:
    """Why the file may not run; empty if it may. A file of grants that cannot be read grants nothing."""
    try:
        return "" if Trust.open().holds(wish) else "it is code and waits for your consent (`clew trust`)"
    except ConfigError as error:
        return str(error)


def _wish(folder: Path, content: bytes) -> Wish:
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    return Wish(
        folder=real_folder(folder.absolute().parent),
        kind=KIND,
        name=PYTHON,
        digest=digest_parts([content]),
        summary=printable(f"runs {folder.name}/{PYTHON} ({lines:,} line{'s'[: lines != 1]}) with every command"),
    )


def _read(path: Path) -> bytes | None:
    try:
        return read_file(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _run(folder: Path, content: bytes) -> dict[str, Any]:
    """Run the file in another process. Raises ConfigError."""
    path = folder / PYTHON
    package = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-I", "-B", "-c", _START, str(path.absolute()), str(package)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder.absolute().parent,
        start_new_session=True,
    )
    try:
        written, _ = process.communicate(content, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        told = ConfigError(f"{path}: did not end within {SECONDS:g} seconds")
        told.hint = "Settings must be computed quickly: remove code that waits or loops"
        raise told from None
    finally:
        _kill(process)
    return _read_report(path, written)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and those that it started."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _read_report(path: Path, written: bytes) -> dict[str, Any]:
    try:
        report = msgspec.json.decode(written, type=RunnerReport)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        told = ConfigError(f"{path}: ended without a result")
        told.hint = "It must not leave the process; write config = define_config(...)"
        raise told from None
    if report.error:
        place = f"{path}:{report.line}" if report.line else str(path)
        reason = mask_secrets(printable(report.error, MAX_REASON))
        raise ConfigError(f"{place}: {reason}")
    return report.settings
