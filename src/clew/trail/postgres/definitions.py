"""Reads the definitions of an owner from PostgreSQL, again when an event reports a change.

Only definitions without scopes count, and only for their own owner.
"""

from __future__ import annotations

from clew.access import Principal
from clew.trail.model.definitions import POLICY, SCHEMA, DefinitionCache, Definitions, build_definitions
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.rows import ALIVE
from clew.trail.postgres.transactions import ReadTransaction

NEWEST = "SELECT seq FROM definition_marks WHERE owner_id = %(owner)s"
READ = (
    "SELECT b.schema_name, b.context, b.expires_at FROM breadcrumbs b JOIN audiences a ON a.id = b.audience"
    f" WHERE a.owner_id = %(owner)s AND a.scopes = '{{}}' AND b.schema_name IN ('{SCHEMA}', '{POLICY}') AND {ALIVE}"
    " ORDER BY b.rid"
)


class PostgresDefinitions:
    """The definitions of each owner, with a cache. They are read again when an event reports a change, by this or
    another process."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._cache = DefinitionCache()

    async def recent(self, by: Principal) -> Definitions:
        """The definitions as this process last read them, which may be outdated. A write compares their `as_of` with
        the `newest` mark of the owner."""
        found = self._cache.find(by.owner_id, self._engine.wall())
        if found is None:
            found = await self._engine.read(lambda reading: self.of(reading, by.owner_id), by=by)
        return found

    def of(self, reading: ReadTransaction, owner_id: str) -> Definitions:
        """The current definitions of an owner."""
        return self.as_of(reading, owner_id, reading.value(NEWEST, {"owner": owner_id}))

    def as_of(self, reading: ReadTransaction, owner_id: str, newest: int | None) -> Definitions:
        """The current definitions of an owner. `newest` is the event that last changed one."""
        now = self._engine.wall()
        found = self._cache.find(owner_id, now)
        if found is None or found.as_of != newest:
            rows = reading.rows(READ, {"owner": owner_id, "now": now})
            found = self._cache.put(owner_id, build_definitions([(*row,) for row in rows], newest))
        return found

    def forget(self) -> None:
        """Drop the cache, so that the next use reads all definitions again."""
        self._cache.forget()
