"""`clew up`: the trail of a folder behind the REST door, with its background work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from clew.app import App, open_app
from clew.cli.allocator import limit_arenas
from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here
from clew.cli.project import describe_folder, prepare_folder, trail_file
from clew.cli.terminal.output import count, note, print_json, say
from clew.config import Config, find_folder
from clew.errors import ConfigError
from clew.trail.config_consent import confirm_settings, is_loopback

if TYPE_CHECKING:
    from clew.team.team import Team


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `clew up --json` once the server answers."""

    url: str
    docs: str
    mcp: str
    folder: str
    trail: str
    owner: str
    breadcrumbs: int
    events: int
    edges: int
    pid: int


def up(
    *,
    host: Annotated[str | None, Parameter(help="The address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, Parameter(help="The port, 0 for a free one. [default: 8081]")] = None,
    json: Annotated[bool, Parameter(help="Print one line of JSON once it answers.")] = False,
    here: Here = HERE,
) -> None:
    """Serve the trail of this folder until Ctrl-C.

    REST and MCP over HTTP, for any number of agents with tokens. An agent that starts its server itself is served by
    `clew mcp` instead, and needs none of this. Makes the folder .clew with settings, keys and an empty trail where
    there is none. While it runs, expired breadcrumbs are removed and webhooks delivered.

        clew up
        clew up --port 0 --json
        clew up --folder ~/notes/.clew --owner ann
    """
    config = confirm_settings(here.config({"server.host": host, "server.port": port}))
    check_project(config)
    check_address(config.server.host, config.server.port)
    limit_arenas()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(config, here.scope_set, as_json=json))


async def serve(config: Config, scopes: frozenset[str], *, as_json: bool = False) -> None:
    """Open, set up, then answer until a signal; everything accepted is finished at the end."""
    # the REST door takes a third of a second to import; wrong arguments are told before
    from clew.adapters.mcp.lazy_mount import LateMcp
    from clew.adapters.rest import Metrics, build_app, open_keys, run_server
    from clew.cli.local_server.service import answering_commands
    from clew.llm.model import open_models

    prepare_folder(config.folder)
    metrics, server = Metrics(), config.server
    async with open_app(config, scopes=scopes) as app:
        keys = open_keys(config.folder, app.clock, timedelta(minutes=server.token_minutes))
        await app.bootstrap()
        told = await _teller(app, as_json=as_json)
        mcp = LateMcp(app.workspace, keys, config)
        async with app.background(metrics.record_delivery) as refresh:
            door = build_app(
                app.trail,
                keys,
                app.hygiene,
                config=config,
                metrics=metrics,
                clock=app.clock,
                refresh_webhooks=refresh,
                set_up=app.owners.set_up,
                workspace=app.workspace,
                models=open_models(config) if config.agents else None,
                router=app.router(),
                team=_team_of(app),
                mcp=mcp,
            )
            agents = app.running_agents() if config.agents else contextlib.nullcontext()
            async with mcp.running(door.closing), app.keeping_fresh(), agents, answering_commands(app):
                await run_server(door, server.host, server.port, ready=told)
    if not as_json:
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # after ^C
        note("Stopped. All accepted requests are on the trail.")


def _team_of(app: App) -> Callable[[], Awaitable[Team]]:
    """Opens the team of the folder at the first call."""
    opened: list[Team] = []

    async def get() -> Team:
        if not opened:
            opened.append(await app.team())
        return opened[0]

    return get


async def _teller(app: App, *, as_json: bool) -> Callable[[str, int], None]:
    """A function that reports, to people or to programs, that the server answers."""
    stats = await app.trail.upkeep.stats(by=app.me)
    file = trail_file(app.config)
    place = str(file.absolute()) if file is not None else app.config.trail_url

    def tell(host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        serving = Serving(
            url=f"http://{shown}:{port}",
            docs=f"http://{shown}:{port}/docs",
            mcp=f"http://{shown}:{port}/mcp",
            folder=str(app.config.folder.absolute()),
            trail=place,
            owner=app.config.owner,
            breadcrumbs=stats.breadcrumbs,
            events=stats.events,
            edges=stats.edges,
            pid=os.getpid(),
        )
        print_json(serving) if as_json else _describe(serving, host, app.config)
        sys.stdout.flush()

    return tell


def _token_command(config: Config) -> str:
    """How to get a token for this folder and owner."""
    where = "" if config.folder == find_folder(Path.cwd()) else f" --folder {shlex.quote(str(config.folder))}"
    return f"clew token{where}" + ("" if config.owner == Config().owner else f" --owner {config.owner}")


def _describe(serving: Serving, host: str, config: Config) -> None:
    token = _token_command(config)
    counts = (count(serving.breadcrumbs, "breadcrumb"), count(serving.edges, "edge"), count(serving.events, "event"))
    say(f"Clew answers at {serving.url}")
    say(f"  reference  {serving.docs}")
    say(f"  MCP        {serving.mcp}")
    say(f"  folder     {describe_folder(config.folder)}")
    say(f"  trail      {serving.trail} ({', '.join(counts)})")
    say(f"  owner      {serving.owner}")
    say(f"  token      {token}")
    say(f'  try        curl -H "Authorization: Bearer $({token})" {serving.url}/breadcrumbs')
    say("  end        Ctrl-C")
    if not is_loopback(host):
        note("Other machines can reach this address, and it has no TLS: put a proxy with TLS before it.")


def check_address(host: str, port: int) -> None:
    """Raise ConfigError unless the address can be listened on now."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise ConfigError(f"cannot listen on {host}:{port} ({reason}). Choose another with --port or --host") from None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists: it answers a third more requests."""
    try:
        import uvloop  # not installed on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
