"""Names of workers that tell whether their process still lives, so that the claims of a dead one need not run out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from clew.access import Principal
from clew.trail.store import Trail


def worker_name() -> str:
    """The name of this process: machine, process id and when it began."""
    return f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}"


async def free_the_dead(trail: Trail, *, by: Principal) -> int:
    """Let go of what workers of this machine hold that live no more; how many claims that were."""
    freed = 0
    for worker in await trail.deliveries.workers(by=by):
        if is_dead(worker):
            freed += await trail.deliveries.abandon(worker, by=by)
    return freed


def is_dead(worker: str) -> bool:
    """Whether a name is that of a process of this machine that has ended. Of other machines nothing is known."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    began = worker.rpartition(":")[2]
    if host != socket.gethostname() or not rest.isdigit():
        return False
    now = _began(int(rest))
    return now == "" or (began != "" and now != began)


def _began(pid: int) -> str:
    """When a process began, in the words of its system; empty where there is none such. Where the system does not tell,
    a process that lives has a dash."""
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
