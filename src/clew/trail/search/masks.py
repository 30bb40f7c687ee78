"""The filters of a search as masks over the slots of the index. For tags and schemas, the indexes of the database give
the row ids; for other conditions, a query reads the records. Masks are cached. After few changes, only the changed
records are checked again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.search.candidates import Allowed
from clew.trail.search.columns import FOREVER, Bools, Columns
from clew.trail.search.ranking import Ints
from clew.trail.search.search_index import Index

MASKS, MASK_BYTES = 64, 200_000_000
"""The number of masks that are kept, and about the memory that they may take together."""
SLOT_BYTES = 18
"""The memory of a mask for each slot, at most."""
FEW_CHANGES = 2_000


class MaskSource(Protocol):
    """The trail as the masks of one caller read it."""

    @property
    def viewer(self) -> Hashable:
        """Distinguishes callers that do not see the same records."""
        ...

    def select(self, selector: Selector, among: Sequence[int] | None) -> Sequence[Ints]:
        """Lists of row ids. The records that are in all of them are those that the selector matches and the caller
        sees, including expired ones; with `among`, those of them that are in it."""
        ...

    def changed(self, after: int, upto: int, limit: int) -> Sequence[int]:
        """Up to `limit` records that the events after one and up to another changed."""
        ...


class PlainCondition(NamedTuple):
    """A condition that an index of tags or schemas answers."""

    kind: Literal["tag", "schema", "other schema"]
    wanted: tuple[str, ...]


def plain_conditions(selector: Selector) -> list[PlainCondition] | None:
    """The conditions of a selector that asks for tags and schemas only, None for any other."""
    plain = Selector(
        schema_name=selector.schema_name,
        schema_names=selector.schema_names,
        except_schemas=selector.except_schemas,
        any_tags=selector.any_tags,
        all_tags=selector.all_tags,
        session=selector.session,
    )
    if selector != plain:
        return None
    session = [f"session:{selector.session}"] if selector.session is not None else []
    found = [PlainCondition("tag", (tag,)) for tag in (*selector.all_tags, *session)]
    if selector.any_tags:
        found.append(PlainCondition("tag", tuple(selector.any_tags)))
    if selector.schemas:
        found.append(PlainCondition("schema", tuple(selector.schemas)))
    if selector.except_schemas:
        found.append(PlainCondition("other schema", tuple(selector.except_schemas)))
    return found


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

    def __init__(self, index: Index, room: int = MASK_BYTES) -> None:
        """`room` is about the number of bytes that all masks may take. The newest one is kept in any case."""
        self._index = index
        self._room = room
        self._known: OrderedDict[Any, _KnownMask] = OrderedDict()

    def allow(self, source: MaskSource, selector: Selector, visible: Sequence[int], now: int) -> Allowed:
        """The records of these audiences that are live now and that the selector means, as of the index's last
        `sync`."""
        key = (msgspec.json.encode(selector), tuple(visible), source.viewer)
        known = self._known.pop(key, None)
        if known is None or not self._is_current(known, now):
            known = self._look(source, known, selector, visible, now)
        known.seq = self._index.seq
        self._known[key] = known
        while len(self._known) > min(MASKS, 1 + self._room // (SLOT_BYTES * (self._index.columns.size + 1))):
            self._known.popitem(last=False)
        return known.allowed

    def _is_current(self, known: _KnownMask, now: int) -> bool:
        columns = self._index.columns
        is_same = known.changes == self._index.changes and known.spent == columns.spent
        return is_same and known.since <= now < known.until

    def _look(
        self, source: MaskSource, known: _KnownMask | None, selector: Selector, visible: Sequence[int], now: int
    ) -> _KnownMask:
        columns, size = self._index.columns, self._index.columns.size
        audience = columns.audience[:size]
        mask = audience == visible[0] if len(visible) == 1 else np.isin(audience, visible)
        selected = None
        if selector != EVERYTHING:
            selected = self._select(source, known, selector)
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

    def _select(self, source: MaskSource, known: _KnownMask | None, selector: Selector) -> Bools:
        """The slots that a selector matches. They may include slots whose record is gone, because those have no
        audience and are excluded anyway."""
        recent, before = None, None
        if known is not None and known.selected is not None and known.columns is self._index.columns:
            changed = source.changed(known.seq, self._index.seq, FEW_CHANGES + 1)
            if len(changed) <= FEW_CHANGES:
                recent, before = changed, known.selected
        mask: Bools = np.logical_and.reduce([self._mark(rids) for rids in source.select(selector, recent)])
        if before is not None:
            mask[: len(before)] |= before
        return mask

    def _mark(self, rids: Ints) -> Bools:
        mask = np.zeros(self._index.columns.size, np.bool_)
        mask[self._index.columns.slots(rids)] = True
        return mask
