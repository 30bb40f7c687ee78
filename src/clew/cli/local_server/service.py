"""The server's side of the socket: answers `clew ask` with the open trail and index of `clew up` or `clew mcp`."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import stat
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.app import App
from clew.cli.local_server.protocol import (
    ACKNOWLEDGED,
    DRAFT_SUFFIX,
    MAX_REPLY,
    MAX_REQUEST,
    PREFIX,
    SOCKET_FILES,
    LocalReply,
    LocalRequest,
    short_path,
    socket_name,
)
from clew.cli.project import project_root
from clew.cli.terminal.source_lines import ReadLines, read_lines
from clew.config import read_config
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.catalog.operations.answers import Cited
    from clew.catalog.workspace.workspace import Workspace

ATTEMPTS = 20
"""How often a question is repeated while its citations are not ready. A command waits longer than other callers."""
BACKLOG = 100
REQUEST_SECONDS, SEND_SECONDS = 10.0, 60.0
"""How long a command may take to send its request, and to receive its reply."""
DRAFT_SECONDS = 60.0
"""The age above which a draft socket cannot belong to a starting server."""
_log = logging.getLogger(__name__)


@asynccontextmanager
async def answering_commands(app: App) -> AsyncIterator[None]:
    """Answer commands of this user and folder while the context is open. If no socket can be created, commands do the
    work themselves."""
    folder = app.config.folder.absolute()
    try:
        name, owner = socket_name(app.config.folder, os.environ), read_config(app.config.folder, os.environ).owner
        with short_path(folder) as place:
            remove_stale(place)
            listener, made = bind_socket(place / name)
    except (OSError, AttributeError, ClewError) as error:  # a file system or a platform without sockets
        _log.info("commands do not use this server: %s", error)
        yield
        return
    path = folder / name
    server = await asyncio.start_unix_server(
        partial(_serve, app, owner), sock=listener, backlog=BACKLOG, limit=MAX_REQUEST
    )
    try:
        yield
    finally:
        server.close()
        with suppress(OSError):
            if os.path.samestat(path.lstat(), made):  # a later server may have replaced it
                path.unlink()


def bind_socket(path: Path) -> tuple[socket.socket, os.stat_result]:
    """A socket that listens at a path, for this user only, in place of an earlier one, and its file. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX)
    draft = path.with_name(f"{PREFIX}{secrets.token_hex(6)}{DRAFT_SUFFIX}")
    try:
        listener.bind(str(draft))
        draft.chmod(0o600)
        listener.listen(BACKLOG)  # before the rename, because a socket that refuses connections is treated as stale
        made = draft.lstat()
        draft.replace(path)
    except OSError:
        listener.close()
        draft.unlink(missing_ok=True)
        raise
    return listener, made


def remove_stale(folder: Path) -> None:
    """Remove sockets that ended servers left behind. A recent draft is kept, because its server may be starting."""
    for path in [each for pattern in SOCKET_FILES for each in folder.glob(pattern)]:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            found = path.lstat()
            is_new = path.suffix == DRAFT_SUFFIX and time.time() - found.st_mtime < DRAFT_SECONDS
            if stat.S_ISSOCK(found.st_mode) and not is_new:
                connection.settimeout(1.0)
                try:
                    connection.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()


async def _serve(app: App, owner: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one command, whose request is one line. After an error the reply is empty; the command then does the work
    itself and reports the error."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            line = await reader.readline()
        writer.write(ACKNOWLEDGED)
        reply = await _answer(app, msgspec.json.decode(line, type=LocalRequest), owner)
        encoded = b"" if reply is None else msgspec.json.encode(reply)
        writer.write(encoded if len(encoded) <= MAX_REPLY else b"")
    except (ClewError, OSError, ValueError) as error:  # ValueError: the request is malformed
        _log.info("a command does its work itself: %s", error)
    finally:
        await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Send the rest of the reply, and close the connection. A command that does not read it in time is dropped."""
    writer.close()
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await writer.wait_closed()
    except OSError:
        writer.transport.abort()


async def _answer(app: App, request: LocalRequest, owner: str) -> LocalReply | None:
    """Return the answer; None if the command must find it itself. `owner` is the default owner of the request, from the
    settings."""
    from clew.catalog.operations.answers import Question  # loaded with the workspace
    from clew.knowledge.base import LATE

    workspace = await app.workspace()
    if (request.owner or owner) != app.config.owner or app.refusal:
        return None
    question = Question(
        query=request.query,
        domain=request.domain,
        per_domain=request.per_domain,
        budget=request.budget,
        handle=request.handle,
    )
    by = msgspec.structs.replace(app.me, scopes=frozenset(filter(None, map(str.strip, request.scopes))))
    notes = workspace.tell_problems()
    is_read = request.cached or await _read(app, workspace, notes)
    for _ in range(ATTEMPTS):
        answer = await workspace.catalog.ask(question, by=by, refresh=not is_read, tells_pending=False)
        if LATE not in answer.notes or not is_read:
            break
    else:
        return None
    root = project_root(app.config)
    files = await asyncio.to_thread(_cited_lines, answer.known, root) if request.wants_lines else {}
    return LocalReply(answer=msgspec.Raw(msgspec.json.encode(answer)), notes=notes, root=str(root), files=files)


def _cited_lines(known: Sequence[Cited], root: Path) -> dict[str, ReadLines]:
    """The cited files, each up to its last cited line."""
    ends: dict[str, int] = {}
    for item in known:
        if item.path:
            ends[item.path] = max(item.end, ends.get(item.path, 0))
    read = {path: read_lines(root, path) for path in ends}
    return {path: (blob, lines[: ends[path]]) for path, (blob, lines) in read.items()}


async def _read(app: App, workspace: Workspace, notes: list[str]) -> bool:
    """Read changed files, as the command itself would. Returns False while the first complete read is in progress."""
    if not app.has_knowledge():
        reports = await workspace.look_again()
    elif app.knowledge().code.is_whole:
        reports = await app.knowledge().gather_briefly(workspace.look_again) or []
    else:
        return False
    notes += [f"{each.source_id} was not refreshed: {each.error}" for each in reports if each.outcome == "failed"]
    return True
