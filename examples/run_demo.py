"""`make run`: serve an example trail, show a first search and the live events, and leave the server running.

Without a terminal it ends by itself after the demonstration. It needs neither a network nor a key.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from clew.app import open_app
from clew.client import Client
from clew.config import Config, read_config
from clew.trail.breadcrumb import Change, Draft
from clew.trail.selector import Selector
from clew.trail.transfer import import_trail

DATA = Path(__file__).parent / "data" / "northline.jsonl"
QUESTION = "customer was charged twice"
PAUSE = 0.6
"""Seconds between the writes, so that a person can watch them arrive."""


async def main() -> None:
    say("Starting an example trail ...")
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    folder = Path(tempfile.mkdtemp(prefix="clew-demo-"))
    try:
        config = read_config(folder, os.environ)
        await fill(config)
        async with running_server(config) as url:
            credential = (folder / "credential").read_text().strip()
            async with Client(url, credential=credential, owner_id=config.owner, agent_id="demo") as client:
                await show_search(client)
                await show_events(client)
            await stay(folder, url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(text: str = "") -> None:
    """One line, at once."""
    print(text, flush=True)


async def fill(config: Config) -> None:
    """The trail of a small ferry line: its tools, decisions, notes, and one conversation."""
    async with open_app(config) as app:
        await app.bootstrap()
        with DATA.open("rb") as lines:
            report = await import_trail(app.trail, app.me, lines)
    say(f"It holds {report.created} breadcrumbs and {report.edges} edges of a small ferry line.\n")


@asynccontextmanager
async def running_server(config: Config) -> AsyncIterator[str]:
    port = free_port(config.server.host, config.server.port)
    command = [sys.executable, "-m", "clew", "up", "--json", "--folder", str(config.folder), "--port", str(port)]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    try:
        ready = await server.stdout.readline()
        if not ready:
            sys.exit(f"the server did not start: {' '.join(command)}")
        yield json.loads(ready)["url"]
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()


def free_port(host: str, wanted: int) -> int:
    """The port of the settings, 8081 by default; 0 for any free one where that is taken."""
    try:
        socket.create_server((host, wanted)).close()
    except OSError:
        return 0
    return wanted


async def show_search(client: Client) -> None:
    say(f"A search, by words and by meaning, for {QUESTION!r}:")
    result = await client.search(QUESTION)
    for at, hit in enumerate(result.hits[:5], 1):
        say(f"  {at}. {hit.score:.2f}  {hit.breadcrumb.schema_name:<16} {hit.breadcrumb.title}")
    say()


async def show_events(client: Client) -> None:
    """Follow the events of a session while somebody writes to it."""
    say("The events of the conversation session:quay-7, live:")
    async with aclosing(client.events(Selector(session="quay-7"), after=0)) as events:
        conversation = [await anext(events) for _ in range(9)]
        say(f"  ... {len(conversation)} earlier ones")
        writing = asyncio.create_task(write(client))
        for _ in range(3):
            event = await anext(events)
            what = event.type.removeprefix("breadcrumb.")
            when = f"{event.updated_at.astimezone():%H:%M:%S}"
            say(f"  {when}  #{event.seq} {what:<8} {event.schema_name:<18} {event.context['message']}")
        await writing
    say()


async def write(client: Client) -> None:
    """Two messages, and a change of the second."""
    tags = ["session:quay-7"]
    for schema, title, message in (
        ("user.message.v1", "Passenger: thank you", "Thank you, see you on Friday!"),
        ("agent.response.v1", "Support: goodbye", "See you on Friday."),
    ):
        written = await client.create(Draft(title=title, schema_name=schema, tags=tags, context={"message": message}))
        await asyncio.sleep(PAUSE)
    farewell = Change(context={"message": "See you on Friday. Bring the bicycle!"})
    await client.update(written.id, farewell, expect=written.version)


async def stay(folder: Path, url: str) -> None:
    """Leave the server running for a person; end at once for a script."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(f"The server answered at {url}; without a terminal it ends here.")
        return
    say(f"The server runs until Ctrl-C; its reference is at {url}/docs. Try, in another terminal:")
    say(f"  export CLEW_FOLDER={folder} PATH={Path(sys.executable).parent}:$PATH")
    say("  clew trail ls --tag decision")
    say('  clew trail search "storm without a connection"')
    say("  clew trail tail")
    say(f'  curl -H "Authorization: Bearer $(clew token)" "{url}/breadcrumbs/search?q=refund"')
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("\nThe server has ended, and the example trail is gone.")
