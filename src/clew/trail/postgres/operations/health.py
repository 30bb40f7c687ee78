"""The state of a PostgreSQL server and of the trail on it, one finding for each check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clew.access import HEARTBEAT_CONSUMERS
from clew.trail.postgres.connection.migration import PRESENT, migration_steps
from clew.trail.postgres.connection.server import POOL_SIZE
from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.store import EngineFinding

UNPROTECTED = ("meta", "log", "migrations", "terms", "term_counts", "term_totals", "definition_marks")
"""Tables without row-level security: they hold numbers, hashes of words and settings, but no content."""
MANY_EVENTS = 10_000
"""The number of events behind the log from which a consumer is reported."""
DEAD_ROWS, DEAD_SHARE = 10_000, 0.3
"""The number and the share of dead rows from which a table is reported."""
MOST_CONNECTIONS = 0.8
SHOWN = 5
HERE = "relnamespace = current_schema()::regnamespace"


def examine(reading: ReadTransaction, place: str, search_memory: int) -> list[EngineFinding]:
    """All findings. The transaction acts for upkeep, so that it has the consumers of all owners. `search_memory` is the
    number of bytes that records may take in the memory of a process."""
    checks: tuple[Callable[[ReadTransaction], EngineFinding], ...] = (
        _durability,
        _extension,
        _migrations,
        _row_security,
        _consumers,
        _dead_rows,
        _indexes,
        _connections,
    )
    return [_server(reading, place), *(check(reading) for check in checks), _search(reading, search_memory)]


def _server(reading: ReadTransaction, place: str) -> EngineFinding:
    version, size = reading.row("SELECT current_setting('server_version'), pg_database_size(current_database())") or (
        "",
        0,
    )
    return EngineFinding(name="server", what=f"PostgreSQL {version} at {place}, {_megabytes(size)}")


def _durability(reading: ReadTransaction) -> EngineFinding:
    rows = reading.rows(
        "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY 1"
    )
    if rows:
        names = " and ".join(name for (name,) in rows)
        return EngineFinding(
            name="durability",
            level="wrong",
            what=f"{names} off: a power cut can destroy the database",
            todo="Remove that setting from postgresql.conf",
        )
    return EngineFinding(name="durability", what="commits are flushed to disk")


def _extension(reading: ReadTransaction) -> EngineFinding:
    row = reading.row(
        "SELECT e.extversion, a.default_version FROM pg_extension e"
        " JOIN pg_available_extensions a ON a.name = e.extname WHERE e.extname = 'vector'"
    )
    installed, newest = row or ("", "")
    if installed != newest:
        return EngineFinding(
            name="pgvector",
            level="note",
            what=f"{installed}, and the server has {newest}",
            todo="Let an administrator run ALTER EXTENSION vector UPDATE in this database",
        )
    return EngineFinding(name="pgvector", what=str(installed))


def _migrations(reading: ReadTransaction) -> EngineFinding:
    present, newest = int(reading.value(PRESENT)), len(migration_steps())
    if present != newest:
        return EngineFinding(
            name="schema",
            level="wrong",
            what=f"{present} of {newest} migrations are applied",
            todo="Another version of Clew is at work: use one version everywhere",
        )
    return EngineFinding(name="schema", what=f"{present} of {newest} migrations are applied")


def _row_security(reading: ReadTransaction) -> EngineFinding:
    role, is_above = reading.row(
        "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ) or ("", True)
    rows = reading.rows(
        "SELECT relname, relrowsecurity AND relforcerowsecurity"
        " AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid)"
        f" FROM pg_class c WHERE {HERE} AND relkind = 'r' AND relname != ALL (%s) ORDER BY 1",
        (list(UNPROTECTED),),
    )
    open_tables = [name for name, is_closed in rows if not is_closed]
    if is_above:
        return EngineFinding(
            name="rls",
            level="wrong",
            what=f"the role {role} bypasses row-level security",
            todo=f"Let an administrator run ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS",
        )
    if open_tables:
        first = open_tables[0]
        return EngineFinding(
            name="rls",
            level="wrong",
            what=f"row-level security is off for {_names(open_tables)}",
            todo=f"ALTER TABLE {first} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, and restore its policies",
        )
    return EngineFinding(name="rls", what=f"row-level security is on for {len(rows)} tables; {role} cannot bypass it")


def _consumers(reading: ReadTransaction) -> EngineFinding:
    rows = reading.rows(
        "SELECT c.name, c.owner_id, l.head - c.cursor + (SELECT count(*) FROM deliveries d WHERE d.cid = c.cid"
        " AND d.state IN (0, 3)), count(*) OVER () FROM consumers c, log l"
        " WHERE NOT EXISTS (SELECT 1 FROM unnest(%s::text[]) AS sign WHERE starts_with(c.name, sign))"
        " ORDER BY 3 DESC, 2, 1 LIMIT 1",
        (list(HEARTBEAT_CONSUMERS),),
    )
    if not rows:
        return EngineFinding(name="consumers", what="none yet")
    name, owner, behind, number = rows[0]
    what = f"{number:,} consumers; {name} of {owner} is {behind:,} events behind" if behind else f"{number:,} consumers"
    if behind > MANY_EVENTS:
        todo = "See with `clew workers` whether a process with its role runs, and start more"
        return EngineFinding(name="consumers", level="note", what=what, todo=todo)
    return EngineFinding(name="consumers", what=what)


def _dead_rows(reading: ReadTransaction) -> EngineFinding:
    dead, live, is_vacuumed = reading.row(
        "SELECT coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(n_live_tup), 0)::bigint,"
        " current_setting('autovacuum') FROM pg_stat_user_tables WHERE schemaname = current_schema()"
    ) or (0, 0, "on")
    what = f"{dead:,} dead rows beside {live:,} live ones"
    if is_vacuumed != "on":
        return EngineFinding(
            name="bloat",
            level="wrong",
            what=f"{what}; autovacuum is off",
            todo="Set autovacuum = on in postgresql.conf",
        )
    rows = reading.rows(
        "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema() AND n_dead_tup > %s"
        " AND n_dead_tup > %s * (n_dead_tup + n_live_tup) ORDER BY n_dead_tup DESC",
        (DEAD_ROWS, DEAD_SHARE),
    )
    if rows:
        names = [name for (name,) in rows]
        todo = f"Run VACUUM (ANALYZE) {names[0]}, and look for transactions that stay open"
        return EngineFinding(name="bloat", level="note", what=f"{what}, most in {_names(names)}", todo=todo)
    return EngineFinding(name="bloat", what=what)


def _indexes(reading: ReadTransaction) -> EngineFinding:
    rows = reading.rows(
        "SELECT c.relname, pg_relation_size(c.oid), i.indisvalid FROM pg_class c"
        f" JOIN pg_index i ON i.indexrelid = c.oid WHERE c.{HERE} ORDER BY 2 DESC, 1"
    )
    invalid = [name for name, _, is_valid in rows if not is_valid]
    what = f"{len(rows)} indexes, {_megabytes(sum(size for _, size, _ in rows))}: {', '.join(_largest(rows))}"
    if invalid:
        return EngineFinding(
            name="indexes", level="wrong", what=f"not valid: {_names(invalid)}", todo=f"REINDEX INDEX {invalid[0]}"
        )
    return EngineFinding(name="indexes", what=what)


def _connections(reading: ReadTransaction) -> EngineFinding:
    used, mine, most = reading.row(
        "SELECT count(*) FILTER (WHERE backend_type = 'client backend'), count(*) FILTER (WHERE datname ="
        " current_database() AND application_name = 'clew'), current_setting('max_connections')::integer"
        " FROM pg_stat_activity"
    ) or (0, 0, 0)
    what = f"{used} of {most} connections, {mine} of them of Clew; a process uses up to {POOL_SIZE + 1}"
    if used > MOST_CONNECTIONS * most:
        todo = "Raise max_connections, or run fewer processes"
        return EngineFinding(name="pool", level="note", what=what, todo=todo)
    return EngineFinding(name="pool", what=what)


def _search(reading: ReadTransaction, memory: int) -> EngineFinding:
    from clew.trail.postgres.search.memory import read_size  # with numpy, which takes long to import

    size = read_size(reading)
    what = f"{size.records:,} records to search, which take {_megabytes(size.bytes)} of memory in each process"
    if not memory:
        return EngineFinding(name="search", what=f"{what}; searches ask the server, as search.memory_mb is 0")
    if size.bytes > memory:
        return EngineFinding(
            name="search",
            level="note",
            what=f"{what}; {_megabytes(memory)} are allowed, so searches ask the server and find less by vector",
            todo="Raise search.memory_mb where the machine has that memory",
        )
    return EngineFinding(name="search", what=what)


def _largest(rows: list[tuple[str, int, bool]]) -> Iterator[str]:
    for name, size, _ in rows[:SHOWN]:
        yield f"{name} {_megabytes(size)}"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
