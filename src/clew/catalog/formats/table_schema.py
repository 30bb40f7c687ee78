"""A table of a warehouse: one node for it, and one for each column."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.json_body import decode_body
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import TABLE_SCHEMA, media_type
from clew.catalog.resource import RawContent, ResourceNode
from clew.catalog.route import join_path
from clew.errors import FormatError
from clew.trail.model.tags import path_part


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str = ""
    nullable: bool | None = None
    description: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.type, "not null" if self.nullable is False else "")))


class TableDescription(msgspec.Struct, frozen=True, kw_only=True):
    table: str
    schema: str | None = None
    description: str | None = None
    columns: list[TableColumn] = []

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table


class TableSchema:
    """The path of a table is its name below the base path, with `with_schema` below the name of its schema. The path of
    a column is `columns/NAME` below its table."""

    def __init__(self, *, with_schema: bool = False) -> None:
        self.name = "table-schema-qualified" if with_schema else "table-schema"
        self._with_schema = with_schema

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) == TABLE_SCHEMA

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        table = decode_body(content, TableDescription, 'a table, {"table", "schema", "description", "columns": [...]}')
        if not table.table.strip():
            raise FormatError(content.id, "has no table name; `table` must not be empty")
        place = path_part(table.schema) if self._with_schema and table.schema else ""
        return build_tree(content, base_path, _grow_table(table, join_path(place, path_part(table.table))))


def _grow_table(table: TableDescription, path: str) -> Branch:
    listing = "\n".join(f"- {column}" for column in table.columns)
    about = (table.description or "").strip()
    return Branch(
        name=table.table,
        path=path,
        text="\n\n".join(filter(None, (f"Table {table.full_name}", about, listing))),
        description=about or f"Table {table.full_name}",
        type="table",
        metadata={"schema": table.schema or "", "columns": len(table.columns)},
        children=[_grow_column(column, table) for column in table.columns],
    )


def _grow_column(column: TableColumn, table: TableDescription) -> Branch:
    about = (column.description or "").strip()
    return Branch(
        name=column.name,
        path=join_path("columns", path_part(column.name)),
        text="\n\n".join(filter(None, (f"{table.full_name}.{column}", about))),
        description=about or f"Column of {table.full_name}, {column.type or 'of unknown type'}",
        type="column",
        metadata={"table": table.table, "type": column.type, "nullable": column.nullable},
    )
