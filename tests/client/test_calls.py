"""The client against a real server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec
import pytest

from clew.access import Principal
from clew.client import Client
from clew.clock import ManualClock
from clew.errors import (
    AccessDenied,
    ClewError,
    Conflict,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    TooLarge,
)
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Ttl
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from tests.servers import PATIENCE, Served, serve


def note(title: str = "Note", **more: object) -> Draft:
    return Draft(title=title, context={"n": 0}, **more)  # type: ignore[arg-type]  # fields by name


async def test_a_written_record_is_read_back_completely(client: Client) -> None:
    draft = Draft(
        title="Ünïcode \u2028 ☃",
        context={"text": "a" * 1_000, "deep": {"list": [1, 2.5, None, True]}},
        tags=("a", "session:s1"),
        schema_name="note.v1",
        llm_hints={"include": ["text"]},
        ttl=Ttl(kind="hybrid", expires_at=datetime(2999, 1, 1, tzinfo=UTC), max_reads=9),
    )
    written = await client.create(draft)
    full = await client.get_full(written.id)
    assert full == written
    assert (full.title, full.context, full.tags, full.schema_name) == (
        draft.title,
        draft.context,
        draft.tags,
        draft.schema_name,
    )
    view = await client.get(written.id)
    assert view.context == {"text": "a" * 1_000}


async def test_many_are_written_in_order_or_not_at_all(client: Client) -> None:
    written = await client.create_many([note(f"n{number}") for number in range(50)])
    assert [each.title for each in written] == [f"n{number}" for number in range(50)]
    with pytest.raises(InvalidInput):
        await client.create_many([note("fine"), note(" ")])
    assert len([each async for each in client.list()]) == 50


async def test_listing_reads_page_after_page(client: Client) -> None:
    await client.create_many([note(f"n{number}", tags=("even",) if number % 2 == 0 else ()) for number in range(11)])
    newest = [each.title async for each in client.list(page_size=3)]
    assert newest == [f"n{number}" for number in reversed(range(11))]
    even = [each.title async for each in client.list(Selector(all_tags=("even",)), oldest_first=True, page_size=2)]
    assert even == ["n0", "n2", "n4", "n6", "n8", "n10"]


async def test_every_part_of_a_selector_reaches_the_server(client: Client) -> None:
    wanted = await client.create(
        Draft(
            title="w",
            context={"path": "src/a b&c.py", "n": 7},
            tags=("red", "x&y=z", "session:s9"),
            schema_name="f.v1",
        )
    )
    await client.create(note("other"))
    selectors = [
        Selector(schema_name="f.v1"),
        Selector(schema_names=("f.v1", "g.v1")),
        Selector(any_tags=("red", "green")),
        Selector(all_tags=("x&y=z",)),
        Selector(tag_prefix="session:"),
        Selector(session="s9"),
        Selector(path="src/*&c.py"),
        Selector(context_match=(ContextMatch(path="n", op="in", value=[6, 7]),)),
        Selector(all_tags=("red",), created_after=datetime(2020, 1, 1, tzinfo=UTC)),
        Selector(all_tags=("red",), created_before=datetime(2999, 1, 1, tzinfo=UTC)),
    ]
    for selector in selectors:
        assert [each.id async for each in client.list(selector)] == [wanted.id], selector
    assert [each async for each in client.list(Selector(created_after=datetime(2999, 1, 1, tzinfo=UTC)))] == []


async def test_search_takes_a_text_or_a_whole_request(client: Client) -> None:
    wanted = await client.create(Draft(title="The eagle has landed", context={}))
    await client.create(Draft(title="A snail on the wall", context={}))
    assert [hit.breadcrumb.id for hit in (await client.search("eagle")).hits] == [wanted.id]
    request = SearchRequest(text="eagle", ranking="text", limit=1)
    assert (await client.search(request)).ranking == "text"


@pytest.mark.req("RCR-04")
async def test_an_edit_that_loses_the_race_merges_and_tries_again(client: Client, server: Served) -> None:
    made = await client.create(note())
    readings: list[int] = []

    def overtake(found: Breadcrumb) -> None:
        headers = server.headers(found.owner_id) | {"If-Match": f'"{found.version}"'}
        body = {"context": {"n": found.context["n"] + 10}}
        url = f"{server.url}/breadcrumbs/{found.id}"
        assert httpx.patch(url, json=body, headers=headers, timeout=PATIENCE).status_code == 200

    def add_one(found: Breadcrumb) -> Change:
        readings.append(found.version)
        if len(readings) == 1:
            overtake(found)
        return Change(context={"n": found.context["n"] + 1})

    await asyncio.gather(*(client.edit(made.id, add_one) for _ in range(6)))
    final = await client.get_full(made.id)
    assert (final.context, final.version) == ({"n": 16}, 8)
    assert len(readings) > 6


@pytest.mark.req("RCR-04")
async def test_an_edit_gives_up_when_it_always_loses(client: Client) -> None:
    made = await client.create(note())
    attempts: list[int] = []
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Conflict):
            await client.edit(made.id, Stubborn(attempts))
    assert len(attempts) == 10


class Stubborn:
    """A merge that always starts from an outdated version."""

    def __init__(self, attempts: list[int]) -> None:
        self._attempts = attempts

    def __call__(self, found: Breadcrumb) -> Change:
        self._attempts.append(found.version)
        # The client sends the version that it read. A wrong number has the same effect as another writer.
        msgspec.structs.force_setattr(found, "version", found.version + 1_000)
        return Change(title="x")


async def test_errors_arrive_as_the_classes_that_the_server_raised(client: Client, server: Served) -> None:
    made = await client.create(note())
    with pytest.raises(Conflict) as conflict:
        await client.update(made.id, Change(title="x"), expect=9)
    assert (conflict.value.id, conflict.value.expected, conflict.value.actual) == (made.id, 9, 1)
    with pytest.raises(NotFound) as missing:
        await client.get("01890000-0000-7000-8000-000000000000")
    assert missing.value.kind == "breadcrumb"
    with pytest.raises(InvalidInput) as invalid:
        await client.create(note(tags=("ok", "bad\n")))
    assert (invalid.value.field, bool(invalid.value.reason)) == ("tags[1]", True)
    with pytest.raises(TooLarge) as large:
        await client.create(Draft(title="t" * 3_000, context={}))
    assert (large.value.size, large.value.limit) == (3_000, 2_000)
    async with Client(server.url, credential=server.credential, roles={"subscriber"}) as reader:
        with pytest.raises(AccessDenied) as denied:
            await reader.create(note())
    assert (denied.value.verb, list(denied.value.needed)) == ("create", ["curator", "emitter"])


async def test_a_delete_checks_the_version_when_it_is_given(client: Client) -> None:
    made = await client.create(note())
    with pytest.raises(Conflict):
        await client.delete(made.id, expect=2)
    await client.delete(made.id, expect=1)
    with pytest.raises(NotFound):
        await client.delete(made.id)


@pytest.mark.req("RCR-17")
async def test_an_expired_token_is_renewed_silently_and_once_for_all_callers(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serve(tmp_path, clock=clock) as served:
        issued: list[Principal] = []
        issue = served.keys.issue
        served.keys.issue = lambda by: issued.append(by) or issue(by)  # type: ignore[method-assign,func-returns-value]
        async with Client(served.url, credential=served.credential, owner_id="ada") as client:
            made = await client.create(note())
            clock.advance(hours=2)
            await asyncio.gather(*(client.get(made.id) for _ in range(20)))
            assert len(issued) == 2


@pytest.mark.req("RCR-17")
async def test_a_client_with_only_a_token_is_refused_once_that_has_expired(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serve(tmp_path, clock=clock) as served:
        token = served.keys.issue(Principal(owner_id="ada", agent_id="a")).token
        async with Client(served.url, token=token) as client:
            assert [each async for each in client.list()] == []
            clock.advance(hours=2)
            with pytest.raises(NotAuthenticated, match="expired"):
                await client.create(note())


async def test_a_wrong_credential_is_refused(server: Served) -> None:
    async with Client(server.url, credential="wrong") as client:
        with pytest.raises(NotAuthenticated, match="credential"):
            await client.create(note())
    async with Client(server.url) as client:
        with pytest.raises(NotAuthenticated, match="neither"):
            await client.create(note())


async def test_no_server_is_a_clear_error(unused_tcp_port: int) -> None:
    async with Client(f"http://127.0.0.1:{unused_tcp_port}", token="t") as client:
        with pytest.raises(ClewError, match="clew up"):
            await client.create(note())


async def test_an_id_with_odd_characters_stays_one_part_of_the_path(client: Client) -> None:
    for id in ("?x=1", "#", "é", " ", "%2e%2e"):
        with pytest.raises(NotFound):
            await client.get_full(id)
    for id in ("../auth/token", "a/b"):
        with pytest.raises(ClewError, match="path"):
            await client.get_full(id)


def test_importing_the_client_does_not_import_the_server() -> None:
    program = "import sys, clew.client; print([m for m in sys.modules if m.split('.')[0] in ('starlette', 'uvicorn')]"
    program += " + [m for m in sys.modules if m.startswith('clew.adapters')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
