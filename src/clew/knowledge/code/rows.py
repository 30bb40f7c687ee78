"""Files, symbols, facts and edges as rows of `code.db`. A file and its symbols are written together. A symbol keeps its
number, and the edges that lead to it, as long as its file defines that name."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec

from clew.knowledge.code.file_content import FileContent
from clew.knowledge.code.models import FILE_KIND, CodeEdge, FileFacts, FileInfo, FileStatus, Symbol, SymbolRow
from clew.sqlite_file import Sql

encode_facts = msgspec.msgpack.Encoder().encode
decode_facts = msgspec.msgpack.Decoder(FileFacts).decode

_FILE = ("path", "blob", "language", "size", "mtime_ns", "ctime_ns", "ino", "looked_ns", "lines", "left_out")
_READ_FILES = f"SELECT id, {', '.join(_FILE)} FROM files"
_WRITE_FILE = (
    f"INSERT INTO files ({', '.join(_FILE)}) VALUES ({', '.join('?' * len(_FILE))}) ON CONFLICT (path) DO UPDATE"
    f" SET {', '.join(f'{name} = excluded.{name}' for name in _FILE[1:])} RETURNING id"
)
_SYMBOL = (
    "s.id, f.path, f.blob, s.kind, s.name, s.qualname, s.line_start, s.line_end, s.signature, s.doc, f.language,"
    " f.mtime_ns FROM symbols s JOIN files f ON f.id = s.file"
)
_UNLINK = (
    "DELETE FROM linked WHERE file IN (SELECT s.file FROM edges e JOIN symbols s ON s.id = e.source WHERE e.target = ?)"
)
"""The users of a symbol that is deleted must be linked again."""


NO_WORDS = (b"", b"")


class ParsedContent(NamedTuple):
    """The encoded results for a content: facts, the summary of its flow, and words as `encode_text` has them, or
    NO_WORDS."""

    facts: bytes
    summary: bytes = b""
    words: tuple[bytes, bytes] = NO_WORDS


class EdgeHop(NamedTuple):
    """An edge from the symbol `near` to the symbol `far`, both by number. A guess rests on the name alone."""

    near: int
    far: int
    type: str
    line: int
    is_guess: bool


def read_files(sql: Sql) -> dict[str, FileInfo]:
    """All files by path."""
    return {row[1]: _file(row) for row in sql.execute(_READ_FILES)}


def find_files(sql: Sql, paths: Collection[str]) -> dict[str, FileInfo]:
    """Some files by path, as far as they are stored."""
    where = "WHERE path IN (SELECT value FROM json_each(?))"
    return {row[1]: _file(row) for row in sql.execute(f"{_READ_FILES} {where}", (json.dumps(list(paths)),))}


def _file(row: tuple[Any, ...]) -> FileInfo:
    id, path, blob, language, *status, looked_ns, lines, left_out = row
    return FileInfo(id, path, blob.hex(), language, FileStatus(*status), looked_ns, lines, left_out)


def find_symbols(sql: Sql, where: str, values: Sequence[object]) -> list[SymbolRow]:
    """The symbols that match a condition over `s` and `f`, in its order."""
    found = sql.execute(f"SELECT {_SYMBOL} {where}", values)
    return [SymbolRow(id, path, blob.hex(), *rest) for id, path, blob, *rest in found]


def find_facts(sql: Sql, blob: str, language: str) -> bytes | None:
    """The encoded facts of a content."""
    return _find_column(sql, "facts", blob, language)


def find_file_facts(sql: Sql, path: str) -> FileFacts | None:
    """The facts of a file that is indexed."""
    query = "SELECT facts FROM files JOIN blobs USING (blob, language) WHERE path = ? AND left_out = ''"
    row = sql.execute(query, (path,)).fetchone()
    return decode_facts(row[0]) if row else None


def has_words(sql: Sql, blob: str, language: str) -> bool:
    """Whether the words of a content are known."""
    query = "SELECT 1 FROM passages WHERE blob = ? AND language = ?"
    return sql.execute(query, (bytes.fromhex(blob), language)).fetchone() is not None


def find_summary(sql: Sql, blob: str, language: str) -> bytes | None:
    """The encoded summary of a content's flow; None or empty before it is made."""
    return _find_column(sql, "summary", blob, language)


def _find_column(sql: Sql, column: str, blob: str, language: str) -> bytes | None:
    query = f"SELECT {column} FROM blobs WHERE blob = ? AND language = ?"
    row = sql.execute(query, (bytes.fromhex(blob), language)).fetchone()
    return row[0] if row else None


def write_summary(sql: Sql, blob: str, language: str, summary: bytes) -> None:
    query = "UPDATE blobs SET summary = ? WHERE blob = ? AND language = ?"
    sql.execute(query, (summary, bytes.fromhex(blob), language))


def write_parsed(sql: Sql, blob: str, language: str, parsed: ParsedContent, seen: int) -> None:
    """Write the results for a content, unless they are known. `seen` is the time in seconds."""
    key = (bytes.fromhex(blob), language)
    sql.execute(
        "INSERT INTO blobs VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seen = excluded.seen",
        (*key, parsed.facts, parsed.summary, seen),
    )
    if parsed.words != NO_WORDS:
        write_words(sql, blob, language, parsed.words)


def write_words(sql: Sql, blob: str, language: str, words: tuple[bytes, bytes]) -> None:
    """Write the words of a content, unless they are known."""
    query = "INSERT INTO passages (blob, language, packed, texts) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    sql.execute(query, (bytes.fromhex(blob), language, *words))


def find_wordless(sql: Sql) -> list[tuple[str, str, str]]:
    """The contents without words: path of a file that has it, blob and language, by path."""
    query = (
        "SELECT min(path), blob, language FROM files WHERE left_out = '' AND NOT EXISTS"
        " (SELECT 1 FROM passages p WHERE p.blob = files.blob AND p.language = files.language)"
        " GROUP BY blob, language ORDER BY 1"
    )
    return [(path, blob.hex(), language) for path, blob, language in sql.execute(query)]


def prune_contents(sql: Sql, before: int) -> None:
    """Delete contents that no file has, and that were parsed before a time."""
    query = "DELETE FROM blobs WHERE seen < ? AND blob NOT IN (SELECT blob FROM files) RETURNING 1"
    if sql.execute(query, (before,)).fetchall():
        sql.execute("DELETE FROM passages WHERE (blob, language) NOT IN (SELECT blob, language FROM blobs)")


def write_status(sql: Sql, path: str, content: FileContent) -> None:
    """Record that a file was read again and has the same content."""
    sql.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ?, ino = ?, looked_ns = ? WHERE path = ?",
        (*content.status, content.looked_ns, path),
    )


def write_file(sql: Sql, content: FileContent, language: str, facts: FileFacts | None, left_out: str = "") -> None:
    """Write a file with its symbols. Without facts, only its name is stored."""
    left_out = left_out or content.left_out
    known = (content.path, bytes.fromhex(content.blob), language, *content.status, content.looked_ns)
    file = sql.execute(_WRITE_FILE, (*known, facts.lines if facts else 0, left_out)).fetchone()[0]
    _drop_edges(sql, file)
    _write_symbols(sql, file, [_file_symbol(content.path, facts), *facts.symbols] if facts and not left_out else [])


def drop_file(sql: Sql, path: str) -> None:
    """Delete a file with its symbols and their edges."""
    for row in find_files(sql, [path]).values():
        _drop_edges(sql, row.id)
        _write_symbols(sql, row.id, [])
        sql.execute("DELETE FROM files WHERE id = ?", (row.id,))


def _drop_edges(sql: Sql, file: int) -> None:
    sql.execute("DELETE FROM edges WHERE source IN (SELECT id FROM symbols WHERE file = ?)", (file,))
    sql.execute("DELETE FROM linked WHERE file = ?", (file,))


def _write_symbols(sql: Sql, file: int, symbols: Iterable[Symbol]) -> None:
    """Replace the symbols of a file. A symbol of the same name keeps its number."""
    free: dict[str, list[int]] = defaultdict(list)
    for id, qualname in sql.execute("SELECT id, qualname FROM symbols WHERE file = ? ORDER BY id DESC", (file,)):
        free[qualname].append(id)
    values = []
    for one in symbols:
        id = free[one.qualname].pop() if free.get(one.qualname) else None
        place = (one.line_start, one.line_end)
        values.append((id, file, one.kind, one.name, one.name.lower(), one.qualname, *place, one.signature, one.doc))
    gone = [(id,) for ids in free.values() for id in ids]
    if gone:
        sql.executemany(_UNLINK, gone)
        sql.executemany("DELETE FROM edges WHERE target = ?", gone)
        sql.executemany("DELETE FROM symbols WHERE id = ?", gone)
    sql.executemany("INSERT OR REPLACE INTO symbols VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def _file_symbol(path: str, facts: FileFacts) -> Symbol:
    return Symbol(FILE_KIND, path.rpartition("/")[2], "", 1, max(1, facts.lines), "", facts.doc)  # type: ignore[arg-type]  # only here


def write_edges(sql: Sql, by_path: Mapping[str, Iterable[CodeEdge]]) -> None:
    """Replace the edges of some files, unless they are the same. A file gets a row in `linked` only if all its edges
    were written, and so not if an edge leads to an unknown symbol."""
    symbols = cache(partial(_symbols_by_name, sql))
    query = "SELECT f.id, l.digest FROM files f LEFT JOIN linked l ON l.file = f.id WHERE f.path = ?"
    for path, edges in by_path.items():
        file, before = sql.execute(query, (path,)).fetchone() or (0, None)
        rows, is_whole = _to_rows(edges, symbols) if file else ([], False)
        digest = hashlib.sha1(repr(rows).encode(), usedforsecurity=False).digest()
        if not file or before == digest:
            continue
        _drop_edges(sql, file)
        sql.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?)", rows)
        if is_whole:
            sql.execute("INSERT INTO linked VALUES (?, ?)", (file, digest))


def _symbols_by_name(sql: Sql, path: str) -> dict[str, tuple[int, str]]:
    """Number and kind of the symbols of a file by qualname; of several definitions, the longest."""
    rows = sql.execute(
        "SELECT s.qualname, s.id, s.kind FROM symbols s JOIN files f ON f.id = s.file WHERE f.path = ?"
        " ORDER BY s.line_end - s.line_start, s.line_start DESC",
        (path,),
    )
    return {qualname: (id, kind) for qualname, id, kind in rows}


def _to_rows(
    edges: Iterable[CodeEdge], symbols: Callable[[str], Mapping[str, tuple[int, str]]]
) -> tuple[list[tuple[int, str, int, int, str, bool]], bool]:
    """Edges by number, one for each line and name, and whether all symbols were known."""
    found: dict[tuple[int, str, int, int, str], bool] = {}
    is_whole = True
    for edge in edges:
        source = symbols(edge.source_path).get(edge.source_qualname)
        target = symbols(edge.target_path).get(edge.target_qualname)
        if source is None or target is None:
            is_whole = False
            continue
        is_implementing = edge.type == "inherits" and target[1] == "interface" != source[1]
        key = (source[0], "implements" if is_implementing else edge.type, target[0], edge.line, edge.name)
        found[key] = found.get(key, True) and edge.is_guess
    return sorted((*key, is_guess) for key, is_guess in found.items()), is_whole


def find_unlinked(sql: Sql) -> set[str]:
    """The files whose edges are missing."""
    query = "SELECT path FROM files WHERE left_out = '' AND id NOT IN (SELECT file FROM linked)"
    return {path for (path,) in sql.execute(query)}


def find_hops(sql: Sql, ids: Collection[int], types: Collection[str], *, backwards: bool) -> list[EdgeHop]:
    """The edges of some types from some symbols, or to them, ordered by the symbol that they reach."""
    near, far = ("target", "source") if backwards else ("source", "target")
    query = (
        f"SELECT {near}, {far}, type, line, guess FROM edges WHERE {near} IN (SELECT value FROM json_each(?))"
        " AND type IN (SELECT value FROM json_each(?))"
    )
    hops = (EdgeHop(*row) for row in sql.execute(query, (json.dumps(list(ids)), json.dumps(list(types)))))
    return sorted(hops, key=lambda hop: (hop.far, hop.is_guess, hop.near, hop.line))
