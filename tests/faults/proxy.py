"""A TCP proxy that cuts, holds and delays connections: the network between a process and a server that fails."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType

PATIENCE = 30.0
CHUNK = 65_536
NO_LINGER = struct.pack("ii", 1, 0)
"""A socket that is closed with this option is reset."""


class TcpProxy:
    """Passes connections on to a port of this machine, in a thread of its own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._is_open = asyncio.Event()
        self._is_cut = False
        self._delay = 0.0

    # -- faults ---------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset all connections; new ones are accepted."""
        self._call(self._reset)

    def cut(self) -> None:
        """Reset all connections, and every new one, until `restore`."""

        def cut() -> None:
            self._is_cut = True
            self._reset()

        self._call(cut)

    def hold(self) -> None:
        """Pass nothing on until `restore`: connections stay open and silent."""
        self._call(self._is_open.clear)

    def delay(self, seconds: float) -> None:
        """Pass each piece on after a random time up to `seconds`."""

        def delay() -> None:
            self._delay = seconds

        self._call(delay)

    def restore(self) -> None:
        """End all faults."""

        def restore() -> None:
            self._is_cut, self._delay = False, 0.0
            self._is_open.set()

        self._call(restore)

    def _reset(self) -> None:
        for writer in tuple(self._writers):
            _abort(writer)

    def _call(self, work: Callable[[], None]) -> None:
        async def run() -> None:
            work()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE)

    # -- connections ----------------------------------------------------------------------------------------

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        self.restore()
        listening = asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(PATIENCE)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _end(self) -> None:
        self._is_cut = True
        if self._server is not None:
            self._server.close()
        self._reset()
        own = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            _abort(writer)
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _abort(writer)
            return
        ends = (writer, there_writer)
        self._writers.update(ends)
        try:
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        finally:
            for each in ends:
                self._writers.discard(each)
                _abort(each)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(CHUNK):
                await self._is_open.wait()
                if self._delay:
                    await asyncio.sleep(random.uniform(0.0, self._delay))
                writer.write(piece)
                await writer.drain()
        _abort(writer)


def _abort(writer: asyncio.StreamWriter) -> None:
    """Reset a connection."""
    found: socket.socket | None = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    writer.transport.abort()
