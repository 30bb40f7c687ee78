"""Reads the definitions of an owner from SQLite, again whenever an event says that one changed.

Only definitions without scopes count, and only for their own owner.
"""

from __future__ import annotations

from math import inf

import msgspec

from clew.sqlite_file import Sql
from clew.trail.model.definitions import POLICY, SCHEMA, Definitions
from clew.trail.model.policies import parse_policy
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.rows import ALIVE

NEWEST = "SELECT max(seq) FROM events WHERE schema_name IN ('schema.def.v1', 'ttl.policy.v1')"
"""Spelled as in the partial index, which SQLite uses only then."""

MAX_BOOKS = 1_000
_decode = msgspec.json.Decoder().decode


class DefinitionBook:
    """Definitions by owner, read again when an event says that one changed, whichever process changed it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._books: dict[str, Definitions] = {}

    def of(self, connection: Sql, owner_id: str) -> Definitions:
        """The definitions that hold now."""
        return self.as_of(connection, owner_id, newest(connection))

    def as_of(self, connection: Sql, owner_id: str, seq: int | None) -> Definitions:
        """The definitions that hold now, given the `newest` event that changed one."""
        book = self.recent(owner_id)
        if book is None or book.as_of != seq:
            if len(self._books) > MAX_BOOKS:
                self._books.clear()
            book = self._books[owner_id] = _read_definitions(connection, owner_id, self._engine.wall())
        return book

    def forget(self) -> None:
        """Read everything anew."""
        self._books = {}

    def recent(self, owner_id: str) -> Definitions | None:
        """The definitions as last read here. Whoever uses them compares `as_of` with `newest` when it writes."""
        book = self._books.get(owner_id)
        if book is None or (book.until != inf and book.until <= self._engine.wall()):
            return None
        return book


def newest(connection: Sql) -> int | None:
    """The event that last changed a definition of any owner."""
    found: int | None = connection.execute(NEWEST).get
    return found


def _read_definitions(connection: Sql, owner_id: str, now: int) -> Definitions:
    as_of = newest(connection)
    rows = connection.execute(
        "SELECT b.schema_name, b.context, b.expires_at FROM breadcrumbs b JOIN audiences a ON a.id = b.audience"
        f" WHERE a.owner_id = :owner AND a.scopes = '[]' AND b.schema_name IN ('{SCHEMA}', '{POLICY}') AND {ALIVE}"
        " ORDER BY +b.rid",  # not by the index of rows: it would read all of them
        {"owner": owner_id, "now": now},
    ).fetchall()
    policies = tuple(parse_policy(_decode(context)) for kind, context, _ in rows if kind == POLICY)
    contexts = [_decode(context) for kind, context, _ in rows if kind == SCHEMA]
    schemas = {str(context.get("schema_name")): context for context in contexts}
    until = min((end for _, _, end in rows if end is not None), default=inf)
    return Definitions(schemas, policies, as_of=as_of, until=until)
