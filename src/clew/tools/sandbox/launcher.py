"""Starts a program without bubblewrap: restricts itself with Landlock and seccomp, then executes the program.

It is started by its path, and uses only the standard library. Any failure ends it with code 126, so that no program
runs with partial isolation.
"""

import ctypes
import json
import os
import signal
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_RULE = 1
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 38, 22
_FILTER_MODE = 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | (1 << 14) | (1 << 15)
_BITS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
_BITS = 16
_TCP, _SCOPES = 3, 3

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    with open(int(sys.argv[1]), "rb") as described:
        policy = json.load(described)
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    os.chdir(policy["cwd"])
    _restrict(policy)
    _filter(bytes.fromhex(policy["filter"]))
    os.execv(sys.argv[2], sys.argv[2:])


def _restrict(policy: dict[str, object]) -> None:
    version = int(str(policy["version"]))
    handled = (1 << _BITS_OF_VERSION.get(version, _BITS)) - 1
    tcp = _TCP if version >= 4 and not policy["net"] else 0
    scopes = _SCOPES if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, tcp, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _check(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0))
    reading = (_EXECUTE | _READ_FILE | _READ_DIR) & handled
    for paths, rights in ((policy["read"], reading), (policy["write"], handled)):
        assert isinstance(paths, list)
        for path in paths:
            _allow(rules, path, rights)
    _check(_libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _OF_FILES
    _check(_libc.syscall(_ADD, rules, _PATH_RULE, struct.pack("=Qi", rights, fd), 0))
    os.close(fd)


def _filter(program: bytes) -> None:
    """Install a filter (struct sock_fprog: the number of instructions, and their address)."""
    if not program:
        return
    kept = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(kept))
    _check(_libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, described, 0, 0))


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


if __name__ == "__main__":
    try:
        main()
    except OSError as problem:
        sys.stderr.write(f"the sandbox could not be set up: {problem}\n")
        sys.exit(126)
