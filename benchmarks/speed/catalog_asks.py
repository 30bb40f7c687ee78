"""`ask` over thousands of tools: in process, over stdio, and beside FastMCP's search transform; `clew mcp` from its
start to its first answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from mcp import Client, StdioServerParameters

from clew.catalog.consent.consent import read_wishes
from clew.catalog.operations.answers import Question
from clew.config import read_config
from clew.trust import Trust
from discovery_peers.ours import build_domains
from speed.catalog_stage import ME, ROWS_VARIABLE, Settings, open_filled
from speed.processes import clean_environment, clew_command
from speed.report import Finding, Promise, Row
from speed.timing import Rounds, paired_ratio, rotate, tell

MEASURE, START = "asking", "starting clew mcp"
OURS, OVER_STDIO, PEER = "clew", "clew mcp over stdio", "fastmcp BM25 transform"
MOST_ASK, MOST_STDIO, LEAST_RATIO, MOST_START = 10.0, 15.0, 10.0, 1.5
STARTS, WARM_UP = 5, 10
TRUSTED, ROWS = "trust.json", "rows.json"
Ask = Callable[[str], Awaitable[Any]]


async def measure(settings: Settings) -> list[Finding]:
    rows = settings.rows()
    (settings.scratch / ROWS).write_bytes(msgspec.json.encode(rows))
    folder = write_folder(settings)
    async with contextlib.AsyncExitStack() as stack:
        domains = build_domains(rows, by_home=False)
        catalog = await stack.enter_async_context(open_filled(settings.scratch / "asks", domains))
        client = await stack.enter_async_context(connect(folder, settings))

        async def ask(query: str) -> object:
            return await catalog.ask(Question(query=query), by=ME)

        async def ask_over_stdio(query: str) -> object:
            return await client.call_tool("ask", {"query": query})

        contenders: dict[str, Ask] = {OURS: ask, OVER_STDIO: ask_over_stdio, **find_peer(rows)}
        took = await time_all(contenders, settings)
    starts = [await start_once(folder, settings) for _ in range(STARTS if settings.rounds > 1 else 1)]
    return [*report(took, len(rows)), *report_start(starts, len(rows))]


def find_peer(rows: Any) -> dict[str, Ask]:
    try:
        from discovery_peers.fastmcp_search import SEARCH, build_server
    except ImportError as error:
        tell(f"FastMCP is left out: {error}")
        return {}
    server = build_server(rows, results=5)
    return {PEER: lambda query: server.call_tool(SEARCH, {"query": query})}


async def time_all(contenders: dict[str, Ask], settings: Settings) -> dict[str, Rounds]:
    """Every contender in turn, the same questions in each round."""
    questions = settings.questions()
    took = {name: Rounds() for name in contenders}
    for name, ask in contenders.items():
        tell(f"{MEASURE}: {name} warms up")
        for query in questions[:WARM_UP]:
            await ask(query)
    for turn in range(settings.rounds):
        tell(f"{MEASURE}: round {turn + 1} of {settings.rounds}")
        for name in rotate(list(contenders), turn):
            took[name].begin()
            for query in questions:
                began = time.perf_counter()
                await contenders[name](query)
                took[name].add(time.perf_counter() - began)
    return took


def report(took: dict[str, Rounds], tools: int) -> list[Finding]:
    found: list[Finding] = [
        Row(measure=MEASURE, records=tools, contender=name, values=each.spread()) for name, each in took.items()
    ]
    for name, most in ((OURS, MOST_ASK), (OVER_STDIO, MOST_STDIO)):
        p95 = took[name].milliseconds(0.95)
        found.append(Promise(name=f"{name}: ask, p95 ms", records=tools, value=p95, target=most, at_least=False))
    if PEER in took:
        for share in (0.5, 0.95):
            ratio = paired_ratio(took[PEER].each_round(share), took[OURS].each_round(share))
            name = f"ask, times faster than {PEER}, p{share * 100:.0f}"
            found.append(Promise(name=name, records=tools, value=ratio, target=LEAST_RATIO))
    return found


def write_folder(settings: Settings) -> Path:
    """A folder as `clew init` leaves it, whose settings name the measured domains."""
    folder = settings.scratch / "served" / ".clew"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    named = '[catalog]\ndomains = ["speed.catalog_stage:served_domains"]\nrepository = false\n'
    (folder / "config.toml").write_text(named, encoding="utf-8")
    Trust.open(settings.scratch / TRUSTED).grant(read_wishes(read_config(folder)))
    return folder


@contextlib.asynccontextmanager
async def connect(folder: Path, settings: Settings) -> AsyncIterator[Client]:
    """A client of a `clew mcp` of its own."""
    command, *first = clew_command()
    environment = clean_environment(
        {
            "PYTHONPATH": str(Path(__file__).parents[1]),
            ROWS_VARIABLE: str(settings.scratch / ROWS),
            "CLEW_TRUST": str(settings.scratch / TRUSTED),
        }
    )
    server = StdioServerParameters(
        command=command, args=[*first, "mcp", "--folder", str(folder)], env=environment, cwd=folder.parent
    )
    async with Client(server) as client:
        yield client


async def start_once(folder: Path, settings: Settings) -> float:
    """Seconds from the start of the process to the answer of its first `ask`."""
    began = time.perf_counter()
    async with connect(folder, settings) as client:
        await client.call_tool("ask", {"query": settings.questions()[0]})
        return time.perf_counter() - began


def report_start(seconds: list[float], tools: int) -> list[Finding]:
    took = median(seconds)
    return [
        Row(
            measure=START, records=tools, contender=OVER_STDIO, values={"first answer s": took, "worst s": max(seconds)}
        ),
        Promise(name="clew mcp, first answer, s", records=tools, value=took, target=MOST_START, at_least=False),
    ]
