"""Export and import of a trail as JSON Lines: a header, the breadcrumbs in order of creation, then the edges.

An export contains no secrets, only their names in breadcrumbs that refer to them, and no vectors, which the importing
trail computes again. Times and authors are not imported, because an import creates new breadcrumbs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import msgspec

from clew.access import Principal
from clew.errors import AccessDenied, AlreadyExists, ClewError, InvalidInput, NotFound, StorageError, TooLarge
from clew.trail.bulk import each_record
from clew.trail.export_format import (
    FORMAT,
    BreadcrumbLine,
    EdgeLine,
    ExportHeader,
    change_of,
    content_of,
    draft_of,
    edge_line_of,
    edge_of,
    line_of,
    parse_line,
    to_text,
)
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.edge import Edge
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Trail

MAX_PROBLEMS = 1_000
BATCH_LINES = 500
BATCH_SIZE = 8_000_000
MAX_EDGES = 10_000


class ImportProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not imported, and why."""

    line: int
    reason: str


class TrailImportReport(msgspec.Struct, kw_only=True):
    """The outcome of an import: breadcrumbs `created`, later versions `updated`, breadcrumbs that were `unchanged`, and
    breadcrumbs of the trail that were `kept` because their content differs from the one in the file. `problems` are the
    first thousand."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    edges: int = 0
    failed_lines: int = 0
    problems: list[ImportProblem] = []


async def export_trail(
    trail: Trail, by: Principal, *, selector: Selector = EVERYTHING, versions: bool = False
) -> AsyncIterator[str]:
    """Yield the lines of an export, each with its line break. It contains the breadcrumbs that the selector matches and
    the caller may see, and the edges between them. With `versions`, each breadcrumb comes with its kept history.
    """
    yield to_text(ExportHeader(format=FORMAT, owner_id=by.owner_id))
    exported: dict[str, None] = {}
    async for breadcrumb in each_record(trail, selector, by=by):
        exported[breadcrumb.id] = None
        for older in await _older_versions(trail, by, breadcrumb) if versions else ():
            yield to_text(line_of(older))
        yield to_text(line_of(breadcrumb))
    for id in exported:
        for edge in await _outgoing(trail, by, id):
            if edge.target in exported:
                yield to_text(edge_line_of(edge))


async def import_trail(trail: Trail, by: Principal, lines: Iterable[bytes | str]) -> TrailImportReport:
    """Write an export under the caller's owner, keeping ids, tags, scopes and order.

    An import can be repeated or continued: existing breadcrumbs stay, and a history continues only from the version
    that the trail has. Each breadcrumb is imported independently: a line that cannot be used is reported, and the
    others are imported. Raises InvalidInput if the lines are not an export or have a later format, AccessDenied,
    StorageError.
    """
    importing = _Import(trail, by)
    for number, raw in enumerate(lines, 1):
        await importing.take(number, raw)
    await importing.flush()
    return importing.report


class _Import:
    """Collects lines into batches and writes them."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail = trail
        self._by = by
        self._has_header = False
        self._groups: list[list[tuple[int, BreadcrumbLine]]] = []
        self._edges: list[tuple[int, Edge]] = []
        self._lines = 0
        self._size = 0
        self.report = TrailImportReport()

    async def take(self, number: int, raw: bytes | str) -> None:
        if not raw.strip():
            return
        if not self._has_header:
            self._open(raw)
            return
        try:
            line = parse_line(raw)
        except InvalidInput as error:
            self._fail(number, error)
            return
        if isinstance(line, ExportHeader):
            return
        continues = isinstance(line, BreadcrumbLine) and self._last_id() == line.id
        if not continues and (self._lines >= BATCH_LINES or self._size + len(raw) > BATCH_SIZE):
            await self.flush()
        self._lines, self._size = self._lines + 1, self._size + len(raw)
        if isinstance(line, EdgeLine):
            self._edges.append((number, edge_of(line)))
        elif continues:
            self._groups[-1].append((number, line))
        else:
            self._groups.append([(number, line)])

    async def flush(self) -> None:
        """Write the collected lines, breadcrumbs before edges."""
        groups, edges = self._groups, self._edges
        self._groups, self._edges, self._lines, self._size = [], [], 0, 0
        created = await self._create_new(groups)
        for group in groups:
            await self._import_group(group, is_new=group[0][1].id in created)
        await self._add_edges(edges)

    def _last_id(self) -> str | None:
        return self._groups[-1][-1][1].id if self._groups else None

    def _open(self, raw: bytes | str) -> None:
        try:
            header = parse_line(raw)
        except InvalidInput:
            header = None
        if not isinstance(header, ExportHeader):
            raise InvalidInput("line 1", "is not the header of an export", hint="Make one with `clew trail export`")
        if header.format > FORMAT:
            raise InvalidInput("line 1", f"format {header.format} is later than {FORMAT}", hint="Update Clew")
        self._has_header = True

    async def _create_new(self, groups: list[list[tuple[int, BreadcrumbLine]]]) -> set[str]:
        """The ids of new breadcrumbs, written in one transaction; none when it was refused."""
        fresh = [group[0][1] for group in groups if await self._find(group[0][1].id) is None]
        try:
            await self._trail.records.create_many([draft_of(line) for line in fresh], by=self._by)
        except (StorageError, AccessDenied):
            raise
        except ClewError:
            return set()
        return {line.id for line in fresh}

    async def _import_group(self, group: list[tuple[int, BreadcrumbLine]], *, is_new: bool) -> None:
        """Import one breadcrumb with its later versions, up to the first version that cannot be written."""
        at = 0
        try:
            stored = await self._find(group[0][1].id)
            if stored is None:
                stored, is_new = await self._trail.records.create(draft_of(group[0][1]), by=self._by), True
            applied = 0 if is_new else _position(group, stored)
            self.report.created += is_new
            if applied is None:
                self.report.kept += 1
                return
            self.report.unchanged += not is_new and applied == len(group) - 1
            for at in range(applied + 1, len(group)):
                change = change_of(group[at][1])
                stored = await self._trail.records.update(stored.id, change, expect=stored.version, by=self._by)
                self.report.updated += 1
        except (StorageError, AccessDenied):
            raise
        except ClewError as error:
            self._fail(group[at][0], error)
            for number, _ in group[at + 1 :]:
                self._fail(number, InvalidInput("line", f"follows line {group[at][0]}, which was not imported"))

    async def _add_edges(self, edges: list[tuple[int, Edge]]) -> None:
        if not edges:
            return
        try:
            await self._trail.edges.add([edge for _, edge in edges], by=self._by)
            self.report.edges += len(edges)
            return
        except (StorageError, AccessDenied):
            raise
        except ClewError:
            pass
        for number, edge in edges:
            await self._add_edge(number, edge)

    async def _add_edge(self, number: int, edge: Edge) -> None:
        try:
            await self._trail.edges.add([edge], by=self._by)
            self.report.edges += 1
        except AlreadyExists:
            return
        except (StorageError, AccessDenied):
            raise
        except ClewError as error:
            self._fail(number, error)

    async def _find(self, id: str) -> Breadcrumb | None:
        try:
            return await self._trail.records.get(id, by=self._by)
        except (NotFound, InvalidInput):
            return None

    def _fail(self, number: int, error: ClewError) -> None:
        self.report.failed_lines += 1
        if len(self.report.problems) < MAX_PROBLEMS:
            self.report.problems.append(ImportProblem(line=number, reason=str(error)))


async def _older_versions(trail: Trail, by: Principal, present: Breadcrumb) -> list[Breadcrumb]:
    """The kept versions before the present one; none if it has been deleted."""
    try:
        history = await trail.records.history(present.id, by=by)
        return [
            await trail.records.get(present.id, by=by, version=info.version)
            for info in history
            if info.version < present.version
        ]
    except NotFound:
        return []


async def _outgoing(trail: Trail, by: Principal, id: str) -> list[Edge]:
    """The edges from a breadcrumb; none if it has been deleted. Raises TooLarge over the limit."""
    try:
        edges = await trail.edges.of(id, by=by, direction="outgoing", limit=MAX_EDGES)
    except NotFound:
        return []
    if len(edges) == MAX_EDGES:
        raise TooLarge(f"edges of {id}", len(edges), MAX_EDGES - 1, "edges")
    return edges


def _position(group: list[tuple[int, BreadcrumbLine]], stored: Breadcrumb) -> int | None:
    """The index of the newest version in the file that equals the stored breadcrumb, or None if no version does."""
    present = content_of(stored)
    return next((at for at in range(len(group) - 1, -1, -1) if content_of(group[at][1]) == present), None)
