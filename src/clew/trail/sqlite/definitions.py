"""Reads the definitions of an owner from SQLite, again when an event reports a change.

Only definitions without scopes count, and only for their own owner.
"""

from __future__ import annotations

from clew.sqlite_file import Sql
from clew.trail.model.definitions import POLICY, SCHEMA, DefinitionCache, Definitions, build_definitions
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.rows import ALIVE

NEWEST = "SELECT max(seq) FROM events WHERE schema_name IN ('schema.def.v1', 'ttl.policy.v1')"
"""The condition is spelled as in the partial index, because SQLite uses the index only then."""


class SqliteDefinitions:
    """The definitions of each owner, with a cache. They are read again when an event reports a change, by this or
    another process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cache = DefinitionCache()

    def of(self, connection: Sql, owner_id: str) -> Definitions:
        """The current definitions of an owner."""
        return self.as_of(connection, owner_id, newest(connection))

    def as_of(self, connection: Sql, owner_id: str, seq: int | None) -> Definitions:
        """The current definitions of an owner. `seq` is the `newest` event that changed one."""
        found = self.recent(owner_id)
        if found is None or found.as_of != seq:
            found = self._cache.put(owner_id, _read_definitions(connection, owner_id, self._engine.wall()))
        return found

    def forget(self) -> None:
        """Drop the cache, so that the next use reads all definitions again."""
        self._cache.forget()

    def recent(self, owner_id: str) -> Definitions | None:
        """The definitions as this process last read them, which may be outdated. A write compares their `as_of` with
        `newest`."""
        return self._cache.find(owner_id, self._engine.wall())


def newest(connection: Sql) -> int | None:
    """The event that last changed a definition of any owner."""
    found: int | None = connection.execute(NEWEST).get
    return found


def _read_definitions(connection: Sql, owner_id: str, now: int) -> Definitions:
    as_of = newest(connection)
    rows = connection.execute(
        "SELECT b.schema_name, b.context, b.expires_at FROM breadcrumbs b JOIN audiences a ON a.id = b.audience"
        f" WHERE a.owner_id = :owner AND a.scopes = '[]' AND b.schema_name IN ('{SCHEMA}', '{POLICY}') AND {ALIVE}"
        " ORDER BY +b.rid",  # without the index on row ids, which would read all rows
        {"owner": owner_id, "now": now},
    ).fetchall()
    return build_definitions(rows, as_of)
