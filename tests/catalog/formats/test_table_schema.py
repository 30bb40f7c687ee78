from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.formats import TableSchema
from clew.catalog.formats.types import TABLE_SCHEMA
from clew.errors import FormatError
from tests.catalog.formats.documents import check_tree, document, paths, read, walk

ORDERS: dict[str, Any] = {
    "table": "fact_orders",
    "schema": "analytics",
    "description": "One row an order.",
    "columns": [
        {"name": "order_id", "type": "bigint", "nullable": False, "description": "Key."},
        {"name": "customer_id", "type": "bigint", "nullable": True, "description": "Who bought."},
        {"name": "total", "type": "numeric(12,2)", "nullable": True, "description": ""},
    ],
}


@pytest.mark.req("ERN-19")
def test_a_table_of_three_columns_yields_four_nodes() -> None:
    root = read(ORDERS, TABLE_SCHEMA, id="analytics.fact_orders", base="facts")
    assert [(node.path, node.type) for node in walk([root])] == [
        ("facts/fact_orders", "table"),
        ("facts/fact_orders/columns/order_id", "column"),
        ("facts/fact_orders/columns/customer_id", "column"),
        ("facts/fact_orders/columns/total", "column"),
    ]
    assert [node.name for node in walk([root])] == ["fact_orders", "order_id", "customer_id", "total"]


def test_the_table_lists_its_columns_and_each_column_tells_about_itself() -> None:
    root = read(ORDERS, TABLE_SCHEMA)
    assert root.content == (
        "Table analytics.fact_orders\n\nOne row an order.\n\n"
        "- order_id bigint not null\n- customer_id bigint\n- total numeric(12,2)"
    )
    assert root.children[0].content == "analytics.fact_orders.order_id bigint not null\n\nKey."
    assert [child.description for child in root.children] == [
        "Key.",
        "Who bought.",
        "Column of analytics.fact_orders, numeric(12,2)",
    ]
    assert root.children[0].metadata == {"table": "fact_orders", "type": "bigint", "nullable": False}


def test_the_schema_may_stand_in_the_path() -> None:
    roots = TableSchema(with_schema=True).parse(document(ORDERS, TABLE_SCHEMA), "facts")
    check_tree(roots)
    assert paths(roots[0])[:2] == ["facts/analytics/fact_orders", "facts/analytics/fact_orders/columns/order_id"]
    assert TableSchema(with_schema=True).name != TableSchema().name


def test_invalid_names_are_encoded_and_equal_ones_get_numbers() -> None:
    columns = [{"name": name} for name in ("a/b", "Größe", "a", "a", "", "..")]
    root = read({"table": "t t", "columns": columns}, TABLE_SCHEMA)
    assert [path.removeprefix("t%20t/columns/") for path in paths(root)[1:]] == [
        "a%2Fb",
        "Gr%C3%B6%C3%9Fe",
        "a",
        "a-2",
        "_",
        "%2E.",
    ]


def test_a_table_without_columns_is_one_node() -> None:
    root = read({"table": "t"}, TABLE_SCHEMA)
    assert (root.content, root.children) == ("Table t", ())


def test_a_wide_table_keeps_all_its_columns() -> None:
    body = {"table": "wide", "columns": [{"name": f"c{number}", "type": "text"} for number in range(2_000)]}
    root = read(body, TABLE_SCHEMA)
    assert sum(child.type == "column" for child in root.children) == 2_000


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"table": " "}, "`table` must not be empty"),
        ({"table": 7}, "is not a table, .*table: must be text, not a whole number"),
        ({"table": "t", "columns": {"name": "a"}}, "columns: must be a list, not an object"),
        ({"table": "t", "columns": [{"type": "int"}]}, r"columns\[0\]\.name: is missing"),
        ({"table": "t", "columns": [{"name": "c"}] * 10_001}, "has more than 10,000 sections, parts or entries"),
    ],
)
def test_a_body_that_is_not_a_table_is_refused(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        read(body, TABLE_SCHEMA)
