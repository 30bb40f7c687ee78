"""`clew ask` by way of a running server: the same output, without loading the catalog.

The command itself handles every unusual case, such as errors or a server that does not answer. So this module imports
little, and returns `None` in any such case.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clew.cli.local_server.protocol import (
    ACKNOWLEDGED,
    MAX_REPLY,
    VARIABLE,
    LocalReply,
    LocalRequest,
    short_path,
    socket_name,
)
from clew.cli.terminal.output import note, print_json
from clew.config import find_folder, is_broad
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.catalog.operations.answers import CatalogAnswer

ACKNOWLEDGE_SECONDS = 2.0
"""How long a server may take to acknowledge a question. It is busy while it starts."""
ANSWER_SECONDS = 60.0
"""How long a server may take for its whole answer."""


def ask_server(given: dict[str, Any]) -> int | None:
    """Ask the server of the folder and print its answer. `given` are the arguments from `read_arguments`. Returns the
    exit code, or None if no server answers."""
    is_used = hasattr(socket, "AF_UNIX") and not os.environ.get(VARIABLE)
    folder = _find_folder(given) if is_used else None
    if folder is None:
        return None
    is_json, is_for_agents = "json" in given, "agent" in given
    request = LocalRequest(
        query=given["query"],
        domain=given.get("domain"),
        per_domain=given["per_domain"],
        budget=given["budget"],
        handle=given.get("handle"),
        cached="cached" in given,
        owner=given.get("owner"),
        scopes=given.get("scopes", "").split(","),
        wants_lines=not is_json and not is_for_agents,
    )
    reply, answer = None, None
    with suppress(OSError, ClewError, msgspec.MsgspecError, UnicodeError, RecursionError):
        reply = _exchange(folder, msgspec.json.encode(request) + b"\n")
        answer = None if reply is None or is_json else _decode_answer(reply.answer)
    if reply is None or (answer is None and not is_json):
        return None
    for line in reply.notes:
        note(line)
    if answer is None:
        print_json(reply.answer)
        return 0
    from clew.cli.terminal.answer import print_answer  # only for an answer that is rendered here
    from clew.cli.terminal.source_lines import SourceLines

    root = Path(reply.root)
    print_answer(answer, request.query, root, agent=is_for_agents, json=False, files=SourceLines(root, reply.files))
    return 0


def _decode_answer(encoded: msgspec.Raw) -> CatalogAnswer:
    """Decode an answer. Raises MsgspecError for an unknown format, such as from a server that started before an
    update."""
    from clew.catalog.operations.answers import CatalogAnswer  # only for an answer that is rendered here

    return msgspec.json.decode(encoded, type=CatalogAnswer)


def _find_folder(given: dict[str, Any]) -> Path | None:
    named = given.get("folder") or os.environ.get("CLEW_FOLDER")
    if named:
        return Path(named)
    folder = find_folder(Path.cwd())
    return None if is_broad(folder.absolute().parent) else folder


def _exchange(folder: Path, request: bytes) -> LocalReply | None:
    """The reply of the server. Raises OSError if no server runs, or if it belongs to another user."""
    name = socket_name(folder, os.environ)
    with short_path(folder) as place, socket.socket(socket.AF_UNIX) as connection:
        path = place / name
        found = path.lstat()
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            return None
        connection.settimeout(ACKNOWLEDGE_SECONDS)
        connection.connect(str(path))
        if not _is_mine(connection):
            return None
        connection.sendall(request)
        if connection.recv(1) != ACKNOWLEDGED:
            return None
        received = _receive(connection)
    return msgspec.json.decode(received, type=LocalReply) if received else None


def _receive(connection: socket.socket) -> bytes:
    """Everything that the server sends. Raises OSError if it sends too much or takes too long."""
    deadline = time.monotonic() + ANSWER_SECONDS
    received = bytearray()
    while True:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(1 << 16)
        if not part:
            return bytes(received)
        received += part
        if len(received) > MAX_REPLY or time.monotonic() > deadline:
            raise OSError("the server does not end its reply")


def _is_mine(connection: socket.socket) -> bool:
    """Whether the process at the other end is of this user, if the system can tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return bool(user == os.geteuid())
