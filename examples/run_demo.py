"""`make run`: a workspace with three domains, a handbook and a foreign MCP server; an agent walks through it from a
question to the answer. Then the server is left running.

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
from typing import Any

from clew.app import open_app
from clew.client import Client
from clew.config import Config, read_config
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.selector import Selector
from clew.trail.transfer import import_trail
from walk import as_listed, open_agent, say, show_limits, show_tokens, walk

HERE = Path(__file__).parent
DATA = HERE / "data" / "northline.jsonl"
WORKSPACE = HERE / "06_workspace"
AGENTS, KNOWLEDGE = HERE / "08_agents.py", HERE / "09_knowledge.py"
SEARCH = "customer was charged twice"
PAUSE = 0.4
"""Seconds between the writes, so that a person can watch them arrive."""


async def main() -> None:
    say("Starting an example workspace ...")
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    folder = Path(tempfile.mkdtemp(prefix="clew-demo-"))
    try:
        config = prepare(folder / "northline")
        await agree(config)
        await fill(config)
        async with running_server(config) as url:
            credential = (config.folder / "credential").read_text().strip()
            async with Client(url, credential=credential, owner_id=config.owner, agent_id="demo") as client:
                await show_search(client)
                await show_events(client)
                await show_walk(url, config)
            await show_conversation()
            await show_knowledge()
            await stay(config, url)
    finally:
        os.chdir(HERE)
        shutil.rmtree(folder, ignore_errors=True)


def prepare(place: Path) -> Config:
    """A copy of the example to work on. Its modules and programs are found from there, as they are from a shell."""
    shutil.copytree(
        WORKSPACE, place, ignore=shutil.ignore_patterns("__pycache__", "*.db", "trail.db*", "keys", "credential")
    )
    os.chdir(place)
    sys.path.insert(0, str(place))
    os.environ["PYTHONPATH"] = str(place)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ["CLEW_TRUST"] = str(place.parent / "trust.json")  # consent to the copy ends with the copy
    return read_config(place / ".clew", os.environ)


async def agree(config: Config) -> None:
    """Nothing that a folder brings runs before its user has agreed to it; this one is our own."""
    say("$ clew trust --yes")
    for line in (await clew("trust", "--yes", "--folder", str(config.folder))).splitlines():
        say(line)
    say()


async def clew(*words: str) -> str:
    """What a command prints."""
    out, err = asyncio.subprocess.PIPE, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "clew", *words, stdout=out, stderr=err)
    printed, problem = await process.communicate()
    if process.returncode:
        sys.exit(problem.decode())
    return printed.decode()


async def fill(config: Config) -> None:
    """Notes of the ferry line on the trail; the handbook and the foreign server in the catalog."""
    async with open_app(config) as app:
        await app.bootstrap()
        with DATA.open("rb") as lines:
            report = await import_trail(app.trail, app.me, lines)
        workspace = await app.workspace()
        problems = await workspace.meet_servers()
        failed = [each.error for each in await workspace.lifecycle().restart() if each.outcome == "failed"]
        if problems or failed:
            sys.exit(f"the workspace is not whole: {problems or failed}")
        counts = await workspace.catalog.counts()
    say(f"A small ferry line: {report.created} breadcrumbs and {report.edges} edges on its trail,")
    say(f"{counts.domain_count} domains ({', '.join(counts.domains)}) with {counts.route_count} routes and")
    say(f"{counts.resource_count} resources in its catalog. The domain geo is an MCP server of somebody else.\n")


@asynccontextmanager
async def running_server(config: Config) -> AsyncIterator[str]:
    port = free_port(config.server.host, config.server.port)
    command = [sys.executable, "-m", "clew", "up", "--json", "--folder", str(config.folder), "--port", str(port)]
    quiet = {**os.environ, "CLEW_AGENTS": "false"}  # the trail alone: agents are shown by themselves, further down
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=quiet)
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
    say(f"A search of the trail, by words and by meaning, for {SEARCH!r}:")
    result = await client.search(SEARCH)
    for at, hit in enumerate(result.hits[:3], 1):
        say(f"  {at}. {hit.score:.2f}  {hit.breadcrumb.schema_name:<16} {hit.breadcrumb.title}")
    say()


async def show_events(client: Client) -> None:
    """Follow the events of a session while somebody writes to it."""
    say("The events of the conversation session:quay-7, live:")
    async with aclosing(client.events(Selector(session="quay-7"), after=0)) as events:
        conversation = [await anext(events) for _ in range(9)]
        say(f"  ... {len(conversation)} earlier ones")
        writing = asyncio.create_task(write(client))
        for _ in range(2):
            event = await anext(events)
            what = event.type.removeprefix("breadcrumb.")
            when = f"{event.updated_at.astimezone():%H:%M:%S}"
            say(f"  {when}  #{event.seq} {what:<8} {event.schema_name:<18} {event.context['message']}")
        await writing
    say()


async def write(client: Client) -> None:
    """A message, and a change of it."""
    message = {"message": "See you on Friday."}
    tags = ["session:quay-7"]
    draft = Draft(title="Support: goodbye", schema_name="agent.response.v1", tags=tags, context=message)
    written = await client.create(draft)
    await asyncio.sleep(PAUSE)
    farewell = Change(context={"message": "See you on Friday. Bring the bicycle!"})
    await client.update(written.id, farewell, expect=written.version)


async def show_walk(url: str, config: Config) -> None:
    """An agent at the MCP door: the walk, its answer and its price."""
    async with open_agent(url, await token_of(config)) as (agent, listed):
        say(f"An agent at {url}/mcp. It is given two tools, {' and '.join(each['name'] for each in listed)}.")
        say("  (= what a route said, > where its guidance leads)")
        await walk(agent)
        say()
        await show_limits(agent.client)
        say()
        show_tokens(agent, listed, await all_tools())
        say()


async def show_conversation() -> None:
    """Agents at work, with a script in the place of a model."""
    say("$ python examples/08_agents.py   # a tool that fails is mended, and a prompt has its receipt")
    await run_example(AGENTS)
    say("With a model of your own, `clew chat` does that in any folder.\n")


async def show_knowledge() -> None:
    """Questions about this very repository."""
    say("$ python examples/09_knowledge.py   # reads this repository, which takes a while, and answers from it")
    await run_example(KNOWLEDGE)
    say("In a folder of yours: `clew ask`, `clew locate`, `clew callers`, `clew blame-why`.\n")


async def run_example(example: Path) -> None:
    out = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(sys.executable, str(example), stdout=out, stderr=out)
    printed, problem = await running.communicate()
    if running.returncode:
        sys.exit(problem.decode())
    for line in printed.decode().splitlines():
        say(line)


async def token_of(config: Config) -> str:
    """A token for the agent, as `clew token` prints it."""
    return (await clew("token", "--agent", "demo", "--folder", str(config.folder))).strip()


async def all_tools() -> list[dict[str, Any]]:
    """Every tool of the workspace as servers list tools where nothing stands between them and the agent."""
    from geo_server import server  # both are found only after `prepare`
    from northline import build_domains

    foreign = [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in await server.list_tools()]
    return [*as_listed(build_domains()), *foreign]


async def stay(config: Config, url: str) -> None:
    """Leave the server running for a person; end at once for a script."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(f"The server answered at {url}; without a terminal it ends here.")
        return
    place = config.folder.parent
    say(f"The server runs until Ctrl-C; its reference is at {url}/docs. Try, in another terminal:")
    print(
        f"  cd {place} && export PYTHONPATH=$PWD PATH={Path(sys.executable).parent}:$PATH CLEW_TRUST=$PWD/../trust.json"
    )
    say("  clew domains")
    say('  clew ask "who may refund 300 euros?"')
    say('  clew trail search "storm without a connection"')
    print(f'  curl -H "Authorization: Bearer $(clew token)" {url}/domains', flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("\nThe server has ended, and the example workspace is gone.")
