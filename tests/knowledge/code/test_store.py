"""The database of derived facts on code: valid or rebuilt, with one writer and many readers."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from clew.errors import StorageError
from clew.knowledge.code.file_content import FileContent, blob_id
from clew.knowledge.code.models import CodeEdge, FileFacts, FileStatus, Symbol
from clew.knowledge.code.rows import (
    drop_file,
    find_files,
    find_hops,
    find_symbols,
    find_unlinked,
    read_files,
    write_edges,
    write_file,
)
from clew.knowledge.code.store import CodeStore, read_meta, write_meta


def content(path: str, body: bytes = b"x") -> FileContent:
    return FileContent(path, FileStatus(len(body), 1, 1, 1), 10**12, blob_id(body), body)


def facts(*qualnames: str) -> FileFacts:
    symbols = [Symbol("function", name.rpartition(".")[2], name, at, at + 1) for at, name in enumerate(qualnames, 1)]
    return FileFacts("python", symbols, lines=len(symbols) + 1)


def put(store: CodeStore, path: str, *qualnames: str) -> None:
    with store.writing() as sql:
        write_file(sql, content(path, " ".join(qualnames).encode()), "python", facts(*qualnames))


def names(store: CodeStore) -> list[tuple[str, str]]:
    with store.reading() as sql:
        return [(row.path, row.qualname) for row in find_symbols(sql, "WHERE s.qualname != '' ORDER BY s.id", ())]


def test_rows_are_there_after_opening_again(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / ".clew" / "code.db")
    put(store, "a.py", "f", "C.m")
    store.close()
    store.close()
    again = CodeStore(tmp_path / ".clew" / "code.db")
    assert names(again) == [("a.py", "f"), ("a.py", "C.m")]
    again.close()


@pytest.mark.parametrize("damage", [b"not a database at all, but longer than a header " * 40, b"short", b"header"])
def test_a_damaged_file_is_built_again_and_says_so(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "code.db"
    if damage == b"header":
        store = CodeStore(path)
        put(store, "a.py", "f")
        store.close()
        damage = b"SQLite format 3\0" + b"\xff" * 5_000
    path.write_bytes(damage)
    store = CodeStore(path)
    assert "damaged" in caplog.text
    assert names(store) == []
    store.close()


def test_a_file_of_another_version_or_program_is_built_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "code.db"
    with apsw.Connection(str(path)) as other:
        other.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    other.close()
    store = CodeStore(path)
    assert "another version" in caplog.text
    put(store, "a.py", "f")
    store.close()
    with apsw.Connection(str(path)) as old:
        old.execute("PRAGMA user_version=7")
    old.close()
    store = CodeStore(path)
    assert "another version" in caplog.text
    assert names(store) == []
    store.close()


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    with pytest.raises(StorageError), store.writing() as sql:
        write_meta(sql, "k", 1) or sql.execute("no statement")
    assert store.meta("k") is None
    store.close()
    with pytest.raises(StorageError, match="closed"), store.writing():
        pass


def test_readers_see_one_moment_while_another_thread_writes(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    put(store, "a.py", "f")
    with store.reading() as sql:
        before = read_files(sql)
        writer = threading.Thread(target=put, args=(store, "b.py", "g"))
        writer.start()
        writer.join()
        assert read_files(sql) == before
    assert len(names(store)) == 2
    store.close()


def test_other_parts_keep_tables_of_their_own_in_the_file(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    with store.writing() as sql:
        sql.execute("CREATE TABLE IF NOT EXISTS commits (sha TEXT PRIMARY KEY)")
        with store.writing() as inner:
            inner.execute("INSERT INTO commits VALUES ('abc')")
            write_meta(inner, "commits", 1)
    with store.reading() as sql:
        assert sql.execute("SELECT sha FROM commits").fetchall() == [("abc",)]
        assert read_meta(sql, "commits") == 1
    store.close()


def calls(source: str, *targets: str) -> list[CodeEdge]:
    return [CodeEdge("b.py", source, "a.py", name, "calls", 3) for name in targets]


def test_a_symbol_that_stays_keeps_the_edges_that_lead_to_it(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    put(store, "a.py", "f", "g")
    put(store, "b.py", "h")
    with store.writing() as sql:
        assert find_unlinked(sql) == {"a.py", "b.py"}
        write_edges(sql, {"a.py": [], "b.py": calls("h", "f", "g")})
        write_edges(sql, {"a.py": [], "b.py": calls("h", "f", "g")})
        assert find_unlinked(sql) == set()
    put(store, "a.py", "new", "f")
    with store.reading() as sql:
        (h,) = find_symbols(sql, "WHERE s.qualname = 'h'", ())
        (f,) = find_symbols(sql, "WHERE s.qualname = 'f'", ())
        assert [(hop.far, hop.type, hop.line) for hop in find_hops(sql, [h.id], ("calls",), backwards=False)] == [
            (f.id, "calls", 3)
        ]
        assert [hop.far for hop in find_hops(sql, [f.id], ("calls",), backwards=True)] == [h.id]
        assert find_hops(sql, [f.id], ("imports",), backwards=True) == []
        assert find_unlinked(sql) == {"a.py", "b.py"}  # one file changed, and the other used a symbol that is gone
    store.close()


def test_an_edge_to_what_is_not_known_is_left_out_and_tried_again(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    put(store, "a.py", "f")
    put(store, "b.py", "h")
    with store.writing() as sql:
        write_edges(sql, {"a.py": [], "b.py": calls("h", "f", "later")})
        assert find_unlinked(sql) == {"b.py"}
        assert sql.execute("SELECT count(*) FROM edges").fetchone() == (1,)
    store.close()


def test_a_new_content_has_no_edges_until_it_is_linked(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    put(store, "a.py", "f")
    put(store, "b.py", "h")
    with store.writing() as sql:
        write_edges(sql, {"b.py": calls("h", "f")})
    put(store, "b.py", "h", "other")
    with store.reading() as sql:
        assert sql.execute("SELECT count(*) FROM edges").fetchone() == (0,)
    store.close()


def test_a_file_that_goes_takes_all_of_it_along(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    put(store, "a.py", "f")
    put(store, "b.py", "h")
    with store.writing() as sql:
        write_edges(sql, {"b.py": calls("h", "f"), "a.py": [CodeEdge("a.py", "", "b.py", "", "imports", 1)]})
        drop_file(sql, "a.py")
        drop_file(sql, "never there")
        assert not find_files(sql, ["a.py"])
        assert sql.execute("SELECT count(*) FROM edges").fetchone() == (0,)
    assert names(store) == [("b.py", "h")]
    store.close()


def test_damage_that_is_found_later_is_mended_by_building_again(tmp_path: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    put(store, "a.py", "f")
    assert names(store)
    store.rebuild(store.era)
    assert names(store) == []
    put(store, "a.py", "f")
    assert names(store) == [("a.py", "f")]
    store.close()


@pytest.mark.req("BEY-06")
def test_a_link_in_place_of_the_database_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    other = tmp_path / "other" / "code.db"
    CodeStore(other).close()
    before = other.read_bytes()
    place = tmp_path / "clone" / "code.db"
    place.parent.mkdir()
    place.symlink_to(other)
    CodeStore(place).close()
    assert (place.is_symlink(), other.read_bytes() == before) == (False, True)
