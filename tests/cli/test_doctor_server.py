"""Findings of the doctor on a PostgreSQL server, and re-embedding there."""

from __future__ import annotations

import psycopg
import pytest

from clew.trail.model.event import Consumer
from clew.trail.model.selector import EVERYTHING
from tests.cli.conftest import Clew
from tests.cli.test_move import on
from tests.postgres_server import PostgresServer
from tests.trail_contents import ANN, fill

NAMES = [
    "trail",
    "server",
    "durability",
    "pgvector",
    "schema",
    "rls",
    "consumers",
    "bloat",
    "indexes",
    "pool",
    "search",
]


@pytest.fixture
def address(postgres_address: str, folder: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """A trail on a server that commands use."""
    monkeypatch.setenv("CLEW_TRAIL", postgres_address)
    return postgres_address


def findings(clew: Clew) -> dict[str, tuple[str, str]]:
    report = clew("doctor", "--json").json
    return {each["name"]: (each["level"], f"{each['what']} → {each['todo']}") for each in report["findings"]}


@pytest.mark.req("RCR-54")
def test_each_part_of_the_server_has_a_line(clew: Clew, address: str) -> None:
    on(address, fill)
    found = findings(clew)
    names = list(found)
    assert names[names.index("trail") : names.index("search") + 1] == NAMES
    # the server of the tests does not flush to disk, and the doctor says so
    assert {name for name in NAMES if found[name][0] != "ok"} == {"durability"}
    assert "fsync and full_page_writes off" in found["durability"][1]
    assert "PostgreSQL 1" in found["server"][1]
    assert "@" not in found["server"][1]
    assert found["rls"][1].startswith("row-level security is on for 13 tables; clew cannot bypass it")
    assert "of acme is" in found["consumers"][1] or "of other is" in found["consumers"][1]
    lines = clew("doctor").lines
    assert [line.split()[1] for line in lines if line.split()[1] in NAMES] == NAMES


def test_a_table_without_row_level_security_is_wrong(clew: Clew, address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER TABLE secrets NO FORCE ROW LEVEL SECURITY")
    result = clew("doctor")
    assert result.code == 1
    assert "row-level security is off for secrets → ALTER TABLE secrets ENABLE ROW LEVEL SECURITY, FORCE" in result.out


def test_an_invalid_index_is_wrong(clew: Clew, address: str, postgres_server: PostgresServer) -> None:
    name = address.rsplit("/", 1)[1]
    with psycopg.connect(postgres_server.address(name, "root"), autocommit=True) as connection:
        connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'events_rid'::regclass")
        assert findings(clew)["indexes"] == ("wrong", "not valid: events_rid → REINDEX INDEX events_rid")
        connection.execute("REINDEX INDEX events_rid")
    assert findings(clew)["indexes"][0] == "ok"


def test_a_consumer_far_behind_gets_a_note(clew: Clew, address: str) -> None:
    consumer = Consumer(name="slow", selector=EVERYTHING, start="beginning")
    on(address, lambda trail: trail.deliveries.register(consumer, by=ANN))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE log SET head = 20000")
    level, text = findings(clew)["consumers"]
    assert (level, "slow of acme is 20,000 events behind" in text, "clew workers" in text) == ("note", True, True)


@pytest.mark.parametrize(
    ("change", "undo", "said"),
    [
        ("ALTER ROLE clew BYPASSRLS", "ALTER ROLE clew NOBYPASSRLS", "bypasses row-level security"),
        (
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            "ALTER DATABASE {} RESET default_transaction_read_only",
            "is read-only",
        ),
    ],
)
def test_a_server_that_cannot_be_used_is_explained(
    clew: Clew, address: str, postgres_server: PostgresServer, change: str, undo: str, said: str
) -> None:
    name = address.rsplit("/", 1)[1]
    with psycopg.connect(postgres_server.address("postgres", "root"), autocommit=True) as connection:
        connection.execute(change.format(name).encode())
        try:
            level, text = findings(clew)["trail"]
        finally:
            connection.execute(undo.format(name).encode())
    assert (level, said in text, text.endswith("→ ")) == ("wrong", True, False)


@pytest.mark.req("RCR-15")
def test_the_vectors_of_all_owners_are_made_anew(clew: Clew, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on(address, fill)
    assert clew("trail", "reembed").out == "All vectors are up to date.\n"
    monkeypatch.setenv("CLEW_EMBEDDER", "wordllama")
    done = clew("trail", "reembed", "--json").json
    assert done["embedder"] == "wordllama"
    with psycopg.connect(address, options="-c clew.system=on") as connection:
        made = connection.execute(
            "SELECT count(*), count(DISTINCT a.owner_id), min(vector_dims(v.vector)), max(vector_dims(v.vector)),"
            " (SELECT value FROM meta WHERE key = 'embedder'),"
            " (SELECT count(*) FROM pg_class WHERE relname = 'vectors_near')"
            " FROM vectors v JOIN audiences a ON a.id = v.audience"
        ).fetchone()
    assert made is not None
    assert made[0] == done["embedded"] > 10
    assert made[1:4] == (2, 256, 256)
    assert (str(made[4]).startswith("wordllama"), made[5]) == (True, 1)
    found = clew("trail", "search", "mail that is put in order", "--owner", "acme", "--json").json
    assert found["hits"][0]["breadcrumb"]["title"] == "Grüße aus Zürich ✓"
    assert clew("trail", "reembed").out == "All vectors are up to date.\n"


def test_records_that_are_too_many_for_the_memory_of_a_process_are_noted(
    clew: Clew, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(address, fill)
    assert findings(clew)["search"][0] == "ok"
    monkeypatch.setattr("clew.trail.search.columns.RECORD_BYTES", 1_000_000)
    monkeypatch.setenv("CLEW_SEARCH_MEMORY_MB", "1")
    level, what = findings(clew)["search"]
    assert level == "note"
    assert "1.0 MB are allowed, so searches ask the server and find less by vector → Raise search.memory_mb" in what


def test_a_process_that_may_hold_no_records_is_no_finding(
    clew: Clew, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(address, fill)
    monkeypatch.setenv("CLEW_SEARCH_MEMORY_MB", "0")
    level, what = findings(clew)["search"]
    assert level == "ok"
    assert what.endswith("searches ask the server, as search.memory_mb is 0 → ")
