from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput
from clew.trail import bulk, export_format, open_trail, transfer
from clew.trail.export_format import parse_line
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Ttl
from clew.trail.model.edge import Edge
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.transfer import TrailImportReport, export_trail, import_trail

ANN = Principal(owner_id="ann", scopes=frozenset({"team", "top"}))
BOB = Principal(owner_id="bob", scopes=frozenset({"team", "top"}))


@pytest.fixture
async def other(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    trail = await open_trail(f"sqlite://{tmp_path}/to.db", clock)
    yield trail
    await trail.close()


async def written(trail: Trail, title: str, by: Principal = ANN, **fields: Any) -> Breadcrumb:
    return await trail.records.create(Draft(title=title, context=fields.pop("context", {}), **fields), by=by)


async def exported(trail: Trail, by: Principal = ANN, **options: Any) -> list[str]:
    return [line async for line in export_trail(trail, by, **options)]


async def contents(trail: Trail, by: Principal = ANN) -> list[tuple[Any, ...]]:
    page = await trail.records.list(by=by, limit=1000, oldest_first=True)
    return [
        (b.id, b.title, b.context, b.tags, b.schema_name, b.scopes, b.llm_hints, b.ttl, b.entities) for b in page.items
    ]


async def fill(trail: Trail, clock: ManualClock) -> list[Breadcrumb]:
    """One of everything that an export must keep."""
    return [
        await written(trail, "Plain", context={"text": "grüße \u2028 \U0001f9f6 \x01", "n": [1, 1.5, None, True]}),
        await written(trail, "Tagged", tags=("z", "a", "session:s 1"), schema_name="x.v1"),
        await written(trail, "Scoped", scopes=("top", "team")),
        await written(trail, "Hinted", context={"a": 1, "b": 2}, llm_hints={"exclude": ["a"]}),
        await written(trail, "Secretive", context={"key": {"$secret": "api"}}),
        await written(trail, "Named", entities={"people": ["Ada"]}),
        await written(trail, "Ending", ttl=Ttl(kind="hybrid", expires_at=clock.now() + timedelta(days=1), max_reads=3)),
    ]


@pytest.mark.req("O1")
async def test_an_import_gives_back_every_field_in_the_same_order(
    trail: Trail, other: Trail, clock: ManualClock
) -> None:
    await fill(trail, clock)

    report = await import_trail(other, ANN, await exported(trail))

    assert report == TrailImportReport(created=7)
    assert await contents(other) == await contents(trail)


async def test_importing_twice_changes_nothing(trail: Trail, other: Trail, clock: ManualClock) -> None:
    first, second, *_ = await fill(trail, clock)
    await trail.edges.add([Edge(source=first.id, target=second.id, type="cites")], by=ANN)
    lines = await exported(trail, versions=True)
    await import_trail(other, ANN, lines)
    head = await other.log.head()

    report = await import_trail(other, ANN, lines)

    assert report == TrailImportReport(unchanged=7)
    assert await other.log.head() == head


async def test_the_export_of_an_import_is_the_export(trail: Trail, other: Trail, clock: ManualClock) -> None:
    await fill(trail, clock)
    lines = await exported(trail)

    await import_trail(other, ANN, lines)

    assert await exported(other) == lines


async def test_an_empty_trail_is_a_header(trail: Trail, other: Trail) -> None:
    lines = await exported(trail)

    assert [json.loads(line) for line in lines] == [{"kind": "header", "format": 1, "owner_id": "ann"}]
    assert await import_trail(other, ANN, lines) == TrailImportReport()


async def test_a_file_of_bytes_with_windows_line_ends_and_blank_lines_is_read(
    trail: Trail, other: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    await fill(trail, clock)
    path = tmp_path / "trail.jsonl"
    path.write_bytes("\n".join(await exported(trail)).replace("\n", "\r\n").encode())

    with path.open("rb") as lines:
        report = await import_trail(other, ANN, lines)

    assert report == TrailImportReport(created=7)
    assert await contents(other) == await contents(trail)


async def test_an_export_longer_than_a_page_and_a_batch_keeps_its_order(
    trail: Trail, other: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAGE", 7)
    monkeypatch.setattr(transfer, "BATCH_LINES", 10)
    await trail.records.create_many([Draft(title=f"n{number}", context={}) for number in range(53)], by=ANN)

    report = await import_trail(other, ANN, await exported(trail))

    assert report.created == 53
    assert [row[1] for row in await contents(other)] == [f"n{number}" for number in range(53)]


async def test_big_lines_are_written_in_small_batches(
    trail: Trail, other: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BATCH_SIZE", 10_000)
    await trail.records.create_many(
        [Draft(title=f"n{number}", context={"text": "x" * 6_000}) for number in range(5)], by=ANN
    )

    report = await import_trail(other, ANN, await exported(trail))

    assert report == TrailImportReport(created=5)


# -- what is in it, and what is not -------------------------------------------------------------------------


async def test_secrets_are_never_exported(trail: Trail) -> None:
    await trail.secrets.put("api", "hunter2-value", by=ANN)
    await written(trail, "Tool config", context={"api_key": {"$secret": "api"}})

    text = "".join(await exported(trail, versions=True))

    assert "hunter2" not in text
    assert '{"$secret":"api"}' in text


async def test_only_what_the_caller_may_see_is_exported(trail: Trail, clock: ManualClock) -> None:
    await written(trail, "anns")
    await written(trail, "secret plan", scopes=("top",))
    await written(trail, "bobs", by=BOB)
    await written(trail, "over", ttl=Ttl(kind="datetime", expires_at=clock.now() + timedelta(seconds=1)))
    clock.advance(seconds=2)

    plain = Principal(owner_id="ann")
    titles = [json.loads(line).get("title") for line in await exported(trail, plain)]

    assert titles == [None, "anns"]


async def test_a_selector_narrows_the_export_and_its_edges(trail: Trail, other: Trail) -> None:
    a, b = await written(trail, "a", tags=("in",)), await written(trail, "b", tags=("in",))
    c = await written(trail, "c", tags=("out",))
    await trail.edges.add([Edge(source=a.id, target=b.id, type="cites", weight=0.5, metadata={"why": "x"})], by=ANN)
    await trail.edges.add([Edge(source=a.id, target=c.id, type="cites")], by=ANN)

    report = await import_trail(other, ANN, await exported(trail, selector=Selector(all_tags=("in",))))

    assert (report.created, report.edges, report.failed_lines) == (2, 1, 0)
    [edge] = await other.edges.of(a.id, by=ANN)
    assert (edge.target, edge.type, edge.weight, edge.metadata) == (b.id, "cites", 0.5, {"why": "x"})


async def test_a_trail_can_move_to_another_owner(trail: Trail, other: Trail, clock: ManualClock) -> None:
    await fill(trail, clock)

    await import_trail(other, BOB, await exported(trail))

    assert await contents(other, BOB) == await contents(trail)
    assert await contents(other, ANN) == []


async def test_reads_are_counted_from_the_beginning_again(trail: Trail, other: Trail) -> None:
    twice = await written(trail, "twice", ttl=Ttl(kind="usage", max_reads=2))
    await trail.records.read(twice.id, by=ANN)

    await import_trail(other, ANN, await exported(trail))

    assert (await other.records.get(twice.id, by=ANN)).ttl == Ttl(kind="usage", max_reads=2)


# -- histories ----------------------------------------------------------------------------------------------


async def with_history(trail: Trail, versions: int) -> Breadcrumb:
    crumb = await written(trail, "v1", context={"n": 1})
    for number in range(2, versions + 1):
        change = Change(title=f"v{number}", context={"n": number})
        crumb = await trail.records.update(crumb.id, change, expect=number - 1, by=ANN)
    return crumb


async def test_a_history_is_kept_where_it_is_asked_for(trail: Trail, other: Trail) -> None:
    crumb = await with_history(trail, 3)

    report = await import_trail(other, ANN, await exported(trail, versions=True))

    assert report == TrailImportReport(created=1, updated=2)
    for version in (1, 2, 3):
        was = await trail.records.get(crumb.id, by=ANN, version=version)
        now = await other.records.get(crumb.id, by=ANN, version=version)
        assert (now.title, now.context, now.checksum) == (was.title, was.context, was.checksum)


async def test_a_history_longer_than_a_batch_is_not_torn(
    trail: Trail, other: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BATCH_LINES", 2)
    await written(trail, "before")
    crumb = await with_history(trail, 6)
    await with_history(trail, 2)

    report = await import_trail(other, ANN, await exported(trail, versions=True))

    assert report == TrailImportReport(created=3, updated=6)
    assert (await other.records.get(crumb.id, by=ANN)).title == "v6"


async def test_without_it_only_the_present_version_comes(trail: Trail, other: Trail) -> None:
    crumb = await with_history(trail, 3)

    await import_trail(other, ANN, await exported(trail))

    imported = await other.records.get(crumb.id, by=ANN)
    assert (imported.title, imported.version) == ("v3", 1)


async def test_an_import_that_broke_off_is_continued(trail: Trail, other: Trail) -> None:
    crumb = await with_history(trail, 4)
    lines = await exported(trail, versions=True)
    await import_trail(other, ANN, lines[:3])
    assert (await other.records.get(crumb.id, by=ANN)).title == "v2"

    report = await import_trail(other, ANN, lines)

    assert report == TrailImportReport(updated=2)
    assert [info.version for info in await other.records.history(crumb.id, by=ANN)] == [1, 2, 3, 4]


async def test_local_changes_are_kept(trail: Trail, other: Trail) -> None:
    crumb = await with_history(trail, 2)
    lines = await exported(trail, versions=True)
    await import_trail(other, ANN, lines)
    await other.records.update(crumb.id, Change(title="mine"), expect=2, by=ANN)

    report = await import_trail(other, ANN, lines)

    assert report == TrailImportReport(kept=1)
    assert (await other.records.get(crumb.id, by=ANN)).title == "mine"


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [b"{}"],
        [b"\xff\xfe"],
        [b'{"kind":"breadcrumb","id":"x","version":1,"title":"t","context":{}}'],
        [b'{"kind":"header","format":2,"owner_id":"ann"}'],
        [b"title,context"],
    ],
)
async def test_a_file_that_is_no_export_or_of_a_later_format_is_refused(other: Trail, lines: list[bytes]) -> None:
    with pytest.raises(InvalidInput, match="line 1"):
        await import_trail(other, ANN, lines)

    assert await other.log.head() == 0


async def test_bad_lines_are_reported_by_number_and_the_rest_is_imported(
    trail: Trail, other: Trail, clock: ManualClock
) -> None:
    await fill(trail, clock)
    good = [line.encode() for line in await exported(trail)]
    a, b = json.loads(good[1])["id"], json.loads(good[2])["id"]
    bad = [
        b"not json",
        b'{"kind":"cake"}',
        b'"text"',
        b"[" * 100_000,
        b'\xff{"kind":"edge"}',
        line(id="7", title="bad id"),
        line(title=""),
        line(title="bad tag", tags=["\n"]),
        line(title="bad ttl", ttl={"kind": "usage"}),
        line(title="bad context", context=[]),
        json.dumps({"kind": "edge", "source": a, "target": UNKNOWN, "type": "cites"}).encode(),
        json.dumps({"kind": "edge", "source": a, "target": a, "type": "cites"}).encode(),
        json.dumps({"kind": "edge", "source": a, "target": b, "type": "Not A Type"}).encode(),
    ]
    fine = json.dumps({"kind": "edge", "source": a, "target": b, "type": "cites"}).encode()

    report = await import_trail(other, ANN, [*good, *bad, fine])

    first = len(good) + 1
    assert sorted(problem.line for problem in report.problems) == list(range(first, first + len(bad)))
    assert (report.created, report.edges, report.failed_lines) == (7, 1, len(bad))
    assert all(problem.reason for problem in report.problems)
    assert await contents(other) == await contents(trail)


UNKNOWN = "00000000-0000-0000-0000-000000000000"


def line(**fields: Any) -> bytes:
    whole = {"kind": "breadcrumb", "id": UNKNOWN, "version": 1, "title": "t", "context": {}, **fields}
    return json.dumps(whole).encode()


async def test_a_history_ends_before_the_version_that_cannot_be_written(trail: Trail, other: Trail) -> None:
    crumb = await with_history(trail, 4)
    lines = await exported(trail, versions=True)
    lines[2] = lines[2].replace('"v2"', '""')

    report = await import_trail(other, ANN, lines)

    assert (report.created, report.updated) == (1, 0)
    assert [problem.line for problem in report.problems] == [3, 4, 5]
    assert (await other.records.get(crumb.id, by=ANN)).title == "v1"


async def test_a_line_over_the_limit_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_format, "MAX_LINE", 100)

    with pytest.raises(InvalidInput, match="over the limit"):
        parse_line(line(title="x" * 200))


async def test_a_flood_of_bad_lines_does_not_fill_the_memory(
    trail: Trail, other: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "MAX_PROBLEMS", 10)
    [header] = await exported(trail)

    report = await import_trail(other, ANN, [header, *["bad"] * 500])

    assert (report.failed_lines, len(report.problems)) == (500, 10)


async def test_an_id_that_another_owner_has_is_imported_all_the_same(trail: Trail, other: Trail) -> None:
    crumb = await written(trail, "anns")
    await import_trail(other, BOB, await exported(trail))

    report = await import_trail(other, ANN, await exported(trail))

    assert report == TrailImportReport(created=1)
    assert (await other.records.get(crumb.id, by=ANN)).owner_id == ANN.owner_id
    assert (await other.records.get(crumb.id, by=BOB)).owner_id == BOB.owner_id


async def test_a_repeated_id_far_apart_is_imported_once(trail: Trail, other: Trail) -> None:
    await written(trail, "a")
    await written(trail, "b")
    header, a, b = await exported(trail)

    report = await import_trail(other, ANN, [header, a, b, a])

    assert report == TrailImportReport(created=2, unchanged=1)


async def test_a_caller_without_write_access_is_refused_at_once(trail: Trail, other: Trail) -> None:
    await written(trail, "a")
    reader = Principal(owner_id="ann", roles=frozenset({"subscriber"}))

    with pytest.raises(AccessDenied):
        await import_trail(other, reader, await exported(trail))
