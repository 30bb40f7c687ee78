"""The registry's connection as the client that the conformance suite measures.

It uses a server as Clew does: it reads all lists, and calls the tools with the required arguments. If a server requires
a login, a simulated browser agrees to everything. The suite starts a program for each scenario, which is
conformance_relay.py: it passes its arguments to the client, which is loaded only once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import traceback
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.connection import ServerConnection
from clew.catalog.servers.connections.hooks import Elicitation, Elicited, Hooks, ServerHookChain
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.value_references import FromEnv
from clew.errors import ServerError

SAMPLES: dict[str, Any] = {"string": "text", "number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}
GIVEN: dict[str, dict[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}
ECHOED = "json_schema_2020_12_tool"
"""A tool whose schema the suite wants to have back."""

CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
"""The document that the suite takes for a description of this client."""


class AgreeingBrowser:
    """Follows the redirect of an authorization server as a browser would whose user agreed."""

    redirect_uri = "http://127.0.0.1:3000/callback"

    async def visit(self, address: str) -> Mapping[str, str]:
        async with httpx.AsyncClient(verify=False) as client:
            answer = await client.get(address)
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


async def accept(question: Elicitation) -> Elicited:
    """The answer of a user who confirms and fills in nothing."""
    return Elicited(action="accept", content={})


async def auth_of(scenario: str, context: Mapping[str, str], url: str) -> Auth:
    """The configuration that a user of this client would write."""
    if not scenario.startswith("auth/"):
        return Auth()
    secret = FromEnv("client_secret") if "client_secret" in context else None
    if not scenario.startswith("auth/client-credentials"):
        return Auth(
            type="oauth",
            client_id=context.get("client_id", ""),
            client_secret=secret,
            issuer=context.get("issuer", ""),
            client_metadata_url=CLIENT_METADATA,
        )
    return Auth(
        type="oauth",
        grant="client_credentials",
        client_id=context["client_id"],
        client_secret=secret,
        private_key=FromEnv("private_key_pem") if secret is None else None,
        issuer=await issuer_of(url),
    )


async def issuer_of(url: str) -> str:
    """The suite does not name it, so it is looked up, as the author of a configuration would do."""
    place = urlsplit(url)
    async with httpx.AsyncClient(verify=False) as client:
        about = await client.get(f"{place.scheme}://{place.netloc}/.well-known/oauth-protected-resource{place.path}")
    found: str = about.json()["authorization_servers"][0]
    return found


def calls_of(tools: list[dict[str, Any]], context: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the suite requests, or else one call of each tool."""
    asked = [(each["name"], each.get("arguments", {})) for each in context.get("toolCalls", ())]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    return asked or [(name, GIVEN.get(name) or arguments_of(schema, schemas)) for name, schema in schemas.items()]


def arguments_of(schema: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Arguments that a tool takes."""
    properties = schema.get("properties", {})
    if set(properties) == {"schema"} and ECHOED in schemas:
        return {"schema": schemas[ECHOED]}
    return {name: SAMPLES.get(each.get("type"), "text") for name, each in properties.items()}


async def use(url: str, scenario: str, context: Mapping[str, Any]) -> None:
    """Use a server of the suite. Raises ServerError where it is not to be trusted, or refuses."""
    auth = await auth_of(scenario, context, url)
    connection = ServerConnection(
        McpServerConfig(id="suite", transport="http", url=url, auth=auth, timeout_seconds=20),
        hooks=ServerHookChain(Hooks(on_elicit=accept)),
        environ={key: value for key, value in context.items() if isinstance(value, str)},
        browser=AgreeingBrowser(),
    )
    try:
        await connection.about()
        for name, arguments in calls_of((await connection.list_all("tools")).entries, context):
            with contextlib.suppress(ServerError):  # a refusal is an answer; the suite judges what was sent
                await connection.call_tool(name, arguments)
        for resource in (await connection.list_all("resources")).entries:
            await connection.read_resource(resource["uri"])
        for prompt in (await connection.list_all("prompts")).entries:
            await connection.get_prompt(prompt["name"], {})
    finally:
        await connection.close()


class Client:
    """Carries out the requests of relays one after another, and records how each scenario ended: empty for success,
    else the error."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port at which relays find it."""
        server = await asyncio.start_server(self._relayed, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told = json.loads(await reader.readline())
        async with self._turn:
            try:
                await use(told["url"], told["scenario"], told["context"])
            except Exception:  # the boundary of a task: the suite gets the error, and decides
                self.ended[told["scenario"]] = traceback.format_exc()
            else:
                self.ended[told["scenario"]] = ""
        writer.write(self.ended[told["scenario"]].encode())
        writer.close()
        await writer.wait_closed()
