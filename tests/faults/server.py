"""A server process for test_server.py."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from tests.servers import serve


async def serve_until_killed(channel: Connection, folder: Path, port: int) -> None:
    """Serve the trail of a folder, and print its address and credential."""
    async with serve(folder, port=port) as served:
        channel.send((served.url, served.credential))
        await asyncio.get_running_loop().create_future()
