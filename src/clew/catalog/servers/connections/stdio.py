"""Runs a server as a program and speaks with it by lines. Unlike the SDK's own transport, it limits the length of a
line, skips lines that are not messages, and captures the error output."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio

from clew.catalog.servers.connections.server_errors import Faults

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MAX_MESSAGE = 8_000_000
MAX_GARBAGE = 1_000
"""How many lines that are not messages a program may print before it is stopped."""

_GRACE = 2.0


@asynccontextmanager
async def open_stdio(
    command: tuple[str, ...], env: Mapping[str, str], cwd: str, faults: Faults
) -> AsyncIterator[TransportStreams]:
    """Run the program, and stop it and its child processes at the end. Raises OSError if it cannot be started."""
    from mcp.client.stdio import get_default_environment  # the SDK takes half a second to import

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=get_default_environment() | dict(env),
        cwd=cwd or None,
        limit=MAX_MESSAGE,
        start_new_session=sys.platform != "win32",
    )
    to_us, ours = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    theirs, to_them = anyio.create_memory_object_stream["SessionMessage"](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, process, to_us, faults)
        group.start_soon(_write, process, to_them, faults)
        group.start_soon(_listen_to_errors, process, faults)
        try:
            yield ours, theirs
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (ours, theirs, to_us, to_them):
                    await stream.aclose()
                await _stop(process)
            group.cancel_scope.cancel()


async def _read(
    process: asyncio.subprocess.Process, to_us: MemoryObjectSendStream[SessionMessage | Exception], faults: Faults
) -> None:
    assert process.stdout is not None
    garbage, reason = 0, ""
    async with to_us:
        while not reason:
            try:
                line = await process.stdout.readline()
            except ValueError:
                reason = f"sent a message of over {MAX_MESSAGE:,} bytes"
                break
            if not line:
                reason = "ended its program"
                break
            if (message := _parse(line)) is None:
                garbage += bool(line.strip())
                reason = "writes lines to its output that are not messages" if garbage >= MAX_GARBAGE else ""
                continue
            try:
                await to_us.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
        faults.end(reason)


def _parse(line: bytes) -> SessionMessage | None:
    """Parse a line. Returns None if it is not a message."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write(
    process: asyncio.subprocess.Process, to_them: MemoryObjectReceiveStream[SessionMessage], faults: Faults
) -> None:
    assert process.stdin is not None
    try:
        async for item in to_them:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except OSError:
        faults.end("does not read its input")
    except anyio.ClosedResourceError:
        return  # the program is being stopped
    finally:
        to_them.close()


async def _listen_to_errors(process: asyncio.subprocess.Process, faults: Faults) -> None:
    """Read all of the error output, so that the program never waits for us."""
    assert process.stderr is not None
    while chunk := await process.stderr.read(65_536):
        faults.hear(chunk)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Close the program's input, wait briefly, then end its whole process group, even if the program itself has
    ended."""
    assert process.stdin is not None
    process.stdin.close()
    if not await _has_ended(process):
        _signal(process, "SIGTERM")
    if not await _has_ended(process):
        _signal(process, "SIGKILL")
        await _has_ended(process)
    if sys.platform != "win32" and _signal(process, "SIGTERM"):
        await _group_has_ended(process.pid)
        _signal(process, "SIGKILL")


async def _group_has_ended(group: int) -> None:
    """Wait until no process of the group is left, but not for long."""
    with suppress(TimeoutError, ProcessLookupError, PermissionError):
        async with asyncio.timeout(_GRACE):
            while True:
                os.killpg(group, 0)
                await asyncio.sleep(0.02)


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ended in time. Its output is read on, since a program may wait for that."""
    assert process.stdout is not None

    async def drain() -> None:
        assert process.stdout is not None
        with suppress(RuntimeError):  # the reader of `_read` may still hold it
            while await process.stdout.read(65_536):
                pass
        await process.wait()

    try:
        async with asyncio.timeout(_GRACE):
            await drain()
    except TimeoutError:
        return False
    return True


def _signal(process: asyncio.subprocess.Process, name: str) -> bool:
    """Send a signal to the program. Returns whether there was a process to receive it."""
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, getattr(signal, name))
    except (ProcessLookupError, PermissionError):
        return False
    return True
