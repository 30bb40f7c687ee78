"""Runs inside the sandbox: tries operations that a wall should refuse, and reports which were refused."""

# mypy: allow-untyped-defs, allow-untyped-calls, check-untyped-defs=False

import ctypes
import os
import signal
import socket

NEW_USER = 0x10000000


def run(input, context):
    return {
        "filesystem": not any(attempt(input["canary"]) for attempt in (reads, writes, changes)),
        "network": not reaches(input["port"]),
        "processes": forks(input["processes"] * 3) < input["processes"] * 3,
        "memory": not takes(input["memory_mb"] * 4),
        "syscalls": ctypes.CDLL(None).unshare(NEW_USER) != 0,
    }


def reads(path):
    try:
        with open(path):
            return True
    except OSError:
        return False


def writes(path):
    try:
        with open(path, "a"):
            return True
    except OSError:
        return False


def changes(path):
    try:
        os.chmod(path, 0o600)
        return True
    except OSError:
        return False


def reaches(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        return True
    except OSError:
        return False


def forks(most):
    children = []
    try:
        while len(children) < most:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return len(children)


def takes(megabytes):
    try:
        return bool(bytearray(megabytes * 1024 * 1024))
    except MemoryError:
        return False
