"""Control groups: limits of memory and processes for a whole process tree.

Only for root, to whom RLIMIT_NPROC does not apply. Both versions of cgroups are supported.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_BESIDE = 6
"""The number of processes that the sandbox itself needs."""
_counter = itertools.count()
_closed: list[Path] = []


class Cgroup:
    """The group of one run. A process enters it by writing 0 to the files in `joins`."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders

    @property
    def joins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(folder / "cgroup.procs") for folder in self._folders.values()))

    def was_out_of_memory(self) -> bool:
        """Whether the kernel killed one of its processes because of the memory limit."""
        folder = self._folders["memory"]
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                lines = (folder / name).read_text().splitlines()
                return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)
        return False

    def close(self) -> None:
        """Remove the group. If killed processes still exist, a later call removes it."""
        _closed.extend(dict.fromkeys(self._folders.values()))
        _remove_closed()


@cache
def find_parents() -> dict[str, Path] | None:
    """Return the folders in which groups for `pids` and `memory` can be created, found by a trial; None without the
    permission."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    parents = _first_version() or _second_version()
    if parents is None:
        return None
    _sweep(parents)
    try:
        open_cgroup(parents, memory_mb=64, processes=8).close()
    except OSError:
        return None
    return parents


def open_cgroup(parents: dict[str, Path], *, memory_mb: int, processes: int) -> Cgroup:
    """Create a group with its limits. Raises OSError."""
    _remove_closed()
    name = f"clew-{os.getpid()}-{next(_counter)}"
    folders = {kind: parent / name for kind, parent in parents.items()}
    for folder in dict.fromkeys(folders.values()):
        folder.mkdir()
    (folders["pids"] / "pids.max").write_text(str(processes + _BESIDE))
    size = str(memory_mb * 1024 * 1024)
    memory = folders["memory"]
    is_second = (memory / "memory.max").exists()
    (memory / ("memory.max" if is_second else "memory.limit_in_bytes")).write_text(size)
    for file, value in (("memory.memsw.limit_in_bytes", size), ("memory.swap.max", "0"), ("memory.oom.group", "1")):
        if (memory / file).exists():
            with contextlib.suppress(OSError):  # this kernel does not count swap
                (memory / file).write_text(value)
    return Cgroup(folders)


def _remove_closed() -> None:
    for folder in tuple(_closed):
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            _closed.remove(folder)


def _own_groups() -> Iterator[tuple[str, str]]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                yield controller, path


def _first_version() -> dict[str, Path] | None:
    own = {name: _ROOT / name / path.lstrip("/") for name, path in _own_groups() if name in ("pids", "memory")}
    return own if len(own) == 2 and all(folder.is_dir() for folder in own.values()) else None


def _second_version() -> dict[str, Path] | None:
    """Return the folder beside the own group, because a group with processes cannot have limited groups below it."""
    for name, path in _own_groups():
        parent = _ROOT / os.path.dirname(path).lstrip("/")
        with contextlib.suppress(OSError):
            offered = (parent / "cgroup.subtree_control").read_text().split()
            if name == "" and {"pids", "memory"} <= set(offered):
                return {"pids": parent, "memory": parent}
    return None


def _sweep(parents: dict[str, Path]) -> None:
    """Remove groups left behind by processes that were killed."""
    for parent in dict.fromkeys(parents.values()):
        for folder in parent.glob("clew-*-*"):
            owner = folder.name.split("-")[1]
            if owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
                with contextlib.suppress(OSError):
                    folder.rmdir()
