"""The wall for machines without bubblewrap: Landlock for files and TCP, seccomp for system calls.

It isolates less. The program sees the names and ids of other processes, and it gets no /tmp of its own. A folder that
holds a masked or a protected path takes no new files, because Landlock rules cover whole trees. Landlock does not check
chmod, chown and utimensat: seccomp refuses them, except chmod and utimensat for programs that may write somewhere,
because compilers and installers need them.
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
from clew.tools.sandbox.wall import RuntimeCommand, SandboxLaunch, build_environment, limited

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
    """Return the Landlock version of the kernel, or 0 if it has none or the architecture is unknown."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return 0
    found = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(int(found), 0)


class LandlockWall:
    """The kernel isolates files and network. Descendants stay in one process group, which is killed at the end."""

    name = "landlock"

    def __init__(self, version: int) -> None:
        self._version = version

    @contextmanager
    def enclose(self, command: RuntimeCommand, confinement: Confinement, grants: Grants) -> Iterator[SandboxLaunch]:
        shares_net = bool(confinement.net)
        if shares_net and EVERYWHERE not in confinement.net and not command.confines_itself:
            raise ToolFailure("permission", "only JavaScript and TypeScript can have a network limited to some hosts")
        # no AF_UNIX: Landlock does not stop connections to the sockets of the machine's services
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
                "filter": (
                    build_filter(families=families, under_landlock=True, keeps_metadata=not grants.write) or b""
                ).hex(),
                "cwd": grants.cwd if grants.cwd != "/tmp" else home,
            }
            described = _describe(stack, msgspec.json.encode(policy))
            yield SandboxLaunch(
                argv=(
                    *(find_python()[0], "-I", "-S", "-B", str(launcher), str(described)),
                    *limited(command, confinement, processes=_processes(confinement)),
                ),
                env=build_environment(confinement, home),
                fds=(described,),
                own=(home,),
            )


def _describe(stack: ExitStack, policy: bytes) -> int:
    """Return an open file with the policy, which may be too long for an argument."""
    fd = os.memfd_create("policy", os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    with open(fd, "wb", closefd=False) as file:
        file.write(policy)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _processes(confinement: Confinement) -> int | None:
    """Return the process limit, or None for root. The kernel counts all processes of the user, so the existing ones are
    added."""
    if os.geteuid() == 0:
        return None
    mine = os.geteuid()
    tasks = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == mine:
                tasks += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # the process has ended
    return tasks + confinement.processes
