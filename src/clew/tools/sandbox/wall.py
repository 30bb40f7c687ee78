"""Walls: the interface of isolation, the limits that all walls set, and the wall without isolation."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

import msgspec

from clew.errors import ToolFailure
from clew.tools.sandbox.cgroups import Cgroup
from clew.tools.sandbox.folders.reachable_paths import Grants
from clew.tools.sandbox.program import Confinement

OPEN_FILES = 256
UNCOMPILED = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Prevents compiled files in a skill, which would change its digest and invalidate the consent."""
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "NO_COLOR": "1"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_STEERING = re.compile(
    r"LD_.*|DENO_.*|PYTHON.*|BASH.*|GCONV_PATH|ENV|IFS|PATH|HOME|TMPDIR|SHELLOPTS|PS4|NODE_.*|PERL.*|MALLOC_.*"
)


class RuntimeCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program as its language runtime starts it.

    `needs` are paths that the runtime reads. `counts` is the kind of memory that a limit applies to: V8 reserves
    address space that it never uses. `marker` starts the result line on stdout; without it the result comes through the
    pipe `result_to`.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    needs: tuple[str, ...] = ()
    counts: Literal["addresses", "data"] = "addresses"
    marker: bytes = b""
    result_to: int = -1
    confines_itself: bool = False


class SandboxLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A command behind a wall, ready to start.

    `is_tree` says that killing the first process kills all. `own` are folders on disk of this run alone.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    is_tree: bool = False
    cgroup: Cgroup | None = None
    own: tuple[str, ...] = ()


class Wall(Protocol):
    """One way to isolate a program."""

    name: str

    def enclose(
        self, command: RuntimeCommand, confinement: Confinement, grants: Grants
    ) -> AbstractContextManager[SandboxLaunch]:
        """Yield the command to start. Its resources exist until the block ends.

        Raises ToolFailure for a confinement that this wall cannot enforce.
        """
        ...


class NoWall:
    """Limits of memory, time and size only, for development on machines without a wall."""

    name = "none"

    @contextmanager
    def enclose(self, command: RuntimeCommand, confinement: Confinement, grants: Grants) -> Iterator[SandboxLaunch]:
        with tempfile.TemporaryDirectory(prefix="clew-tool-", ignore_cleanup_errors=True) as folder:
            argv = limited(command, confinement, processes=None)
            yield SandboxLaunch(argv=argv, env=build_environment(confinement, folder), own=(folder,))


def build_environment(confinement: Confinement, home: str) -> dict[str, str]:
    """Return the environment of a program. Raises ToolFailure for a variable that controls how programs load."""
    for name in confinement.env:
        if not _VARIABLE.fullmatch(name) or _STEERING.fullmatch(name):
            raise ToolFailure("permission", f"the variable {name[:100]!r} cannot be passed to a tool")
    return {**_ENVIRONMENT, **UNCOMPILED, "HOME": home, "TMPDIR": home, "DENO_DIR": f"{home}/.deno", **confinement.env}


def limited(command: RuntimeCommand, confinement: Confinement, *, processes: int | None) -> tuple[str, ...]:
    """Return the command behind a shell that sets its limits first. The program cannot raise them."""
    kilobytes = confinement.memory_mb * 1024
    wanted = {
        "c": 0,
        "n": OPEN_FILES,
        "t": int(confinement.seconds) + 2,
        "f": max(min(confinement.memory_mb, confinement.disk_mb), 16) * 2048,
        ("v" if command.counts == "addresses" else "d"): kilobytes
        + (65_536 if command.counts == "addresses" else 720_000),
    }
    lines = [f"ulimit -{letter} {value}" for letter, value in wanted.items()]
    if processes is not None:
        # -p is the number of processes in dash and busybox, the size of pipes in bash
        lines.append(f"ulimit -p {processes} || ulimit -u {processes}")
    # a lower limit stays
    script = f'{{ {"; ".join(lines)}; }} 2>/dev/null; exec "$@"'
    return ("/bin/sh", "-c", script, "sh", *command.argv)
