"""The embedded backend: one SQLite file in WAL mode, with derived indexes beside it that can be rebuilt."""

from clew.trail.sqlite.trail import SqliteTrail

__all__ = ["SqliteTrail"]
