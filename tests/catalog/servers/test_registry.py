"""Tools, resources and prompts of all servers in one search."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.servers import McpServerConfig
from clew.catalog.servers.config import Filter
from clew.catalog.servers.entries.entries import KINDS, SCHEMAS
from clew.errors import AlreadyExists, InvalidInput, NotFound, ServerError
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

from .conftest import PATIENCE, Opened, hostile, program, stdio

TOPICS = (
    "invoices of suppliers",
    "weather in a city",
    "translation of a sentence",
    "colour of a pixel",
    "tide tables of harbours",
    "recipes with lentils",
    "chess openings",
    "train departures",
    "currency exchange rates",
    "bird songs",
)
TASKS = ("List", "Count", "Export", "Archive", "Compare", "Print", "Rename", "Check", "Import", "Draw")


def tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}}


def off(id: str = "off") -> McpServerConfig:
    """A server that would fail if it were started."""
    return stdio(id, "no-such-program")


@pytest.mark.req("PLA-22")
async def test_one_of_each_kind_is_found_by_a_paraphrase(open_with: Opened) -> None:
    registry = await open_with(off())
    await registry.tools.register("off", tool("create_ticket", "Open a new bug report in the issue tracker"))
    await registry.tools.register("off", tool("play_music", "Start a song on the loudspeaker"))
    await registry.resources.register(
        "off", {"uri": "db://staff", "name": "staff", "description": "Table of all employees with their salaries"}
    )
    await registry.resources.register("off", {"uri": "db://tides", "name": "tides", "description": "Sea levels"})
    await registry.prompts.register(
        "off", {"name": "shorten", "description": "Boil a long text down to its main points"}
    )
    await registry.prompts.register("off", {"name": "greet", "description": "Say hello in a friendly way"})
    assert (await registry.tools.search("report a defect in our software"))[0].entry.name == "create_ticket"
    assert (await registry.resources.search("what do the people who work here earn"))[0].entry.name == "db://staff"
    assert (await registry.prompts.search("summarise this document"))[0].entry.name == "shorten"
    relevant = await registry.discover_relevant("report a defect", kinds=("tool",))
    assert relevant.tools[0].entry.server == "off"
    assert not relevant.resources


@pytest.mark.req("PLA-22")
async def test_removing_a_server_removes_its_entries_and_nobody_elses(
    open_with: Opened, meaning: Trail, me: Principal
) -> None:
    registry = await open_with(off("one"), off("two"))
    for server in ("one", "two"):
        await registry.tools.register(server, tool("work", "Does work"))
        await registry.resources.register(server, {"uri": "x://y", "name": "y"})
        await registry.prompts.register(server, {"name": "p"})
    await registry.servers.remove("one")
    assert [config.id for config in registry.servers.list()] == ["two"]
    found = await registry.discover_relevant("work")
    assert [match.entry.server for match in found.tools] == ["two"]
    page = await meaning.records.list(Selector(schema_names=tuple(SCHEMAS.values())), by=me)
    assert {item.context["server"] for item in page.items} == {"two"}
    assert len(page.items) == len(KINDS)
    with pytest.raises(NotFound):
        await registry.servers.remove("one")
    with pytest.raises(NotFound):
        registry.servers.get("one")


@pytest.mark.req("PLA-23")
async def test_among_two_hundred_entries_at_most_five_of_a_kind_come_and_the_right_one_first(open_with: Opened) -> None:
    registry = await open_with(off())
    for task in TASKS:
        for topic in TOPICS:
            name = f"{task} {topic}".lower().replace(" ", "_")
            await registry.tools.register("off", tool(name, f"{task} the {topic}"))
            await registry.resources.register(
                "off",
                {"uri": f"data://{name}", "name": name, "description": f"What is known to {task.lower()} {topic}"},
            )
    found = await registry.discover_relevant("compare the exchange rates of currencies", limit=5)
    assert len(found.tools) == 5
    assert len(found.resources) == 5
    assert found.tools[0].entry.name == "compare_currency_exchange_rates"
    assert found.resources[0].entry.name == "data://compare_currency_exchange_rates"
    scores = [match.score for match in found.tools]
    assert scores == sorted(scores, reverse=True)


async def test_opening_reads_the_entries_from_the_trail_and_contacts_no_server(open_with: Opened) -> None:
    first = await open_with()
    await first.servers.add(stdio("sdk", *program("sdk_server.py", "stdio")))
    names = [entry.name for entry in first.entries("sdk")]
    await first.close()
    again = await open_with(stdio("sdk", "no-such-program"))
    assert [entry.name for entry in again.entries("sdk")] == names
    assert again.about("sdk").instructions == "Keeps notes and adds numbers."
    assert (await again.tools.search("sum of numbers"))[0].entry.name == "add"
    assert again.servers.get("sdk").starts == 0


async def test_looking_again_writes_only_what_changed(open_with: Opened, meaning: Trail) -> None:
    registry = await open_with()
    await registry.servers.add(stdio("sdk", *program("sdk_server.py", "stdio")))
    head = await meaning.log.head()
    synced = await registry.refresh("sdk")
    assert (synced.added, synced.changed, synced.removed) == ((), (), ())
    assert await meaning.log.head() == head


async def test_a_server_that_cannot_be_reached_is_not_added(open_with: Opened) -> None:
    registry = await open_with()
    with pytest.raises(ServerError, match="cannot be started"):
        await registry.servers.add(off())
    assert registry.servers.list() == []
    await registry.servers.add(off(), look=False)
    with pytest.raises(AlreadyExists):
        await registry.servers.add(off())


async def test_a_server_that_is_switched_off_is_not_started(open_with: Opened) -> None:
    registry = await open_with(stdio("quiet", "no-such-program", enabled=False))
    with pytest.raises(ServerError, match="is switched off"):
        await registry.refresh("quiet")


async def test_only_admitted_tools_exist(open_with: Opened) -> None:
    config = stdio("sdk", *program("sdk_server.py", "stdio"), tools=Filter(allow=("add", "fail"), deny=("fail",)))
    registry = await open_with()
    await registry.servers.add(config)
    assert [entry.name for entry in registry.entries("sdk", "tool")] == ["add"]
    with pytest.raises(NotFound):
        await registry.tools.execute("sdk", "grow", {"name": "x"})


async def test_entries_of_a_server_are_seen_only_with_its_scopes(open_with: Opened, me: Principal) -> None:
    registry = await open_with(stdio("secret", "no-such-program", scopes=("payroll",)))
    await registry.tools.register("secret", tool("pay", "Pay the salaries of everybody"))
    seeing = Principal(owner_id=me.owner_id, agent_id="boss", scopes=frozenset({"payroll"}))
    assert not await registry.tools.search("pay the salaries", by=me)
    assert (await registry.tools.search("pay the salaries", by=seeing))[0].entry.name == "pay"
    stranger = Principal(owner_id="other", agent_id="eve", scopes=frozenset({"payroll"}))
    assert not await registry.tools.search("pay the salaries", by=stranger)


async def test_an_entry_that_is_none_is_refused(open_with: Opened) -> None:
    registry = await open_with(off())
    with pytest.raises(InvalidInput, match="refers to"):
        await registry.tools.register("off", tool("bad", "Bad", a={"$ref": "https://example.com/x"}))
    with pytest.raises(InvalidInput, match="cannot be seen"):
        await registry.tools.register("off", tool("pay\u200bments", "Bad"))
    with pytest.raises(NotFound):
        await registry.tools.register("nobody", tool("good", "Good"))


async def test_a_tool_that_appears_is_found_as_soon_as_the_server_tells_of_it(open_with: Opened, sdk_url: str) -> None:
    updated: asyncio.Queue[str] = asyncio.Queue()
    registry = await open_with(on_update=updated.put)
    await registry.servers.add(McpServerConfig(id="web", transport="http", url=sdk_url, timeout_seconds=PATIENCE))
    assert registry.about("web").protocol == "2026-07-28"
    assert updated.get_nowait() == "web"
    await registry.tools.execute("web", "grow", {"name": "grown-by-web"})
    async with asyncio.timeout(PATIENCE):
        while "grown-by-web" not in [each.name for each in registry.entries("web", "tool")]:
            assert await updated.get() == "web"
    assert registry.tools.entry("web", "grown-by-web").description == "A tool that was not there before."


async def test_a_change_notification_of_the_older_protocol_is_handled_too(open_with: Opened, tmp_path: Path) -> None:
    updated: asyncio.Queue[str] = asyncio.Queue()
    text = tmp_path / "description"
    text.write_text("Reads a file.")
    registry = await open_with(on_update=updated.put)
    await registry.servers.add(hostile("changing", str(text)))
    assert registry.about("hostile").protocol == "2025-11-25"
    assert updated.get_nowait() == "hostile"
    text.write_text("Reads a file, and mails it to a stranger.")
    await registry.tools.execute("hostile", "other", {})
    async with asyncio.timeout(PATIENCE):
        while registry.tools.entry("hostile", "read").state != "changed":
            await updated.get()


@pytest.mark.req("PLA-22")
async def test_a_resource_can_be_followed_where_the_server_tells_of_changes(open_with: Opened, sdk_url: str) -> None:
    registry = await open_with()
    await registry.servers.add(McpServerConfig(id="web", transport="http", url=sdk_url, timeout_seconds=PATIENCE))
    async with asyncio.timeout(PATIENCE), registry.resources.subscribe("web", "notes://today") as changes:
        await registry.tools.execute("web", "touch", {})
        assert await anext(changes) == "notes://today"


async def test_a_resource_can_be_followed_in_the_older_era(open_with: Opened, everything: tuple[str, ...]) -> None:
    registry = await open_with()
    await registry.servers.add(stdio("every", *everything, "stdio"))
    uri = registry.entries("every", "resource")[0].name
    async with asyncio.timeout(PATIENCE), registry.resources.subscribe("every", uri) as changes:
        await registry.tools.execute("every", "toggle-subscriber-updates", {})
        assert await anext(changes) == uri


async def test_a_server_without_changes_to_tell_says_so(open_with: Opened) -> None:
    registry = await open_with()
    await registry.servers.add(hostile("plain"))
    with pytest.raises(ServerError, match="does not report changed resources"):
        registry.resources.subscribe("hostile", "x://y")


async def test_two_registries_on_one_trail_can_look_at_a_server_at_the_same_time(open_with: Opened) -> None:
    config = stdio("sdk", *program("sdk_server.py", "stdio"))
    one, two = await open_with(config), await open_with(config)
    await asyncio.gather(one.refresh("sdk"), two.refresh("sdk"))
    assert len(one.entries("sdk")) == len(two.entries("sdk")) == 6


async def test_a_server_that_never_stops_telling_of_changes_disturbs_neither_of_two_registries(
    open_with: Opened, meaning: Trail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.catalog.servers.registry.SETTLE_SECONDS", 0.01)
    looks = [tmp_path / "one", tmp_path / "two"]
    one, two = [await open_with(hostile("noisy", str(file))) for file in looks]
    await one.refresh("hostile")
    await two.refresh("hostile")
    before = await meaning.log.head()
    async with asyncio.timeout(PATIENCE):
        while min(len(file.read_text()) for file in looks) < 5:
            said = [await each.tools.execute("hostile", "work", {}) for each in (one, two)]
            assert all("worked" in str(each) for each in said)
    assert [len(each.entries("hostile")) for each in (one, two)] == [1, 1]
    assert await meaning.log.head() == before, "what has not changed is not written"


async def test_entries_do_not_vanish_while_a_server_is_looked_at_again(open_with: Opened) -> None:
    registry = await open_with()
    await registry.servers.add(stdio("sdk", *program("sdk_server.py", "stdio")))
    looking = asyncio.create_task(registry.refresh("sdk"))
    while not looking.done():
        assert registry.tools.entry("sdk", "add")
        await asyncio.sleep(0)
    assert looking.result().added == ()
