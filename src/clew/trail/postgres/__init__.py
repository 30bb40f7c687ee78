"""A trail on a PostgreSQL server, for several processes and machines. Needs the extra `postgres`."""

from clew.trail.postgres.trail import PostgresTrail

__all__ = ["PostgresTrail"]
