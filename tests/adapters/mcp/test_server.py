"""The features of the server, through a client of the Python SDK in the same process."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, TextContent, TextResourceContents

from clew.access import Principal
from clew.adapters.mcp.listing import LISTING
from clew.adapters.mcp.resources import HANDLE, MAX_LISTED
from clew.adapters.mcp.server import build_server
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.resource import Resource
from clew.llm.tokens import count_tokens
from clew.tools import tool
from tests.adapters.mcp.catalogs import ERAS, ME, SECRET, Gate, fraud_domain, open_catalog
from tests.servers import PATIENCE

pytestmark = pytest.mark.parametrize("era", ERAS)

INVESTIGATE = {"route": "fraud://tools/investigate", "params": {"user_id": 7}}
HANDBOOK = "fraud://resources/handbook"


def connect(catalog: Any, era: str, by: Principal = ME, **more: Any) -> Client:
    return Client(build_server(catalog, lambda context: by), mode=era, cache=None, **more)


def text_of(result: CallToolResult) -> str:
    (only,) = result.content
    assert isinstance(only, TextContent)
    return only.text


def wide_domain(routes: int) -> Domain:
    @tool
    async def first() -> str:
        """One of very many tools."""
        return ""

    tools = tuple(msgspec.structs.replace(first, name=f"tool-{number}") for number in range(routes))
    return Domain(name="wide", description="Very many tools", tools=tools)


@pytest.mark.req("ERN-07")
async def test_two_tools_are_listed_with_three_hundred_routes_registered(catalog: Catalog, era: str) -> None:
    await catalog.add(wide_domain(300))
    async with connect(catalog, era) as client:
        listed = await client.list_tools()
    assert (await catalog.counts()).route_count >= 300
    assert [each.name for each in listed.tools] == ["ask", "get"]
    assert listed.next_cursor is None


@pytest.mark.req("ERN-07")
@pytest.mark.req("BEY-01")
async def test_the_listing_takes_at_most_six_hundred_tokens(era: str) -> None:
    assert count_tokens(LISTING.model_dump_json(by_alias=True, exclude_none=True)) <= 600


async def test_the_tools_say_what_they_do_to_the_world(catalog: Catalog, era: str) -> None:
    async with connect(catalog, era) as client:
        ask, get = (await client.list_tools()).tools
    assert ask.annotations is not None
    assert get.annotations is not None
    assert ask.annotations.read_only_hint
    assert ask.annotations.idempotent_hint
    assert get.annotations.open_world_hint
    assert not get.annotations.read_only_hint
    assert ask.output_schema is not None
    assert get.output_schema is not None


@pytest.mark.req("ERN-14")
async def test_ask_then_get_leads_by_the_handle_to_the_guided_step(tmp_path: Path, era: str) -> None:
    async with open_catalog(tmp_path, fraud_domain(), strict=True) as catalog, connect(catalog, era) as client:
        asked = await client.call_tool("ask", {"query": "is this user a fraud?"})
        assert asked.structured_content is not None
        handle = asked.structured_content["handle"]
        assert "fraud://tools/investigate" in text_of(asked)
        assert handle in text_of(asked)
        assert asked.structured_content["sections"][0]["domain"] == "fraud"
        broken = {"route": "fraud://tools/break"}
        done = await client.call_tool("get", {"routes": [INVESTIGATE, broken], "handle": handle})
        assert done.structured_content is not None
        first, second = done.structured_content["results"]
        assert first["data"]["guidance"][0]["route"] == "fraud://tools/hidden/freeze"
        assert second["error"] == {"code": "EXECUTION_ERROR", "message": "warehouse: is closed. Come back tomorrow"}
        assert done.structured_content["summary"] == {"total": 2, "success": 1, "failed": 1}
        assert "User 7 has 3 odd transactions." in text_of(done)
        step = first["data"]["guidance"][0]
        frozen = await client.call_tool(
            "get", {"routes": [{"route": step["route"], "params": step["params"]}], "handle": handle}
        )
    assert "Account 7 is frozen." in text_of(frozen)
    assert not frozen.is_error


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ask", {}, "query: is missing"),
        ("ask", {"query": "  "}, "query: is empty"),
        ("ask", {"query": "x" * 4_001}, "query"),
        ("ask", {"query": "x", "per_domain": 0}, "per_domain"),
        ("ask", {"query": "x", "per_domain": "many"}, "per_domain"),
        ("ask", {"query": "x", "budget": 9}, "budget: is not a parameter"),
        ("ask", {"query": "x", "domain": "nowhere"}, "no domain 'nowhere'"),
        ("ask", {"query": "x", "handle": "clew-nonsense"}, "this handle has ended, or is not yours"),
        ("ask", {"query": "x", "handle": "h" * 5_000}, "handle"),
        ("get", {}, "routes: is missing"),
        ("get", {"routes": []}, "routes"),
        ("get", {"routes": "fraud://tools/investigate"}, 'For example {"routes": [{"route"'),
        ("ask", {"query": "x", "per_domain": 3, "perDomain": 4}, "perDomain: is another spelling of per_domain"),
        ("ask", {"query": "x", "perDomain": 0}, "perDomain"),
        ("get", {"routes": [{"route": "fraud://tools/wait"}] * 51}, "routes"),
    ],
)
async def test_wrong_arguments_are_answered_in_one_line_that_the_model_reads(
    catalog: Catalog, era: str, name: str, arguments: dict[str, Any], said: str
) -> None:
    async with connect(catalog, era) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert said in text_of(result)
    assert "\n" not in text_of(result)
    assert len(text_of(result)) < 500


@pytest.mark.req("ERN-12")
async def test_a_malformed_entry_has_an_error_of_its_own_and_the_others_run(catalog: Catalog, era: str) -> None:
    entries = [
        {"route": "fraud://resources/handbook", "params": None},
        "fraud://tools/investigate",
        {"route": "fraud://tools/investigate", "params": [7]},
        {"route": "fraud://tools/investigate", "args": {"user_id": 7}},
        {"params": {"user_id": 7}},
        {"route": "fraud://tools/investigate", "params": {"user_id": 7}},
    ]
    async with connect(catalog, era) as client:
        result = await client.call_tool("get", {"routes": entries})
    assert not result.is_error
    assert result.structured_content is not None
    found = result.structured_content["results"]
    assert [each["success"] for each in found] == [True, False, False, False, False, True]
    codes = [each["error"]["code"] for each in found[1:5]]
    assert codes == ["INVALID_ROUTE", "INVALID_PARAMS", "INVALID_PARAMS", "INVALID_ROUTE"]
    assert [each["route"] for each in found[1:5]] == [*["fraud://tools/investigate"] * 3, "routes[4]"]
    assert "entry: must be an object, not text" in found[1]["error"]["message"]
    assert "params: must be an object or null, not a list" in found[2]["error"]["message"]
    assert "args: is not a parameter here. Did you mean params?" in found[3]["error"]["message"]
    assert "route: is missing" in found[4]["error"]["message"]
    assert result.structured_content["summary"] == {"total": 6, "success": 2, "failed": 4}


@pytest.mark.req("ERN-08")
async def test_per_domain_has_two_spellings(catalog: Catalog, era: str) -> None:
    async with connect(catalog, era) as client:
        for arguments in ({"per_domain": 3}, {"perDomain": 3}, {"per_domain": 3, "perDomain": 3}):
            assert not (await client.call_tool("ask", {"query": "fraud", **arguments})).is_error


async def test_a_number_that_came_as_text_is_taken(catalog: Catalog, era: str) -> None:
    async with connect(catalog, era) as client:
        result = await client.call_tool("ask", {"query": "fraud", "per_domain": "3"})
    assert not result.is_error


async def test_an_unknown_tool_is_refused_by_name(catalog: Catalog, era: str) -> None:
    async with connect(catalog, era) as client:
        with pytest.raises(MCPError, match="unknown tool 'investigate': the tools are ask and get"):
            await client.call_tool("investigate", {"user_id": 7})


@pytest.mark.req("ERN-25")
async def test_instructions_count_the_catalog_at_the_time_of_connecting(catalog: Catalog, era: str) -> None:
    mode = era if era == "legacy" else "auto"
    async with connect(catalog, mode) as client:
        before = client.instructions
    await catalog.add(wide_domain(10))
    async with connect(catalog, mode) as client:
        after = client.instructions
    counts = await catalog.counts()
    assert before is not None
    assert after is not None
    assert "wide" not in before
    assert f"{counts.domain_count} domains" in after
    assert f"{counts.route_count} routes" in after
    assert f"{counts.resource_count} resources" in after
    assert all(name in after for name in counts.domains)


async def test_get_tells_progress_that_only_grows(catalog: Catalog, era: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connect(catalog, era) as client:
        await client.call_tool("get", {"routes": [INVESTIGATE] * 5}, progress_callback=hear)
    assert [each[0] for each in told] == [1, 2, 3, 4, 5]
    assert {each[1] for each in told} == {5}
    assert {each[2] for each in told} == {"fraud://tools/investigate"}


async def test_a_cancelled_call_ends_the_work(catalog: Catalog, gate: Gate, era: str) -> None:
    async with connect(catalog, era) as client:
        call = asyncio.create_task(client.call_tool("get", {"routes": [{"route": "fraud://tools/wait"}]}))
        await asyncio.wait_for(gate.entered.wait(), PATIENCE)
        call.cancel()
        await asyncio.wait_for(gate.cancelled.wait(), PATIENCE)
        assert not (await client.call_tool("ask", {"query": "fraud"})).is_error


async def test_a_resource_is_listed_and_read_as_data(catalog: Catalog, era: str) -> None:
    async with connect(catalog, era) as client:
        listed = await client.list_resources()
        read = await client.read_resource(HANDBOOK)
        templates = await client.list_resource_templates()
    assert [(each.uri, each.description) for each in listed.resources] == [(HANDBOOK, "How a fraud case is handled")]
    (content,) = read.contents
    assert isinstance(content, TextResourceContents)
    assert "Ask for the receipt first. 日本語 \U0001f9f5" in content.text
    assert content.uri == HANDBOOK
    assert templates.resource_templates[0].uri_template == "{domain}://resources/{+path}"


async def test_a_strict_catalog_reads_to_an_agent_only_what_it_was_shown(tmp_path: Path, era: str) -> None:
    """Without a session, a handle identifies the shown routes; a listing shows no routes."""
    async with open_catalog(tmp_path, fraud_domain(), strict=True) as catalog, connect(catalog, era) as client:
        assert [each.uri for each in (await client.list_resources()).resources] == [HANDBOOK]
        with pytest.raises(MCPError, match="was not shown to you yet") as refused:
            await client.read_resource(HANDBOOK)
        shown = ask_in(refused.value.error.message)
        asked = (await client.call_tool("ask", shown)).structured_content
        assert asked is not None
        handle = asked["handle"]
        read = await client.read_resource(HANDBOOK, meta={HANDLE: handle})
        assert isinstance(read.contents[0], TextResourceContents)
        assert "Ask for the receipt first." in read.contents[0].text
        with pytest.raises(MCPError, match="was not shown to you yet"):
            await client.read_resource(HANDBOOK)
    assert refused.value.error.code == -32602
    assert f"pass the handle on as `{HANDLE}` in `_meta`" in refused.value.error.message


async def test_the_handle_of_somebody_else_and_what_is_none_are_refused(tmp_path: Path, era: str) -> None:
    bob = Principal(owner_id=ME.owner_id, agent_id="bob")
    async with open_catalog(tmp_path, fraud_domain(), strict=True) as catalog:
        async with connect(catalog, era) as client:
            asked = (await client.call_tool("ask", {"query": "handbook"})).structured_content
        assert asked is not None
        async with connect(catalog, era, bob) as client:
            for wrong in (asked["handle"], "clew-nobody", 7, ""):
                with pytest.raises(MCPError, match="handle"):
                    await client.read_resource(HANDBOOK, meta={HANDLE: wrong})


async def test_in_a_session_a_strict_catalog_needs_no_handle(tmp_path: Path, era: str) -> None:
    mine, next_one = (Principal(owner_id=ME.owner_id, agent_id="ann", session=name) for name in ("s1", "s2"))
    async with open_catalog(tmp_path, fraud_domain(), strict=True) as catalog:
        async with connect(catalog, era, mine) as client:
            with pytest.raises(MCPError, match="was not shown to you yet") as refused:
                await client.read_resource(HANDBOOK)
            await client.call_tool("ask", ask_in(refused.value.error.message))
            assert (await client.read_resource(HANDBOOK)).contents
        async with connect(catalog, era, next_one) as client:
            with pytest.raises(MCPError, match="was not shown to you yet"):
                await client.read_resource(HANDBOOK)


def ask_in(refusal: str) -> dict[str, str]:
    """The arguments of the `ask` that a refusal names."""
    found = re.search(r'ask\(query="([^"]+)", domain="([^"]+)"\)', refusal)
    assert found is not None, refusal
    return {"query": found[1], "domain": found[2]}


@pytest.mark.req("BEY-01")
async def test_the_listing_of_resources_does_not_grow_with_the_catalog(tmp_path: Path, era: str) -> None:
    async def fetch(client: Any) -> str:
        return "text"

    many = tuple(
        Resource(path=f"page-{number}", name=f"Page {number}", description="A page", fetch=fetch)
        for number in range(MAX_LISTED + 5)
    )
    domain = Domain(name="book", description="A book", resources=many)
    async with open_catalog(tmp_path, domain) as catalog, connect(catalog, era) as client:
        page = await client.list_resources()
        assert (len({each.uri for each in page.resources}), page.next_cursor) == (MAX_LISTED, None)
        unlisted = {f"book://resources/{each.path}" for each in many} - {each.uri for each in page.resources}
        assert (await client.read_resource(min(unlisted))).contents


@pytest.mark.parametrize(
    "uri",
    [
        "fraud://resources/none",
        "fraud://tools/investigate",
        "fraud://resources/../../etc/passwd",
        "file:///etc/passwd",
        "frаud://resources/handbook",
        "x",
        "",
    ],
)
async def test_a_missing_resource_is_refused_with_the_code_of_its_era(catalog: Catalog, era: str, uri: str) -> None:
    async with connect(catalog, era) as client:
        with pytest.raises(MCPError, match="no such resource") as caught:
            await client.read_resource(uri)
    assert caught.value.error.code == (-32002 if era == "legacy" else -32602)
    assert caught.value.error.data == {"uri": uri}


async def test_a_resource_of_another_owner_is_the_same_as_none(catalog: Catalog, era: str, stranger: Principal) -> None:
    async with connect(catalog, era, stranger) as client:
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(HANDBOOK)


async def test_an_unknown_cursor_is_refused(catalog: Catalog, era: str) -> None:
    async with connect(catalog, era) as client:
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="nonsense")


async def test_a_caller_without_the_right_to_read_gets_an_error(catalog: Catalog, era: str) -> None:
    emitter = Principal(owner_id="acme", agent_id="ann", roles=frozenset({"emitter"}))
    async with connect(catalog, era, emitter) as client:
        result = await client.call_tool("ask", {"query": "fraud"})
        with pytest.raises(MCPError, match="may not read"):
            await client.read_resource(HANDBOOK)
    assert result.is_error
    assert "may not read" in text_of(result)


async def test_an_internal_error_is_reported_without_its_details(era: str, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def ask(self, question: Any, *, by: Principal) -> Any:
            raise RuntimeError(SECRET)

        async def instructions(self, *, by: Principal) -> str:
            return "broken"

    with caplog.at_level(logging.DEBUG):
        async with connect(Broken(), era) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("ask", {"query": "x"})
    assert "internal error" in str(caught.value)
    assert SECRET not in json.dumps(caught.value.error.model_dump(mode="json"))
    ours = [each for each in caplog.records if each.name == "clew.mcp"]
    assert [each.levelname for each in ours] == ["ERROR"]
    assert SECRET not in caplog.text
