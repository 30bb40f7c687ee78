"""An agent that uses the MCP server of the example workspace: it goes from a question to its answer, and counts the
tokens that it reads."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle, islice
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from clew.catalog.domain import Domain
from clew.llm.tokens import ENCODING, count_tokens
from question import say

QUESTION = "Passenger 4711 disputes a charge: she never booked those trips. Is it fraud, and what do we do?"
MANY = 300
PATIENCE = 60.0
"""Seconds for one request, also on a machine that has much to do."""


class Agent:
    """Stands for a model: it asks once, then follows guidance. It keeps what a model would have to read."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._handle: str | None = None
        self.read: list[str] = []
        self.guided: dict[str, dict[str, Any]] = {}
        self.findings: list[tuple[str, str]] = []

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """The sections of the answer."""
        found = await self._call("ask", {"query": query})
        sections: list[dict[str, Any]] = found["sections"]
        return sections

    async def get(self, *items: dict[str, Any]) -> list[dict[str, Any]]:
        """The results, in the order of the items. Their guidance is remembered, their first lines are findings."""
        found = await self._call("get", {"routes": list(items)})
        results: list[dict[str, Any]] = found["results"]
        for result in (each for each in results if each["success"]):
            self.guided |= {step["route"]: step for step in result["data"]["guidance"]}
            self.findings.append((result["route"], what_it_says(result["data"]["content"])))
        return results

    def step_to(self, route: str, **more: Any) -> dict[str, Any]:
        """A next step from guidance: the arguments that guidance filled in, and those that only the caller knows."""
        return {"route": route, "params": {**(self.guided[route].get("params") or {}), **more}}

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given = {**arguments, "handle": self._handle} if self._handle else arguments
        result = await self.client.call_tool(name, given)
        text = "".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise SystemExit(text)
        self.read.append(text)
        found: dict[str, Any] = result.structured_content or {}
        self._handle = found["handle"]
        return found


def what_it_says(content: str) -> str:
    """The first sentence of a result. Text of others is in a fence, below a line that names its origin."""
    lines = [line for line in content.splitlines() if line.strip()]
    bars = [at for at, line in enumerate(lines) if line.startswith("```")]
    body = lines[bars[0] + 1 : bars[1]] if bars else lines
    return next((line for line in body if not line.startswith("#")), "")


@asynccontextmanager
async def open_agent(url: str, token: str) -> AsyncIterator[tuple[Agent, list[dict[str, Any]]]]:
    """An agent that uses an MCP server, and the tools that the server lists for it."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        listed = await client.list_tools()
        yield Agent(client), [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in listed.tools]


async def walk(agent: Agent, *, is_brief: bool = False) -> None:
    """From the question to the answer in five calls. In brief: without the routes of the first answer, and without the
    guidance that leads from one call to the next."""
    say(f"  1  ask  {QUESTION}")
    shown = await agent.ask(QUESTION)
    for section in [] if is_brief else shown:
        entries = [*section.get("tools", ()), *section.get("resources", ())]
        for route in [each["route"] for each in entries][:2] or section["folded"]:
            say(f"           {route}")
    entry, runbook = (find(shown, part) for part in ("://tools/passenger-investigation", "://resources/fraud.md/"))
    first = ({"route": runbook}, {"route": entry, "params": {"passenger": 4711}})
    await show(agent, 2, *first, is_brief=is_brief)
    second = (agent.step_to("warehouse://tools/hidden/fincrime-review"), agent.step_to("logs://tools/investigator"))
    await show(agent, 3, *second, is_brief=is_brief)
    await show(agent, 4, agent.step_to("geo://tools/hidden/locate_ip"), is_brief=is_brief)
    subject = "Stolen account: " + " ".join(text for _, text in agent.findings[-3:])
    last = (
        agent.step_to("logs://tools/hidden/sign-out"),
        agent.step_to("support://tools/hidden/vip-ticket", subject=subject),
    )
    await show(agent, 5, *last, is_brief=is_brief)


def show_answer(agent: Agent) -> None:
    say("The answer, each line with the route that it comes from:")
    for route, text in agent.findings[1:]:
        say(f"  {text}")
        say(f"      {route}")


async def show_limits(client: Client) -> None:
    """The tools that another agent is not guided to, and cannot guess."""
    other = Agent(client)
    await other.ask(QUESTION)
    (found,) = await other.get({"route": "warehouse://tools/passenger-investigation", "params": {"passenger": 1002}})
    leads = ", ".join(step["route"] for step in found["data"]["guidance"])
    say(f"Guidance follows from the result. For passenger 1002: {found['data']['content']}")
    say(f"  > {leads}")
    (guess,) = await other.get({"route": "warehouse://tools/hidden/fincrime-review", "params": {"passenger": 1002}})
    say("To guess a hidden route does not help, since this catalog is strict:")
    say(f"  {guess['error']['code']}: {guess['error']['message']}")


def find(sections: list[dict[str, Any]], part: str) -> str:
    """The first route of an answer that holds this part."""
    routes = (
        each["route"] for section in sections for kind in ("tools", "resources") for each in section.get(kind, ())
    )
    return next(route for route in routes if part in route)


async def show(agent: Agent, number: int, *items: dict[str, Any], is_brief: bool = False) -> None:
    """Get some routes side by side, and show what each said and where it leads."""
    results = await agent.get(*items)
    for at, (item, result) in enumerate(zip(items, results, strict=True)):
        params = "".join(f" {name}={value}" for name, value in item.get("params", {}).items())
        say(f"  {number if not at else ' '}  get  {item['route']}{params}")
        say(f"         = {what_it_says(result['data']['content'])}")
        for step in () if is_brief else result["data"]["guidance"]:
            say(f"         > {step['route']}: {step['prose']}")


def show_tokens(agent: Agent, listed: list[dict[str, Any]], plain: list[dict[str, Any]]) -> None:
    """The tokens of the walk, and those of a listing of every tool."""
    many = [{**each, "name": f"{each['name']}-{at}"} for at, each in enumerate(islice(cycle(plain), MANY))]
    rows = (
        (f"the listing of all {len(plain)} tools of this example", cost(plain)),
        (f"the listing of {MANY} tools of the same size", cost(many)),
        (f"the listing of Clew's {len(listed)} tools", cost(listed)),
        (f"the {len(agent.read)} answers of this walk", sum(map(count_tokens, agent.read))),
    )
    say(f"Tokens, counted with {ENCODING}; a listing is part of every request to a model:")
    for what, number in rows:
        say(f"  {number:>7,}  {what}")
    say(f"With {MANY} tools Clew saves {rows[1][1] - rows[2][1]:,} tokens in every request.")


def cost(tools: list[dict[str, Any]]) -> int:
    return count_tokens(json.dumps(tools, ensure_ascii=False))


def as_listed(domains: list[Domain]) -> Iterator[dict[str, Any]]:
    """The tools of our own domains as an MCP server without Clew would list them."""
    for domain in domains:
        for tool in domain.tools:
            yield {"name": f"{domain.name}_{tool.name}", "description": tool.description, "inputSchema": tool.schema}
