"""The same over HTTP: start `clew up`, write and search through the client, and follow the events.

Run it: python examples/05_client.py
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from clew.client import Client
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import Selector


@asynccontextmanager
async def running_server(folder: Path) -> AsyncIterator[str]:
    """`clew up` on a free port; yields its address."""
    command = [sys.executable, "-m", "clew", "up", "--port", "0", "--json", "--folder", str(folder)]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    try:
        yield json.loads(await server.stdout.readline())["url"]
    finally:
        server.terminate()
        await server.wait()


def count_visitor(found: Breadcrumb) -> Change:
    return Change(context={"visitors": found.context["visitors"] + 1})


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder)) as url:
            credential = (Path(folder) / "credential").read_text().strip()
            async with Client(url, credential=credential) as client:
                await use(client)


async def use(client: Client) -> None:
    door = await client.create(Draft(title="The museum door", context={"visitors": 0}, tags=["museum"]))

    # Ten writers at once: each reads, merges and tries again until its own change is in.
    await asyncio.gather(*(client.edit(door.id, count_visitor) for _ in range(10)))
    seen = await client.get_full(door.id)
    print(f"visitors: {seen.context['visitors']}, version {seen.version}")

    result = await client.search("entrance of the museum")
    print(f"found: {result.hits[0].breadcrumb.title}")

    async with aclosing(client.events(Selector(all_tags=["museum"]), after=0)) as events:
        async for event in events:
            print(f"event: {event.type} version {event.version}")
            if event.version == seen.version:
                return


if __name__ == "__main__":
    asyncio.run(main())
