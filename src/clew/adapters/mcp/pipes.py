"""Standard input and output as two streams of messages, one JSON line each.

Threads do the blocking reads and writes. They are daemon threads, so that a signal can end the process during a read.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from queue import SimpleQueue

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId
from pydantic import ValidationError

from clew.adapters.mcp.handshake import MAX_LINE, Handshake, claim_pipes, split_lines, write_all

LAST_ANSWERS_SECONDS = 2.0
"""Seconds that pending requests may take after the end of input."""

_AHEAD = 64

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@contextlib.asynccontextmanager
async def open_pipes(handshake: Handshake | None = None) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Yield the stream of messages from standard input and the one to standard output, or those of a handshake. While
    they are open, other readers of standard input see its end, and other output goes to standard error.

    The first stream ends with standard input, after the answers to pending requests. If the reader of standard output
    closes it, both streams end.
    """
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    pending, reading, written = _PendingRequests(), anyio.CancelScope(), anyio.Event()
    claimed = claim_pipes() if handshake is None else contextlib.nullcontext((handshake.source, handshake.sink))
    with claimed as (source, sink):
        lines = split_lines(source) if handshake is None else handshake.lines()
        async with anyio.create_task_group() as group:

            async def read() -> None:
                with reading:
                    await _read(_LineReader(lines), received, outgoing.clone(), pending)

            async def write() -> None:
                try:
                    await _write(_LineWriter(sink), to_send, pending, handshake)
                except OSError:
                    group.cancel_scope.cancel()
                finally:
                    written.set()

            group.start_soon(read)
            group.start_soon(write)
            yield incoming, outgoing
            reading.cancel()
            outgoing.close()
            with anyio.move_on_after(LAST_ANSWERS_SECONDS):
                await written.wait()
            group.cancel_scope.cancel()


async def _read(
    reader: _LineReader,
    received: MemoryObjectSendStream[SessionMessage | Exception],
    answers: Outgoing,
    pending: _PendingRequests,
) -> None:
    """Forward messages until the input ends. A line that is not a message gets an error response here."""
    async with received, answers:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while (line := await reader.next()) is not None:
                if not line.strip():
                    continue
                message = _parse(line)
                if isinstance(message, JSONRPCError) and message.id is None:
                    await answers.send(SessionMessage(message))
                else:
                    pending.add(message)
                    await received.send(SessionMessage(message))
            with anyio.move_on_after(LAST_ANSWERS_SECONDS):
                await pending.wait()


async def _write(
    writer: _LineWriter,
    to_send: MemoryObjectReceiveStream[SessionMessage],
    pending: _PendingRequests,
    handshake: Handshake | None,
) -> None:
    """Write messages until the stream ends, except the SDK's own answer to a handshake that was answered already.
    Raises OSError when the reader has gone."""
    async for each in to_send:
        if handshake is not None and _is_answer(each.message, handshake.answered):
            handshake = None
        else:
            await writer.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        pending.settle(each.message)


def _is_answer(message: types.JSONRPCMessage, id: RequestId | None) -> bool:
    return id is not None and isinstance(message, JSONRPCResponse | JSONRPCError) and message.id == id


def _parse(line: bytes) -> types.JSONRPCMessage:
    """Parse the message of a line, or return the error response for it."""
    code, text = types.INVALID_REQUEST, f"a line is over {MAX_LINE:,} bytes"
    if len(line) <= MAX_LINE:
        try:
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            is_json = error.errors()[0]["type"] != "json_invalid"
            code = types.INVALID_REQUEST if is_json else types.PARSE_ERROR
            text = "a line must be one JSON-RPC message" if is_json else "a line is not JSON"
    return JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=text))


class _PendingRequests:
    """The requests without an answer."""

    def __init__(self) -> None:
        self._ids: set[RequestId] = set()
        self._changed = asyncio.Event()

    def add(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._discard((message.params or {}).get("requestId"))

    def settle(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._discard(message.id)

    async def wait(self) -> None:
        """Wait until all requests have an answer."""
        while self._ids:
            self._changed.clear()
            await self._changed.wait()

    def _discard(self, id: RequestId | None) -> None:
        if isinstance(id, str | int):
            self._ids.discard(id)
            self._changed.set()


class _LineReader:
    """Lines, read a few ahead."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_AHEAD)
        threading.Thread(target=self._run, args=(lines,), name="clew-stdin", daemon=True).start()

    async def next(self) -> bytes | None:
        """Return the next line, or None at the end. A line over MAX_LINE is cut after MAX_LINE + 1 bytes."""
        line = await self._lines.get()
        self._room.release()
        return line

    def _run(self, lines: Iterator[bytes]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in lines:
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


class _LineWriter:
    """Writes lines to a descriptor one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._run, args=(descriptor,), name="clew-stdout", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Write a line and wait for it. Raises OSError if the reader has closed the pipe."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((line + b"\n", done))
        await done

    def _run(self, descriptor: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while True:
                data, done = self._jobs.get()
                self._loop.call_soon_threadsafe(_settle, done, write_all(descriptor, data))


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
