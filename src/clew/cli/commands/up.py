"""`clew up`: the REST and MCP server of a folder, with its background work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from clew.agents.workers.roles import RUNTIME_ROLES, read_roles
from clew.app import App, open_app
from clew.cli.allocator import limit_arenas
from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here
from clew.cli.project import describe_folder, prepare_folder, trail_file
from clew.cli.terminal.output import count, note, print_json, say
from clew.cli.workers.children import ChildWorkers, worker_command
from clew.cli.workers.options import WorkerOptions, read_tags
from clew.cli.workers.shutdown import Shutdown
from clew.clock import Clock, SystemClock
from clew.config import Config, find_folder
from clew.errors import ConfigError
from clew.telemetry.settings import read_telemetry
from clew.telemetry.telemetry import Telemetry, open_telemetry
from clew.trail.config_consent import confirm_settings, is_loopback

if TYPE_CHECKING:
    from clew.team.team import Team
    from clew.worker import WorkerProcess


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
    roles: tuple[str, ...] = ()
    workers: int = 1


class Working(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `clew up --json` without the role `server`, once the process is ready. `url` is empty if it listens
    on no port."""

    url: str
    folder: str
    trail: str
    owner: str
    pid: int
    roles: tuple[str, ...]
    workers: int


def up(
    *,
    host: Annotated[str | None, Parameter(help="The address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, Parameter(help="The port, 0 for a free one. [default: 8081]")] = None,
    role: Annotated[
        tuple[str, ...],
        Parameter(
            help="The work of this process: all, server, context, agents, tools, knowledge, hygiene. Repeatable."
        ),
    ] = (),
    workers: Annotated[int, Parameter(help="How many processes work, this one included.")] = 1,
    tag: Annotated[
        tuple[str, ...], Parameter(help="An ability of this process, such as place:shop; may be repeated.")
    ] = (),
    drain: Annotated[float, Parameter(help="Seconds to finish running work after a signal.")] = 10.0,
    json: Annotated[bool, Parameter(help="Print one line of JSON once it answers.")] = False,
    attached: Annotated[bool, Parameter(help="Drain when the standard input ends.", show=False)] = False,
    here: Here = HERE,
) -> None:
    """Serve the trail of this folder until Ctrl-C.

    REST and MCP over HTTP, for any number of agents with tokens. A coding agent that starts its own server uses `clew
    mcp` instead and does not need `clew up`. Makes the folder .clew with settings, keys and an empty trail if there is
    none. While it runs, expired breadcrumbs are removed and webhooks delivered.

    With --role this process does a part of the work, and other processes on the same trail do the rest. Without the
    role server it answers only /health, /ready and /metrics, and only if --port is given.

        clew up
        clew up --port 0 --json
        clew up --workers 4
        clew up --role agents --role tools --drain 60
    """
    wanted = WorkerOptions(
        roles=read_roles(role),
        tags=read_tags(tag),
        workers=workers,
        drain=drain,
        attached=attached,
        is_heard=port is not None,
    )
    config = confirm_settings(here.config({"server.host": host, "server.port": port}))
    check_project(config)
    if wanted.listens:
        check_address(config.server.host, config.server.port)
    limit_arenas()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(config, here.scope_set, wanted, as_json=json))


async def serve(
    config: Config, scopes: frozenset[str], wanted: WorkerOptions | None = None, *, as_json: bool = False
) -> None:
    """Open, set up, then work until a signal; everything accepted is finished at the end."""
    from clew.worker import WorkerProcess

    wanted = wanted or WorkerOptions()
    prepare_folder(config.folder)
    clock = SystemClock()
    async with _exporting(clock) as telemetry, open_app(config, clock, scopes=scopes, wrap=telemetry.trace) as app:
        await app.bootstrap()
        await app.check_bus()
        worker = WorkerProcess(app, wanted.roles, wanted.tags)
        children = ChildWorkers(_child_command(config, scopes, wanted), wanted.workers - 1)

        async def drain() -> None:
            done = await asyncio.gather(worker.drain(wanted.drain), children.drain(wanted.drain))
            if not all(done):
                note(f"Not everything was done after {wanted.drain:g} s: the rest waits on the trail.")

        shutdown = Shutdown(drain)
        at_end = shutdown.at_end_of_input() if wanted.attached else contextlib.nullcontext()
        with shutdown.on_signals():
            async with at_end, children.running():
                serving = _serve_door if "server" in wanted.roles else _work_only
                await serving(worker, shutdown, wanted, telemetry, as_json=as_json)
    if not as_json and not wanted.attached:
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # after ^C
        note("Stopped. All accepted requests are on the trail.")


@contextlib.asynccontextmanager
async def _exporting(clock: Clock) -> AsyncIterator[Telemetry]:
    """The telemetry of this process; pending data is flushed at the end."""
    telemetry = open_telemetry(read_telemetry(os.environ), clock)
    try:
        yield telemetry
    finally:
        await telemetry.close()


async def _serve_door(
    worker: WorkerProcess, shutdown: Shutdown, wanted: WorkerOptions, telemetry: Telemetry, *, as_json: bool
) -> None:
    """Work, and answer all routes."""
    # the REST server takes a third of a second to import; wrong arguments are reported before
    from clew.adapters.mcp.lazy_mount import LazyMcpApp
    from clew.adapters.rest import build_app, open_keys, run_server
    from clew.cli.local_server.service import answering_commands
    from clew.llm.model import open_models

    app, config = worker.app, worker.app.config
    metrics, server = telemetry.metrics, config.server
    keys = open_keys(config.folder, app.clock, timedelta(minutes=server.token_minutes))
    told = await _ready_reporter(app, wanted, as_json=as_json)
    mcp = LazyMcpApp(app.workspace, keys, config)
    async with worker.working(metrics.record_delivery) as refresh:
        door = build_app(
            app.trail,
            keys,
            app.hygiene,
            config=config,
            metrics=metrics,
            tracer=telemetry.requests,
            clock=app.clock,
            refresh_webhooks=refresh,
            set_up=app.owners.set_up,
            workspace=app.workspace,
            models=open_models(config) if config.agents else None,
            router=app.router(),
            team=_team_of(app),
            mcp=mcp,
            is_draining=lambda: worker.is_draining,
        )
        async with mcp.running(door.closing), answering_commands(app):
            await run_server(door, server.host, server.port, ready=told, stop=shutdown.stop, force=shutdown.force)


async def _work_only(
    worker: WorkerProcess, shutdown: Shutdown, wanted: WorkerOptions, telemetry: Telemetry, *, as_json: bool
) -> None:
    """Work without the full server: only the health and readiness routes are answered."""
    app, config = worker.app, worker.app.config
    async with worker.working():
        if not wanted.listens:
            _report_ready(app, wanted, "", as_json=as_json)
            await shutdown.stop.wait()
            return
        from clew.adapters.rest import build_app, open_keys, run_server  # takes a third of a second to import
        from clew.adapters.rest.routes.system import PROBES

        server = config.server
        keys = open_keys(config.folder, app.clock, timedelta(minutes=server.token_minutes))
        door = build_app(
            app.trail,
            keys,
            app.hygiene,
            config=config,
            metrics=telemetry.metrics,
            clock=app.clock,
            is_draining=lambda: worker.is_draining,
            operations=PROBES,
        )

        def tell(host: str, port: int) -> None:
            _report_ready(app, wanted, _url_of(host, port), as_json=as_json)

        await run_server(door, server.host, server.port, ready=tell, stop=shutdown.stop, force=shutdown.force)


def _team_of(app: App) -> Callable[[], Awaitable[Team]]:
    """Return a function that opens the team of the folder at its first call."""
    opened: list[Team] = []

    async def get() -> Team:
        if not opened:
            opened.append(await app.team())
        return opened[0]

    return get


async def _ready_reporter(app: App, wanted: WorkerOptions, *, as_json: bool) -> Callable[[str, int], None]:
    """A function that reports, to people or to programs, that the server answers."""
    stats = await app.trail.upkeep.stats(by=app.me)
    place = _place_of(app)

    def tell(host: str, port: int) -> None:
        url = _url_of(host, port)
        serving = Serving(
            url=url,
            docs=f"{url}/docs",
            mcp=f"{url}/mcp",
            folder=str(app.config.folder.absolute()),
            trail=place,
            owner=app.config.owner,
            breadcrumbs=stats.breadcrumbs,
            events=stats.events,
            edges=stats.edges,
            pid=os.getpid(),
            roles=tuple(sorted(wanted.roles)),
            workers=wanted.workers,
        )
        print_json(serving) if as_json else _describe(serving, host, app.config)
        sys.stdout.flush()

    return tell


def _report_ready(app: App, wanted: WorkerOptions, url: str, *, as_json: bool) -> None:
    """Report, to people or to programs, that this process is ready."""
    if wanted.attached:
        return
    working = Working(
        url=url,
        folder=str(app.config.folder.absolute()),
        trail=_place_of(app),
        owner=app.config.owner,
        pid=os.getpid(),
        roles=tuple(sorted(wanted.roles)),
        workers=wanted.workers,
    )
    if as_json:
        print_json(working)
    else:
        say(f"Clew works for {', '.join(working.roles)}")
        say(f"  folder     {describe_folder(app.config.folder)}")
        say(f"  trail      {working.trail}")
        say(f"  processes  {working.workers}")
        if url:
            say(f"  probes     {url}/health, {url}/ready")
        say("  end        Ctrl-C")
    sys.stdout.flush()


def _place_of(app: App) -> str:
    """The file of the trail, or its address."""
    file = trail_file(app.config)
    return str(file.absolute()) if file is not None else app.config.trail_url


def _child_command(config: Config, scopes: frozenset[str], wanted: WorkerOptions) -> list[str]:
    """The command of an additional process, with the roles that several processes can share, on the same trail."""
    roles = [text for each in sorted(wanted.roles & RUNTIME_ROLES) for text in ("--role", each)]
    tags = [text for each in wanted.tags for text in ("--tag", each)]
    held = ["--scopes", ",".join(sorted(scopes))] if scopes else []
    where = ["--folder", str(config.folder.absolute()), "--owner", config.owner]
    return worker_command(*roles, *tags, *held, *where, "--drain", f"{wanted.drain:g}", "--attached")


def _url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _token_command(config: Config) -> str:
    """The command that prints a token for this folder and owner."""
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
    """Return uvloop if it is installed: it answers a third more requests."""
    try:
        import uvloop  # not installed on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
