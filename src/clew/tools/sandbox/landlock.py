"""The second wall, where bubblewrap cannot run: Landlock for files and TCP, seccomp for system calls.

It is lower: the program sees the names and the ids of other processes, there is no new /tmp, and a folder that holds
what is masked or kept takes no new files, since Landlock can only allow, and then all that is below.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.resources import as_file, files

import msgspec

from clew.errors import ToolFailure
from clew.tools.sandbox.folders.reachable_paths import Grants, around
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
            ExitStack() as stack,
            as_file(place) as launcher,
            tempfile.TemporaryDirectory(prefix="clew-tool-", ignore_cleanup_errors=True) as home,
        ):
            policy = {
                "version": self._version,
                "read": [
                    *_SYSTEM,
                    *command.needs,
                    *around((*grants.read, *grants.write), grants.masked),
                    *(_FOR_NET if shares_net else ()),
                ],
                "write": [*around(grants.write, (*grants.masked, *grants.kept)), *_DEVICES, home],
                "net": shares_net,
                "filter": (build_filter(families=families, stays_in_group=True) or b"").hex(),
                "cwd": grants.cwd if grants.cwd != "/tmp" else home,
            }
            described = _describe(stack, msgspec.json.encode(policy))
            yield Launch(
                argv=(
                    *(find_python()[0], "-I", "-S", "-B", str(launcher), str(described)),
                    *limited(command, confinement, processes=_processes(confinement)),
                ),
                env=build_environment(confinement, home),
                fds=(described,),
                own=(home,),
            )


def _describe(stack: ExitStack, policy: bytes) -> int:
    """An open file with the policy, which may be too long for an argument."""
    fd = os.memfd_create("policy", os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    with open(fd, "wb", closefd=False) as file:
        file.write(policy)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


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
