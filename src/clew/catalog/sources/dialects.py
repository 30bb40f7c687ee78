"""The query that lists the tables of each kind of database. All answer the same rows, described by `Column`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class ColumnRow(NamedTuple):
    """One column of one table. A table without columns comes as one row whose `name` is None."""

    schema: str
    table: str
    table_description: str | None
    name: str | None
    type: str | None
    nullable: bool | None
    description: str | None


SQLITE_TABLES = """
SELECT name FROM sqlite_master
 WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
 ORDER BY name
"""

# Per table: a view or a virtual table that cannot be opened must not hide the others. Hidden (1) are the columns of
# virtual tables that exist only for queries.
SQLITE_COLUMNS = """
SELECT 'main', ?1, NULL, name, type, "notnull" = 0 AND pk = 0, NULL
  FROM pragma_table_xinfo(?1)
 WHERE hidden <> 1
 ORDER BY cid
"""

POSTGRESQL = """
SELECT n.nspname, c.relname, obj_description(c.oid, 'pg_class'),
       a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, col_description(c.oid, a.attnum)
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND NOT c.relispartition
   AND n.nspname <> 'information_schema'
   AND n.nspname !~ '^pg_'
 ORDER BY n.nspname, c.relname, a.attnum
"""

# The SVV views also show external tables and late-binding views, which pg_class does not have.
REDSHIFT = """
SELECT t.table_schema, t.table_name, t.remarks,
       c.column_name, c.data_type, c.is_nullable = 'YES', c.remarks
  FROM svv_tables t
  LEFT JOIN svv_columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
 WHERE t.table_schema <> 'information_schema'
   AND t.table_schema NOT LIKE 'pg!_%' ESCAPE '!'
 ORDER BY t.table_schema, t.table_name, c.ordinal_position
"""

SERVER_QUERIES = {"postgresql": POSTGRESQL, "postgres": POSTGRESQL, "redshift": REDSHIFT}


def as_columns(rows: list[tuple[object, ...]]) -> Iterator[ColumnRow]:
    """Rows of a driver as columns, with the driver's own booleans made ours."""
    for schema, table, remark, name, kind, nullable, description in rows:
        yield ColumnRow(
            str(schema),
            str(table),
            None if remark is None else str(remark),
            None if name is None else str(name),
            None if kind is None else str(kind),
            None if nullable is None else bool(nullable),
            None if description is None else str(description),
        )
