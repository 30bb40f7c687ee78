"""The example workspace of `clew demo`: three domains, a handbook and a foreign MCP server of a ferry line.

`start`, the second part of `make run`, lets an agent walk through the workspace, and kills a conversation and a team.
`walk` shows every step of that walk, `events` the search and the live events of the trail. On a terminal the server is
left running; without one it ends by itself. Neither a network nor a key is needed.
"""

import asyncio
import json
import logging
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
from question import run_clew, say
from walk import as_listed, open_agent, show_answer, show_limits, show_tokens, walk

HERE = Path(__file__).parent
DATA = HERE / "data" / "northline.jsonl"
WORKSPACE = HERE / "06_workspace"
RESUME = HERE / "10_resume.py"
TEAM = HERE / "11_team.py"
SEARCH = "customer was charged twice"
PAUSE = 0.4
"""Seconds between the writes, so that a person can watch them arrive."""


async def main(what: str) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    folder = Path(tempfile.mkdtemp(prefix="clew-demo-"))
    os.environ["CLEW_TRUST"] = str(folder / "trust.json")  # consent to the copy ends with the copy
    try:
        config = prepare(folder / "northline")
        await agree(config, is_shown=what == "walk")
        await fill(config, is_shown=what != "start")
        async with running_server(config) as url, started_team(what == "start") as team:
            await show(what, url, config)
            if team is not None:
                await show_team(team)
            await stay(url)
    finally:
        os.chdir(HERE)
        shutil.rmtree(folder, ignore_errors=True)


async def show(what: str, url: str, config: Config) -> None:
    if what == "events":
        credential = (config.folder / "credential").read_text().strip()
        async with Client(url, credential=credential, owner_id=config.owner, agent_id="demo") as client:
            await show_search(client)
            await show_events(client)
        return
    if what == "start":
        say("2  An agent in the workspace of a ferry line. It has two tools, ask and get, and follows guidance.\n")
    await show_walk(url, config, is_brief=what == "start")
    if what == "start":
        say("3  A conversation with an agent. Its process is killed when the tool has answered, and another goes on.\n")
        await run_example(RESUME)
        say()


def prepare(place: Path) -> Config:
    """A copy of the example to work on. Its modules and programs are found from there, as they are from a shell."""
    shutil.copytree(
        WORKSPACE, place, ignore=shutil.ignore_patterns("__pycache__", "*.db", "trail.db*", "keys", "credential")
    )
    os.chdir(place)
    sys.path.insert(0, str(place))
    os.environ["PYTHONPATH"] = str(place)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return read_config(place / ".clew", os.environ)


async def agree(config: Config, *, is_shown: bool) -> None:
    """Nothing that a folder brings runs before its user has agreed to it; this one is our own."""
    printed = await run_clew("trust", "--yes", "--folder", str(config.folder))
    for line in ["$ clew trust --yes", *printed.splitlines(), ""] if is_shown else ():
        say(line)


async def fill(config: Config, *, is_shown: bool) -> None:
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
    if is_shown:
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


async def show_walk(url: str, config: Config, *, is_brief: bool) -> None:
    """An agent that uses the MCP server: the walk, its answer and its cost in tokens."""
    token = (await run_clew("token", "--agent", "demo", "--folder", str(config.folder))).strip()
    async with open_agent(url, token) as (agent, listed):
        if not is_brief:
            say(f"An agent at {url}/mcp. It is given two tools, {' and '.join(each['name'] for each in listed)}.")
            say("  (= what a route said, > where its guidance leads)")
        await walk(agent, is_brief=is_brief)
        say()
        if not is_brief:
            show_answer(agent)
            say()
            await show_limits(agent.client)
            say()
        show_tokens(agent, listed, await all_tools())
        say()


async def run_example(example: Path) -> None:
    out = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(sys.executable, str(example), stdout=out, stderr=out)
    printed, problem = await running.communicate()
    if running.returncode:
        sys.exit(problem.decode())
    for line in printed.decode().splitlines():
        say(f"  {line}")


@asynccontextmanager
async def started_team(is_wanted: bool) -> AsyncIterator[asyncio.subprocess.Process | None]:
    """The team at work beside the rest, since it takes longest."""
    if not is_wanted:
        yield None
        return
    out = asyncio.subprocess.PIPE
    team = await asyncio.create_subprocess_exec(sys.executable, str(TEAM), "brief", stdout=out, stderr=out)
    try:
        yield team
    finally:
        if team.returncode is None:
            team.terminate()
        await team.communicate()


async def show_team(team: asyncio.subprocess.Process) -> None:
    say("4  A team adds a function to a repository, proves it with ruff and pytest, and is killed on the way.\n")
    assert team.stdout is not None
    assert team.stderr is not None
    async for line in team.stdout:
        say(f"  {line.decode().rstrip()}")
    if await team.wait():
        say(f"  The team did not end its work: {(await team.stderr.read()).decode().strip()[-200:]}")
    say()


async def all_tools() -> list[dict[str, Any]]:
    """Every tool of the workspace as servers list tools where nothing stands between them and the agent."""
    from geo_server import server  # both are found only after `prepare`
    from northline import build_domains

    foreign = [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in await server.list_tools()]
    return [*as_listed(build_domains()), *foreign]


async def stay(url: str) -> None:
    """Say what to try next. Leave the server running for a person; end at once for a script."""
    say("Try next, in a repository of yours:")
    activate = Path(sys.executable).parent / "activate"
    if shutil.which("clew", path=STARTED_WITH) is None and activate.exists():
        say(f"  . {activate}")
    say('  clew ask "where is ..."         # an answer that cites your files')
    say("  clew connect claude-code        # your coding agent asks the same")
    say('  clew code "add ..."             # the same team, with a model of yours')
    say("  clew demo                       # more to see: walk, events, agents, skills and others")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(f"The server answered at {url}; without a terminal it ends here.")
        return
    say(f"The server runs at {url} until Ctrl-C; its reference is at {url}/docs.")
    await asyncio.Event().wait()


STARTED_WITH = os.environ.get("PATH")


def run(what: str) -> None:
    logging.disable(logging.INFO)  # a foreign server that is imported here turns on the log of every request
    try:
        asyncio.run(main(what))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("\nThe server has ended, and the example workspace is gone.")


if __name__ == "__main__":
    run(sys.argv[1])
