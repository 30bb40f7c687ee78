"""The filters of a search as masks over the slots of the index. For tags and schemas, SQLite's indexes give the row
ids; for other conditions, a query reads the records. Masks are cached. After few changes, only the changed records are
checked again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from clew.sqlite_file import Sql
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.search.candidates import Allowed
from clew.trail.search.columns import FOREVER, Bools, Columns
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.index.search_index import Index
from clew.trail.sqlite.rows import in_list
from clew.trail.sqlite.selector_sql import build_where

MASKS = 64
FEW_CHANGES = 2_000


class _KnownMask(msgspec.Struct):
    """A cached mask: the slots that a selector selected when the columns were at `seq` and `changes`, and those of them
    that are live from `since` until the next one expires."""

    columns: Columns
    seq: int
    changes: int
    selected: Bools | None
    spent: int
    since: int
    until: int
    allowed: Allowed


class Masks:
    """A cache of the masks of the selectors that were used last."""

    def __init__(self, engine: Engine, index: Index) -> None:
        self._engine = engine
        self._index = index
        self._known: OrderedDict[Any, _KnownMask] = OrderedDict()

    def allow(self, connection: Sql, selector: Selector, visible: Sequence[int]) -> Allowed:
        """The live records of these audiences that the selector means, as of the index's last `sync`."""
        key = (msgspec.json.encode(selector), tuple(visible))
        known, now = self._known.pop(key, None), self._engine.wall()
        if known is None or not self._is_current(known, now):
            known = self._look(connection, known, selector, visible, now)
        known.seq = self._index.seq
        self._known[key] = known
        if len(self._known) > MASKS:
            self._known.popitem(last=False)
        return known.allowed

    def _is_current(self, known: _KnownMask, now: int) -> bool:
        columns = self._index.columns
        is_same = known.changes == self._index.changes and known.spent == columns.spent
        return is_same and known.since <= now < known.until

    def _look(
        self, connection: Sql, known: _KnownMask | None, selector: Selector, visible: Sequence[int], now: int
    ) -> _KnownMask:
        columns, size = self._index.columns, self._index.columns.size
        audience = columns.audience[:size]
        mask = audience == visible[0] if len(visible) == 1 else np.isin(audience, visible)
        selected = None
        if selector != EVERYTHING:
            selected = self._select(connection, known, selector, visible)
            mask &= selected
        mask &= columns.expires[:size] > now
        slots = np.flatnonzero(mask)
        has_vector = columns.has_vector(slots)
        return _KnownMask(
            columns=columns,
            seq=self._index.seq,
            changes=self._index.changes,
            selected=selected,
            spent=columns.spent,
            since=now,
            until=int(columns.expires[slots].min(initial=FOREVER)),
            allowed=Allowed(mask, slots, slots if has_vector.all() else slots[has_vector]),
        )

    def _select(self, connection: Sql, known: _KnownMask | None, selector: Selector, visible: Sequence[int]) -> Bools:
        """The slots that a selector matches. They may include slots whose record is gone, because those have no
        audience and are excluded anyway."""
        sources, before = _sources(selector, visible), None
        if known is not None and known.selected is not None and known.columns is self._index.columns:
            recent = self._changed_since(connection, known.seq)
            if len(recent) <= FEW_CHANGES:
                sources = [(f"{source} AND rid IN {in_list(recent)}", values) for source, values in sources]
                before = known.selected
        mask: Bools = np.logical_and.reduce([self._mark(connection, *source) for source in sources])
        if before is not None:
            mask[: len(before)] |= before
        return mask

    def _mark(self, connection: Sql, source: str, values: Any) -> Bools:
        """A mask of the records that a query finds. SQLite returns their ids as one text, because a Python object for
        each would take five times as long."""
        rids = connection.execute(f"SELECT group_concat(rid) FROM {source}", values).get
        mask = np.zeros(self._index.columns.size, np.bool_)
        mask[self._index.columns.slots(np.fromstring(rids or "", np.int64, sep=","))] = True
        return mask

    def _changed_since(self, connection: Sql, seq: int) -> list[int]:
        sql = f"SELECT DISTINCT rid FROM events WHERE seq > ? AND seq <= ? LIMIT {FEW_CHANGES + 1}"
        return [rid for (rid,) in connection.execute(sql, (seq, self._index.seq))]


def _sources(selector: Selector, visible: Sequence[int]) -> list[tuple[str, Any]]:
    """Queries whose common results are the records that a selector matches, including expired ones. For tags and
    schemas, an index of SQLite suffices. For other conditions, one query reads the records."""
    plain = Selector(
        schema_name=selector.schema_name,
        schema_names=selector.schema_names,
        except_schemas=selector.except_schemas,
        any_tags=selector.any_tags,
        all_tags=selector.all_tags,
        session=selector.session,
    )
    if selector != plain:
        where, values = build_where(selector, visible, now=0)
        return [(f"breadcrumbs b WHERE {where}", values)]
    audience = f"audience IN {in_list(visible)}"
    session = [f"session:{selector.session}"] if selector.session is not None else []
    found: list[tuple[str, Any]]
    found = [(f"tags WHERE {audience} AND tag = ?", (tag,)) for tag in (*selector.all_tags, *session)]
    for table, column, wanted in (("tags", "tag", selector.any_tags), ("breadcrumbs", "schema_name", selector.schemas)):
        if wanted:
            marks = ",".join("?" * len(wanted))
            found.append((f"{table} WHERE {audience} AND {column} IN ({marks})", tuple(wanted)))
    if selector.except_schemas:
        marks = ",".join("?" * len(selector.except_schemas))
        others = f"(schema_name IS NULL OR schema_name NOT IN ({marks}))"
        found.append((f"breadcrumbs WHERE {audience} AND {others}", tuple(selector.except_schemas)))
    return found
