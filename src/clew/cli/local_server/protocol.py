"""The socket between a command and the server of its folder: its name, the request and the reply.

The socket lies in the folder `.clew`, and only the user who runs the server can connect to it. Its name contains a
digest of everything other than the files that affects an answer. So a command with other settings, or with different
consent to config.py, finds no socket.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from clew import __version__
from clew.files import read_file
from clew.trust import real_folder

VARIABLE = "CLEW_NO_SERVER"
"""If this variable is set and not empty, commands do not use a running server."""
PREFIX, SUFFIX, DRAFT_SUFFIX = "server-", ".sock", ".new"
SOCKET_FILES = (f"{PREFIX}*{SUFFIX}", f"{PREFIX}*{DRAFT_SUFFIX}")
"""Patterns of the sockets in a folder, and of unfinished ones."""
_PYTHON = "config.py"
SETTINGS_FILES = ("config.toml", _PYTHON)
MAX_SETTINGS = 1_000_000
"""Bytes of a file of settings. A command does not read more before it looks for a socket."""
MAX_PATH = 90
"""Bytes of the path of a socket; systems allow from 104 on, with the digest."""
MAX_REQUEST = 1_000_000
MAX_REPLY = 32_000_000
"""Bytes of a reply. A command whose answer is larger does the work itself."""
_SETTINGS = "CLEW_"
_NOT_DECISIVE = (VARIABLE, "CLEW_FOLDER", "CLEW_DEBUG")
_SERVER_ONLY = ("CLEW_SERVER_", "CLEW_WEBHOOKS_", "CLEW_HYGIENE_")
_PLACES = ("HOME", "XDG_CONFIG_HOME")
"""Variables that say where the consent of the user is."""


class LocalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `clew ask`. `wants_lines` asks for the lines that the answer cites."""

    query: str
    domain: str | None = None
    per_domain: int
    budget: int
    handle: str | None = None
    cached: bool = False
    owner: str | None = None
    scopes: Sequence[str] = ()
    wants_lines: bool = False


class LocalReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer as JSON, lines to show beside it, and the folder that it is about. `files` are the blob id and the
    lines of each cited file, up to the last cited line."""

    answer: msgspec.Raw
    notes: Sequence[str]
    root: str
    files: Mapping[str, tuple[str, list[str]]] = {}


ACKNOWLEDGED = b"\n"
"""The first byte of a reply, sent at once. If nothing follows it, the command does the work itself."""


def socket_name(folder: Path, environ: Mapping[str, str]) -> str:
    """The name of the socket for the settings of a folder. A link to the folder of another project gives another name.

    Raises OSError for settings that cannot be read, are too large or not in a regular file, and ConfigError.
    """
    decisive = [
        f"{name}={environ[name]}"
        for name in sorted(environ)
        if name in _PLACES
        or (name.startswith(_SETTINGS) and name not in _NOT_DECISIVE and not name.startswith(_SERVER_ONLY))
    ]
    project = real_folder(folder.absolute().parent)
    digest = hashlib.sha256("\0".join([__version__, project, *decisive]).encode("utf-8", "surrogateescape"))
    for name in SETTINGS_FILES:
        with suppress(FileNotFoundError):
            content = read_file(folder / name, MAX_SETTINGS)
            digest.update(b"\0" + name.encode() + b"\0" + content)
            if name == _PYTHON:
                digest.update(b"\0agreed" if _is_agreed(folder) else b"\0not agreed")
    return f"{PREFIX}{digest.hexdigest()[:16]}{SUFFIX}"


def _is_agreed(folder: Path) -> bool:
    from clew.config.python_file import may_run  # few folders have this file

    return may_run(folder)


@contextmanager
def short_path(folder: Path) -> Iterator[Path]:
    """An equivalent path of a folder that is short enough for a socket in it. Raises OSError if there is none."""
    if len(os.fsencode(folder)) + len(PREFIX + SUFFIX) + 16 <= MAX_PATH:
        yield folder
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        place = Path(f"/proc/self/fd/{opened}")
        if not place.exists():
            raise OSError(f"the path of {folder} is too long for a socket")
        yield place
    finally:
        os.close(opened)
