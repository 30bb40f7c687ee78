"""`Secrets`: values that code may use and no read returns."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from clew.access import Principal
from clew.errors import AccessDenied, InvalidInput, NotFound, TooLarge
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import list_all, look_for, make, read_log, short

VALUE = "tr0ub4dor-and-three"


async def test_a_secret_is_revealed_to_code_also_after_reopening(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    await trail.secrets.put("api.key", VALUE, by=me)
    assert await trail.secrets.reveal("api.key", by=me) == VALUE
    await trail.close()
    assert await (await open_again()).secrets.reveal("api.key", by=me) == VALUE


async def test_names_are_listed_in_order_and_values_replaced(trail: Trail, me: Principal) -> None:
    for name in ("b", "a", "c"):
        await trail.secrets.put(name, "old", by=me)
    await trail.secrets.put("b", "new", by=me)
    assert await trail.secrets.names(by=me) == ["a", "b", "c"]
    assert await trail.secrets.reveal("b", by=me) == "new"


async def test_a_dropped_secret_is_gone(trail: Trail, me: Principal) -> None:
    await trail.secrets.put("a", VALUE, by=me)
    await trail.secrets.drop("a", by=me)
    assert await trail.secrets.names(by=me) == []
    with pytest.raises(NotFound):
        await trail.secrets.reveal("a", by=me)
    with pytest.raises(NotFound):
        await trail.secrets.drop("a", by=me)


@pytest.mark.req("RCR-19")
async def test_secrets_of_another_owner_do_not_exist(trail: Trail, me: Principal, stranger: Principal) -> None:
    await trail.secrets.put("key", VALUE, by=me)
    assert await trail.secrets.names(by=stranger) == []
    for call in (trail.secrets.reveal("key", by=stranger), trail.secrets.drop("key", by=stranger)):
        with pytest.raises(NotFound):
            await call
    await trail.secrets.put("key", "theirs", by=stranger)
    assert await trail.secrets.reveal("key", by=me) == VALUE


@pytest.mark.req("RCR-18")
@pytest.mark.parametrize("role", ["emitter", "subscriber"])
async def test_only_a_curator_handles_secrets(trail: Trail, me: Principal, role: str) -> None:
    await trail.secrets.put("key", VALUE, by=me)
    by = msgspec.structs.replace(me, roles=frozenset({role}))
    for call in (
        trail.secrets.put("key", "x", by=by),
        trail.secrets.names(by=by),
        trail.secrets.reveal("key", by=by),
        trail.secrets.drop("key", by=by),
    ):
        with pytest.raises(AccessDenied):
            await call


async def test_no_read_returns_the_value_of_a_reference(trail: Trail, me: Principal) -> None:
    await trail.secrets.put("key", VALUE, by=me)
    reference = {"$secret": "key"}
    hints = {"transform": {"shown": {"type": "extract", "path": "$.token"}}}
    made = await make(trail, me, "Config", schema_name="tool.config.v1", context={"token": reference}, llm_hints=hints)
    assert made.context == {"token": reference}
    seen = (
        await trail.records.get(made.id, by=me),
        await trail.records.read(made.id, by=me),
        await list_all(trail, me),
        await read_log(trail, me),
        await look_for(trail, me, "config key token"),
    )
    assert VALUE.encode() not in msgspec.json.encode(seen)
    assert (await look_for(trail, me, VALUE)).hits == ()


async def test_the_value_is_nowhere_in_the_files(trail: Trail, me: Principal, storage: Path) -> None:
    await trail.secrets.put("key", VALUE, by=me)
    await trail.close()
    files = [path for path in storage.rglob("*") if path.is_file()]
    assert files
    assert not any(VALUE.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("value", ["🔑", "line\nbreak\x00nul", "x" * 64_000, " "], ids=short)
async def test_values_of_any_text_are_kept(trail: Trail, me: Principal, value: str) -> None:
    await trail.secrets.put("key", value, by=me)
    assert await trail.secrets.reveal("key", by=me) == value


@pytest.mark.parametrize("name", ["", " ", "a b", "x" * 101, "ключ", "a/b", "\x00", "-a", "\ud83d"], ids=short)
async def test_a_bad_name_is_refused(trail: Trail, me: Principal, name: str) -> None:
    with pytest.raises(InvalidInput):
        await trail.secrets.put(name, VALUE, by=me)
    assert await trail.secrets.names(by=me) == []


async def test_a_value_that_is_empty_or_too_long_is_refused(trail: Trail, me: Principal) -> None:
    with pytest.raises(InvalidInput):
        await trail.secrets.put("a", "", by=me)
    with pytest.raises(TooLarge):
        await trail.secrets.put("a", "x" * 64_001, by=me)


async def test_a_value_that_is_no_unicode_is_refused(trail: Trail, me: Principal) -> None:
    with pytest.raises(InvalidInput):
        await trail.secrets.put("a", "\ud83d", by=me)
