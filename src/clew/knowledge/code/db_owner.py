"""The mark that programs of this user put on what is derived from files: what came with a repository has none that
counts, and is not believed. The secret behind it is kept outside of every folder, beside what the user trusts."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

from clew.errors import ConfigError
from clew.files import locked, read_file, replace_file
from clew.trust import user_file

_BYTES = 32
_RECORD = b"record\0\0"
"""Stands before what is no file: neither can be taken for the other."""


def mark_of(id: str, path: Path) -> str:
    """The mark of the file of an id at a place; the same each time."""
    told = "\0".join((id, os.path.realpath(path)))
    return _mark(_secret(), told.encode("utf-8", "surrogateescape"))


def marker() -> Callable[[bytes], str]:
    """What gives the mark of a record; the same each time. The secret is looked up once."""
    secret = _secret()
    return lambda record: _mark(secret, _RECORD + record)


def is_marked(id: object, mark: object, path: Path) -> bool:
    """Whether the file of an id has the mark that it gets here."""
    return (
        isinstance(id, str) and isinstance(mark, str) and hmac.compare_digest(mark.encode(), mark_of(id, path).encode())
    )


def _mark(secret: bytes, told: bytes) -> str:
    return hmac.new(secret, told, hashlib.sha256).hexdigest()


def _secret() -> bytes:
    """The user's own secret, made where there is none. Where none can be kept, what a stranger has to guess."""
    try:
        place = user_file()
        place = place.with_name(f"{place.name}.secret")
        return _read(place) or _make(place)
    except (ConfigError, OSError):
        return "\0".join((socket.gethostname(), os.path.expanduser("~"))).encode("utf-8", "surrogateescape")


def _make(place: Path) -> bytes:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(place):
        if known := _read(place):  # another process was quicker
            return known
        replace_file(place, made := secrets.token_bytes(_BYTES), 0o600)
        return made


def _read(place: Path) -> bytes:
    """The secret, or nothing where there is none that is whole."""
    try:
        found = read_file(place)
    except FileNotFoundError:
        return b""
    return found if len(found) == _BYTES else b""
