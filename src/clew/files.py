"""Files that several processes write: replaced whole or not at all, by one writer at a time."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among all processes that change `path`; one that ends lets go by itself. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(lock)
        yield
    finally:
        os.close(lock)


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Put content in the place of a file, durably: who reads sees the old or the new. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # there only

        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl  # everywhere else

        fcntl.flock(file, fcntl.LOCK_EX)
