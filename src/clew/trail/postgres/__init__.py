"""A trail on a PostgreSQL server, for several processes and machines. Needs the extra `postgres`."""
