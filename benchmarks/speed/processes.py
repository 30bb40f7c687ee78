"""Processes that are measured from outside: start one, wait until it answers, look at its memory, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

READY_SECONDS = 120.0
END_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Server:
    """A process that answers. `seconds` is the time from its start to that output."""

    pid: int
    host: str
    port: int
    seconds: float

    @property
    def resident_mb(self) -> float:
        """The memory that it holds now, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))

    @property
    def processor_seconds(self) -> float:
        """The processor time of all its threads so far. Other programs on the machine hardly change it."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text(encoding="utf-8").split()[0]) for task in tasks) / 1e9


@contextlib.contextmanager
def serving(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run a server that prints a line of JSON with its `url` once it answers, and end it with the block."""
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=clean_environment(environment)
        )
        try:
            url = _read_url(process)
            if url is None:
                process.kill()
                errors.seek(0)
                raise RuntimeError(f"{command[1:4]} did not start: {errors.read().decode(errors='replace')[-2000:]}")
            at = urlsplit(url)
            yield Server(process.pid, at.hostname or "", at.port or 0, time.perf_counter() - began)
        finally:
            _end(process)


def _read_url(process: subprocess.Popen[bytes]) -> str | None:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], READY_SECONDS)
    line = process.stdout.readline() if ready else b""
    return str(json.loads(line)["url"]) if line else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def clew_up(folder: Path) -> list[str]:
    """The command that serves a trail's folder, as users give it."""
    return [*clew_command(), "up", "--folder", str(folder), "--port", "0", "--json"]


def clew_command() -> list[str]:
    """The installed program, or the module in a source checkout."""
    program = Path(sys.executable).with_name("clew")
    return [str(program)] if program.exists() else [sys.executable, "-m", "clew"]


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without settings of Clew that a developer may have set, but with the file of what is trusted: the
    server's keys are made by the same user. Bytecode is stored, as for installed packages, so that no start compiles
    its modules."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_") or name == "CLEW_TRUST"}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, **(more or {})}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
