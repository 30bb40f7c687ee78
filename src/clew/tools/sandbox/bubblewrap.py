"""The preferred wall: bubblewrap, with separate namespaces for users, processes, network, IPC and host name.

Inside are a read-only /usr, an empty /tmp, a private /dev and /proc, and the allowed paths.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from clew.errors import ToolFailure
from clew.tools.sandbox.cgroups import Cgroup, find_parents, open_cgroup
from clew.tools.sandbox.folders.reachable_paths import Grants, is_below
from clew.tools.sandbox.program import EVERYWHERE, Confinement
from clew.tools.sandbox.seccomp import AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, build_filter
from clew.tools.sandbox.wall import RuntimeCommand, SandboxLaunch, build_environment, limited

_TMP_BYTES = 64 * 1024 * 1024
_SHM_BYTES = 4 * 1024 * 1024
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
_FROM_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_FOR_NET = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/certs", "/etc/ca-certificates")
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "pressure", "acpi", "scsi", "mtrr")
"""Entries of /proc that change the host's kernel. If Clew runs as root, the program inside owns them too."""
_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'
_TRIAL_SECONDS = 10


@cache
def find_bubblewrap() -> str | None:
    """Return the path of a bubblewrap that can create its namespaces here, found by a trial, or None."""
    place = shutil.which("bwrap")
    if place is None:
        return None
    trial = [place, *_root(shares_net=False), "--", "/bin/sh", "-c", "exit 0"]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=_TRIAL_SECONDS, env={}, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return place if done.returncode == 0 else None


class BubblewrapWall:
    """The kernel isolates files, network, processes and system calls; see user_namespaces(7)."""

    name = "bubblewrap"

    def __init__(self, program: str) -> None:
        self._program = program

    @contextmanager
    def enclose(self, command: RuntimeCommand, confinement: Confinement, grants: Grants) -> Iterator[SandboxLaunch]:
        shares_net = _shares_net(command, confinement)
        with ExitStack() as stack:
            cgroup = _open_cgroup(stack, confinement)
            filters = _open_filter(stack, shares_net=shares_net)
            argv = (
                self._program,
                *_root(shares_net=shares_net),
                *(part for path in command.needs for part in ("--ro-bind", path, path)),
                *_binds(grants),
                *("--remount-ro", "/", "--chdir", grants.cwd),
                *(part for fd in filters for part in ("--seccomp", str(fd))),
                "--",
                *limited(command, confinement, processes=confinement.processes),
            )
            yield SandboxLaunch(
                argv=("/bin/sh", "-c", _JOIN, "sh", *cgroup.joins, "--", *argv) if cgroup else argv,
                env=build_environment(confinement, "/tmp"),
                fds=filters,
                is_tree=True,
                cgroup=cgroup,
            )


@cache
def _root(*, shares_net: bool) -> tuple[str, ...]:
    """Return the arguments that every sandbox has."""
    spaces = [each for each in _NAMESPACES if not (shares_net and each == "--unshare-net")]
    mounts = ["--ro-bind", "/usr", "/usr"]
    for folder in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(folder):
            mounts += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            mounts += ["--ro-bind", folder, folder]
    if os.path.isdir("/usr/local/etc"):
        mounts += ["--tmpfs", "/usr/local/etc"]
    for path in (*_FROM_ETC, *(_FOR_NET if shares_net else ())):
        mounts += ["--ro-bind-try", path, path]
    mounts += ["--proc", "/proc", "--dev", "/dev"]
    mounts += (part for name in _KERNEL for part in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}"))
    mounts += ["--size", str(_SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    mounts += ["--size", str(_TMP_BYTES), "--perms", "1777", "--tmpfs", "/tmp"]
    who = ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
    return (*spaces, "--unshare-cgroup-try", *who, "--die-with-parent", "--new-session", *mounts)


def _binds(grants: Grants) -> Iterator[str]:
    """Yield the arguments for allowed paths, outer folders first, then for read-only ones, then for hidden ones."""
    allowed = dict.fromkeys(grants.read, "--ro-bind") | dict.fromkeys(grants.write, "--bind")
    for path in sorted(allowed):
        yield from (_kind(path, allowed), path, path)
    guarded = dict.fromkeys(grants.pinned, "--bind") | dict.fromkeys(grants.kept, "--ro-bind")
    for path in sorted(guarded):  # a mount point can be neither renamed nor replaced
        yield from (guarded[path], path, path)
    for path in grants.masked:
        if os.path.isdir(path):
            yield from ("--perms", "0000", "--tmpfs", path, "--remount-ro", path)
        else:
            yield from ("--ro-bind", "/dev/null", path)


def _kind(path: str, allowed: dict[str, str]) -> str:
    """Return the kind of mount. A read-only folder inside a writable one stays writable."""
    is_writable = any(kind == "--bind" and is_below(path, root) for root, kind in allowed.items())
    return "--bind" if is_writable else "--ro-bind"


def _shares_net(command: RuntimeCommand, confinement: Confinement) -> bool:
    if not confinement.net:
        return False
    if EVERYWHERE not in confinement.net and not command.confines_itself:
        raise ToolFailure(
            "permission",
            "only JavaScript and TypeScript can have a network limited to some hosts, not Python or commands",
            hint="Write the tool in JavaScript, or fetch with an allowed tool",
        )
    return True


def _open_cgroup(stack: ExitStack, confinement: Confinement) -> Cgroup | None:
    parents = find_parents()
    if parents is None:
        return None
    cgroup = open_cgroup(parents, memory_mb=confinement.memory_mb, processes=confinement.processes)
    stack.callback(cgroup.close)
    return cgroup


def _open_filter(stack: ExitStack, *, shares_net: bool) -> tuple[int, ...]:
    # abstract sockets belong to the network namespace: a shared network would reach those of other programs
    families = (AF_INET, AF_INET6, AF_NETLINK if shares_net else AF_UNIX)
    program = build_filter(families=families)
    if program is None:
        return ()
    fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    os.write(fd, program)
    os.lseek(fd, 0, os.SEEK_SET)
    return (fd,)
