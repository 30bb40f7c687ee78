"""Names of workers that show whether their process is alive, so that claims of a dead one are released at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from clew.access import Principal
from clew.trail.store import Trail


def worker_name() -> str:
    """The name of this process: machine, process id and start time."""
    return f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}"


async def release_dead_workers(trail: Trail, *, by: Principal) -> int:
    """Release the claims of dead workers of this machine; returns how many."""
    freed = 0
    for worker in await trail.deliveries.workers(by=by):
        if is_dead(worker):
            freed += await trail.deliveries.abandon(worker, by=by)
    return freed


def is_dead(worker: str) -> bool:
    """Whether a worker was a process of this machine that has ended. False for workers of other machines."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    began = worker.rpartition(":")[2]
    if host != socket.gethostname() or not rest.isdigit():
        return False
    now = _began(int(rest))
    return now == "" or (began != "" and now != began)


def _began(pid: int) -> str:
    """The start time of a process in the format of the operating system; empty if the process does not exist, a dash if
    the system has no start times."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _lives(pid)
    except OSError:
        return "-"
    return "" if fields[0] == "Z" else fields[19]


def _lives(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "-"
