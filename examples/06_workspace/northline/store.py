"""The data behind the domains: one small SQLite file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE passengers (id INTEGER PRIMARY KEY, name TEXT, risk_score INTEGER, lifetime_spend REAL);
CREATE TABLE bookings (id INTEGER PRIMARY KEY, passenger INTEGER, trip TEXT, price REAL, device TEXT, booked_at TEXT);
CREATE TABLE sign_ins (passenger INTEGER, at TEXT, ip TEXT, device TEXT);
CREATE TABLE tickets (id INTEGER PRIMARY KEY, passenger INTEGER, queue TEXT, subject TEXT);
"""
PASSENGERS = [(4711, "Ada Winter", 91, 12_480.0), (1002, "Ben Holm", 12, 240.0)]
BOOKINGS = [
    (501, 4711, "Quay 7 to Skerry", 38.0, "phone-a1", "2026-03-02 18:20"),
    (502, 4711, "Skerry to Quay 7", 38.0, "phone-a1", "2026-03-09 08:05"),
    (517, 4711, "Quay 7 to Outer Bank, cabin", 189.0, "desktop-x9", "2026-03-14 03:12"),
    (518, 4711, "Outer Bank to Quay 7, cabin", 189.0, "desktop-x9", "2026-03-14 03:13"),
    (540, 1002, "Quay 7 to Skerry", 38.0, "phone-b4", "2026-03-15 12:00"),
]
SIGN_INS = [
    (4711, "2026-03-02 18:18", "192.0.2.14", "phone-a1"),
    (4711, "2026-03-09 08:01", "192.0.2.14", "phone-a1"),
    (4711, "2026-03-14 03:09", "203.0.113.77", "desktop-x9"),
    (1002, "2026-03-15 11:58", "192.0.2.90", "phone-b4"),
]


class Store:
    """Rows as dictionaries; what is written is there at once. Every call opens the file anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with self._open() as connection:
            return [dict(row) for row in connection.execute(query, values)]

    def open_ticket(self, passenger: int, queue: str, subject: str) -> int:
        """The number of the new ticket."""
        with self._open() as connection:
            made = connection.execute(
                "INSERT INTO tickets (passenger, queue, subject) VALUES (?, ?, ?)", (passenger, queue, subject)
            )
            return int(made.lastrowid or 0)

    def fill(self) -> None:
        """Make the tables with their rows, where there are none."""
        with self._open() as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            connection.executescript(SCHEMA)
            connection.executemany("INSERT INTO passengers VALUES (?, ?, ?, ?)", PASSENGERS)
            connection.executemany("INSERT INTO bookings VALUES (?, ?, ?, ?, ?, ?)", BOOKINGS)
            connection.executemany("INSERT INTO sign_ins VALUES (?, ?, ?, ?)", SIGN_INS)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection whose work is kept when the block ends well."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.row_factory = sqlite3.Row
            yield connection
