"""The mark by which a database or record is known to come from this user. A file that came with a repository has none,
and is not trusted. The secret for it is outside of every project, beside the user's trust file."""

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
"""Prefix of records, so that the mark of a record is never that of a file."""


def mark_of(id: str, path: Path) -> str:
    """The mark of the file with this id at this path."""
    place = "\0".join((id, os.path.realpath(path)))
    return _sign(_secret(), place.encode("utf-8", "surrogateescape"))


def marker() -> Callable[[bytes], str]:
    """A function that returns the mark of a record. It reads the secret once."""
    secret = _secret()
    return lambda record: _sign(secret, _RECORD + record)


def is_marked(id: object, mark: object, path: Path) -> bool:
    """Whether this is this user's mark for the file with this id."""
    if not isinstance(id, str) or not isinstance(mark, str):
        return False
    return hmac.compare_digest(mark.encode(), mark_of(id, path).encode())


def _sign(secret: bytes, content: bytes) -> str:
    return hmac.new(secret, content, hashlib.sha256).hexdigest()


def _secret() -> bytes:
    """The user's secret, created if missing. If it cannot be stored, a value that a stranger has to guess."""
    try:
        place = user_file()
        place = place.with_name(f"{place.name}.secret")
        return _read(place) or _create(place)
    except (ConfigError, OSError):
        return "\0".join((socket.gethostname(), os.path.expanduser("~"))).encode("utf-8", "surrogateescape")


def _create(place: Path) -> bytes:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(place):
        if known := _read(place):  # another process was quicker
            return known
        replace_file(place, made := secrets.token_bytes(_BYTES), 0o600)
        return made


def _read(place: Path) -> bytes:
    """The secret, or empty if there is none or it is incomplete."""
    try:
        found = read_file(place)
    except FileNotFoundError:
        return b""
    return found if len(found) == _BYTES else b""
