"""The second wall, where bubblewrap cannot run: Landlock for files and TCP, seccomp for system calls.

It is lower: the program sees the names and the ids of other processes, and there is no new /tmp.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files

import msgspec

from clew.errors import ToolFailure
from clew.tools.sandbox.places import Grants, is_below
from clew.tools.sandbox.program import EVERYWHERE, Confinement
from clew.tools.sandbox.runtimes import find_python
from clew.tools.sandbox.seccomp import AF_INET, AF_INET6, AF_NETLINK, build_filter
from clew.tools.sandbox.wall import Command, Launch, build_environment, limited

_CREATE_RULESET = 444
_ASK_VERSION = 1
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_FOR_NET = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/certs")


@cache
def find_landlock() -> int:
    """The version of Landlock that the kernel has; 0 where it has none, or the machine is of another kind."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return 0
    found = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(int(found), 0)


class LandlockWall:
    """Files and network are shut off by the kernel, the program's descendants stay in one group that is killed."""

    name = "landlock"

    def __init__(self, version: int) -> None:
        self._version = version

    @contextmanager
    def enclose(self, command: Command, confinement: Confinement, grants: Grants) -> Iterator[Launch]:
        shares_net = bool(confinement.net)
        if shares_net and EVERYWHERE not in confinement.net and not command.confines_itself:
            raise ToolFailure("permission", "a network of some hosts only can be given to JavaScript and TypeScript")
        # no AF_UNIX: sockets of the machine's services are files that Landlock does not keep from being connected to
        families = (AF_INET, AF_INET6, AF_NETLINK) if shares_net else ()
        place = files("clew.tools.sandbox").joinpath("launcher.py")
        with (
            as_file(place) as launcher,
            tempfile.TemporaryDirectory(prefix="clew-tool-", ignore_cleanup_errors=True) as home,
        ):
            policy = {
                "version": self._version,
                "read": [
                    *_SYSTEM,
                    *command.needs,
                    *_around(grants.read, grants.masked),
                    *(_FOR_NET if shares_net else ()),
                ],
                "write": [*_around(grants.write, grants.masked), *_DEVICES, home],
                "net": shares_net,
                "filter": (build_filter(families=families, stays_in_group=True) or b"").hex(),
                "cwd": grants.cwd if grants.cwd != "/tmp" else home,
            }
            yield Launch(
                argv=(
                    *(find_python()[0], "-I", "-S", "-B", str(launcher), msgspec.json.encode(policy).decode()),
                    *limited(command, confinement, processes=_processes(confinement)),
                ),
                env=build_environment(confinement, home),
            )


def _around(roots: tuple[str, ...], masked: tuple[str, ...]) -> Iterator[str]:
    """The roots, and where one holds what is masked, everything in it but that: Landlock can only allow."""
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path in masked:
            continue
        if any(is_below(each, path) for each in masked):
            waiting += [os.path.join(path, name) for name in os.listdir(path)]
        elif not os.path.islink(path):
            yield path


def _processes(confinement: Confinement) -> int | None:
    """The limit counts all processes of the user, so it stands above those that there are; root has none."""
    if os.geteuid() == 0:
        return None
    mine = os.geteuid()
    tasks = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == mine:
                tasks += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # has ended
    return tasks + confinement.processes
