"""The tables of a trail for a move: the same names, columns and values for every backend.

Only primary data is listed here. A backend rebuilds the data that it derives from these tables, such as the index of
words, and lists it in `DERIVED` of its replica. A test compares both lists with the real schemas.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clew.trail.work.queue_lanes import CLAIMED, FIRST

Row = tuple[Any, ...]
"""The values of one row in the order of the columns. Scopes are tuples of texts, checksums and vectors are bytes (a
missing vector is empty), ids of events are texts."""
OwnedRow = tuple[str, Row]
"""A row with the owner that it belongs to; the owner of `meta` is empty."""

_BY_AUDIENCE = "(SELECT a.owner_id FROM audiences a WHERE a.id = t.audience)"
_BY_RECORD = "(SELECT a.owner_id FROM breadcrumbs b JOIN audiences a ON a.id = b.audience WHERE b.rid = t.{column})"
_BY_CONSUMER = "(SELECT c.owner_id FROM consumers c WHERE c.cid = t.cid)"


class MovedTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table. `owner` is the SQL for the owner of a row `t`, `batch` the number of rows that are moved at a time."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    owner: str = "t.owner_id"
    batch: int = 1_000

    def key_of(self, row: Row) -> Row:
        """The values of the key in a row."""
        return tuple(row[self.columns.index(name)] for name in self.key)

    def settled(self, row: Row) -> Row:
        """The row without the lease of a worker: its event can be claimed at once, and the attempt does not count."""
        if self.name != "deliveries":
            return row
        values = dict(zip(self.columns, row, strict=True)) | {"token": None, "worker": None}
        if values["state"] == CLAIMED:
            values |= {"state": FIRST, "attempts": max(0, values["attempts"] - 1), "due_at": 0}
        return tuple(values.values())


_VERSION = "schema_name title context tags llm_hints entities entity_keywords"


def _table(name: str, key: str, others: str = "", *, owner: str = "t.owner_id", batch: int = 1_000) -> MovedTable:
    names = tuple(key.split())
    return MovedTable(name=name, key=names, columns=(*names, *others.split()), owner=owner, batch=batch)


TABLES = (
    _table("audiences", "id", "owner_id scopes"),
    _table(
        "breadcrumbs",
        "rid",
        f"id owner audience version {_VERSION} ttl_kind expires_at max_reads read_count checksum created_at updated_at"
        " created_by updated_by",
        owner=_BY_AUDIENCE,
        batch=100,
    ),
    _table(
        "versions",
        "rid version",
        f"{_VERSION} checksum updated_at updated_by",
        owner=_BY_RECORD.format(column="rid"),
        batch=100,
    ),
    _table("tags", "audience tag rid", owner=_BY_AUDIENCE),
    _table("vectors", "rid", "vector", owner=_BY_RECORD.format(column="rid"), batch=500),
    _table("vectors_next", "rid", "vector", owner=_BY_RECORD.format(column="rid"), batch=500),
    _table("edges", "source type target", "weight metadata created_at", owner=_BY_RECORD.format(column="source")),
    _table("events", "seq", "type rid id version audience schema_name tags at", owner=_BY_AUDIENCE),
    _table("idempotency", "owner_id key", "id created_at"),
    _table("consumers", "cid", "owner_id name scopes definition cursor agent_id created_at"),
    _table(
        "deliveries",
        "cid seq",
        "lane state attempts deaths due_at first_at token worker reason grp priority turn",
        owner=_BY_CONSUMER,
    ),
    _table("agents", "owner_id agent_id", "seen_at"),
    _table("secrets", "owner_id name", "sealed updated_at"),
    _table("meta", "key", "value", owner="''"),
)
"""All tables in the order in which they are written: a row comes after the rows that it points to."""

META_KEYS = (
    "trail",
    "identity",
    "floor",
    "embedder",
    "embedder_next",
    "embedder_next_of",
    "embedder_next_seq",
    "vectors_epoch",
)
"""The rows of `meta` that are moved. Other rows belong to data that a backend derives."""


def select_sql(table: MovedTable, selected: dict[str, str], mark: str, *, is_first: bool) -> str:
    """The query for the next rows of a table after a key, with the owner first. `selected` maps columns to the SQL
    expressions by which the backend reads them, and `mark` is the backend's placeholder. The query takes the key as its
    values, unless `is_first`."""
    columns = ", ".join(selected.get(name, f"t.{name}") for name in table.columns)
    key = ", ".join(f"t.{name}" for name in table.key)
    wanted = [] if is_first else [f"({key}) > ({', '.join(mark for _ in table.key)})"]
    if table.name == "meta":
        wanted.append(f"t.key IN ({', '.join(repr(name) for name in META_KEYS)})")
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    return f"SELECT {table.owner}, {columns} FROM {table.name} t{where} ORDER BY {key} LIMIT {table.batch}"
