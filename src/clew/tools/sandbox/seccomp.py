"""The seccomp filter of the sandbox: it refuses system calls that no tool needs and that sandbox escapes use.

A refused call fails with EPERM, so libraries continue without it. See seccomp(2) and linux/filter.h.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from functools import cache

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

# name → number on x86_64, number on aarch64 (-1: the call does not exist there)
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "modify_ldt": (154, -1),
}
_METADATA = {
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
}
"""Modes and times of files. Landlock does not check these calls."""
_OWNERSHIP = {
    "chown": (92, -1),
    "lchown": (94, -1),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Owners, extended attributes and flags of files. Landlock does not check these calls either."""
_STAY_IN_GROUP = {"setsid": (112, 157), "setpgid": (109, 154)}
_CLONE, _CLONE3, _IOCTL, _SOCKET = (56, 220), (435, 435), (16, 29), (41, 198)
_NEW_NAMESPACES = 0x7E020000
_REFUSED_IOCTLS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they type into the terminal
_FLAG_IOCTLS = (0x40086602, 0x40046602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR
_X32 = 0x40000000
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


@cache
def build_filter(
    *, families: tuple[int, ...], under_landlock: bool = False, keeps_metadata: bool = False
) -> bytes | None:
    """Return the filter for this machine, or None for an unknown architecture.

    Only sockets of `families` can be opened: a network namespace does not cover all of them (vsock, for one). With
    `under_landlock` the program stays in its process group and cannot change owners or attributes of files; with
    `keeps_metadata` it cannot change their modes and times either.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    architecture, column = _ARCHITECTURES[machine]
    refused = {
        **_REFUSED,
        **({**_STAY_IN_GROUP, **_OWNERSHIP} if under_landlock else {}),
        **(_METADATA if keeps_metadata else {}),
    }
    parts = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, architecture, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        parts += [_op(_AT_LEAST, _X32, 0, 1), _refuse()]
    for number in sorted(each[column] for each in refused.values() if each[column] >= 0):
        parts += [_op(_EQUAL, number, 0, 1), _refuse()]
    # the filter cannot read the flags of clone3; libraries fall back to clone
    parts += [_op(_EQUAL, _CLONE3[column], 0, 1), _refuse(errno.ENOSYS)]
    parts += _on_argument(_CLONE[column], 0, [_op(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _refuse()])
    for request in (*_REFUSED_IOCTLS, *(_FLAG_IOCTLS if under_landlock else ())):
        parts += _on_argument(_IOCTL[column], 1, [_op(_EQUAL, request, 0, 1), _refuse()])
    parts += _on_argument(_SOCKET[column], 0, [*_only(families), _refuse()])
    return b"".join([*parts, _op(_RETURN, _ALLOW)])


def _on_argument(number: int, argument: int, checks: list[bytes]) -> Iterator[bytes]:
    """Check the lower half of one argument of a call, then load the number of the call again."""
    yield _op(_EQUAL, number, 0, len(checks) + 2)
    yield _op(_LOAD, _ARGUMENTS + 8 * argument)
    yield from checks
    yield _op(_LOAD, _NUMBER)


def _only(values: tuple[int, ...]) -> Iterator[bytes]:
    """Jump over the refusal that follows if the value is one of `values`."""
    for at, value in enumerate(values):
        yield _op(_EQUAL, value, len(values) - at, 0)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _op(_RETURN, 0x00050000 | number)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
