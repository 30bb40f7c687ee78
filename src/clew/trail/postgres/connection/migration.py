"""Brings a database to the newest schema, one numbered step after another. One process does it, others wait."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from clew.errors import StorageError
from clew.trail.postgres.connection.failures import translated
from clew.trail.postgres.connection.server import Connection

LOCK = 0x636C6577  # "clew": the process that migrates holds this advisory lock
PRESENT = "SELECT coalesce(max(number), 0) FROM migrations"


def migration_steps() -> list[Traversable]:
    """The files of all steps, in order."""
    folder = files("clew.trail.postgres") / "migrations"
    return sorted((step for step in folder.iterdir() if step.name.endswith(".sql")), key=lambda step: step.name)


def is_current(connection: Connection, place: str) -> bool:
    """Whether the database has every step. Changes nothing. Raises as `migrate`."""
    with translated(place), connection.transaction(force_rollback=True):
        return _read_present(connection) == len(migration_steps())


def migrate(connection: Connection, place: str) -> None:
    """Apply the steps that are missing, all in one transaction. Raises StorageError for a trail of a newer Clew, or
    tables of another program."""
    steps = migration_steps()
    with translated(place), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        present = _read_present(connection)
        if present > len(steps):
            raise StorageError(
                f"this trail was written by a newer Clew (schema {present})",
                hint="Update Clew, or use another trail",
            )
        for number, step in enumerate(steps[present:], present + 1):
            connection.execute(step.read_text(encoding="utf-8").encode())
            connection.execute("INSERT INTO migrations (number) VALUES (%s)", (number,))


def _read_present(connection: Connection) -> int:
    """The number of the last step, 0 for an empty schema."""
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
        " AND relname IN ('migrations', 'breadcrumbs', 'events', 'consumers') AND relkind = 'r'"
    ).fetchall()
    names = {name for (name,) in found}
    if names and "migrations" not in names:
        raise StorageError("this database belongs to another program", hint="Name another database for the trail")
    if not names:
        connection.execute(
            "CREATE TABLE migrations (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
        )
    row = connection.execute(PRESENT.encode()).fetchone()
    return int(row[0]) if row else 0
