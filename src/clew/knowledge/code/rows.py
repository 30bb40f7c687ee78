"""Files, symbols and facts as rows of `code.db`. A file and its symbols are written together, so none is half there;
a symbol keeps its number for as long as its file has one of that name, and with it the edges that lead to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from clew.knowledge.code.file_content import Content
from clew.knowledge.code.files import Status
from clew.knowledge.code.models import FileFacts, Symbol
from clew.knowledge.code.store import Sql

FILE_KIND = "file"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(FileFacts).decode


class FileRow(NamedTuple):
    """A file as it was when it was last looked at."""

    id: int
    path: str
    blob: str
    language: str
    status: Status
    looked_ns: int
    lines: int
    left_out: str

    def is_as(self, status: Status) -> bool:
        """Whether a file with this status surely has the content that this row is about."""
        return self.status == status and status.settled(self.looked_ns)


class SymbolRow(NamedTuple):
    """A symbol and the file that it is in. The one of kind `file`, without a qualname, is the file itself."""

    id: int
    path: str
    blob: str
    kind: str
    name: str
    qualname: str
    line_start: int
    line_end: int
    signature: str
    doc: str
    language: str
    mtime_ns: int


class Parsed(NamedTuple):
    """What was made of a content, encoded: its facts and words, or the summary of its flow."""

    facts: bytes
    summary: bytes = b""
    words: tuple[bytes, bytes] | None = None


_FILE = "id, path, blob, language, size, mtime_ns, ctime_ns, ino, looked_ns, lines, left_out"
SYMBOL = (
    "s.id, f.path, f.blob, s.kind, s.name, s.qualname, s.line_start, s.line_end, s.signature, s.doc, f.language,"
    " f.mtime_ns FROM symbols s JOIN files f ON f.id = s.file"
)


_UNLINK = (
    "DELETE FROM linked WHERE file IN (SELECT s.file FROM edges e JOIN symbols s ON s.id = e.source WHERE e.target = ?)"
)
"""Files that used a symbol are linked no more when it goes."""


def encode_facts(facts: FileFacts) -> bytes:
    return _encode(facts)


def decode_facts(content: bytes) -> FileFacts:
    return _decode(content)


def read_files(sql: Sql) -> dict[str, FileRow]:
    """All files by path."""
    return {row[1]: _file(row) for row in sql.execute(f"SELECT {_FILE} FROM files")}


def find_file(sql: Sql, path: str) -> FileRow | None:
    row = sql.execute(f"SELECT {_FILE} FROM files WHERE path = ?", (path,)).fetchone()
    return _file(row) if row else None


def find_symbols(sql: Sql, where: str, values: Sequence[object]) -> list[SymbolRow]:
    """Symbols that a condition over `s` and `f` holds for, in its order."""
    found = sql.execute(f"SELECT {SYMBOL} {where}", values)
    return [SymbolRow(id, path, blob.hex(), *rest) for id, path, blob, *rest in found]


def find_facts(sql: Sql, blob: str, language: str) -> bytes | None:
    """The facts of a content, encoded."""
    return _find_kept(sql, "facts", blob, language)


def find_summary(sql: Sql, blob: str, language: str) -> bytes | None:
    """The summary of a content's flow, encoded; None or empty where it was not made yet."""
    return _find_kept(sql, "summary", blob, language)


def _find_kept(sql: Sql, column: str, blob: str, language: str) -> bytes | None:
    query = f"SELECT {column} FROM blobs WHERE blob = ? AND language = ?"
    row = sql.execute(query, (bytes.fromhex(blob), language)).fetchone()
    return row[0] if row else None


def write_summary(sql: Sql, blob: str, language: str, summary: bytes) -> None:
    sql.execute(
        "UPDATE blobs SET summary = ? WHERE blob = ? AND language = ?", (summary, bytes.fromhex(blob), language)
    )


def write_parsed(sql: Sql, blob: str, language: str, parsed: Parsed, seen: int) -> None:
    sql.execute(
        "INSERT INTO blobs VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seen = excluded.seen",
        (bytes.fromhex(blob), language, parsed.facts, parsed.summary, seen),
    )


def write_status(sql: Sql, path: str, content: Content) -> None:
    """The same content, looked at again."""
    sql.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ?, ino = ?, looked_ns = ? WHERE path = ?",
        (*content.status, content.looked_ns, path),
    )


def write_file(sql: Sql, content: Content, language: str, facts: FileFacts | None, left_out: str = "") -> int:
    """A file as it is now, with its symbols; returns its number. Without facts it is known by name only."""
    lines = facts.lines if facts else 0
    left_out = left_out or content.left_out
    values = (bytes.fromhex(content.blob), language, *content.status, content.looked_ns, lines, left_out)
    number = sql.execute(
        "INSERT INTO files (path, blob, language, size, mtime_ns, ctime_ns, ino, looked_ns, lines, left_out)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET blob = excluded.blob,"
        " language = excluded.language, size = excluded.size, mtime_ns = excluded.mtime_ns,"
        " ctime_ns = excluded.ctime_ns, ino = excluded.ino, looked_ns = excluded.looked_ns, lines = excluded.lines,"
        " left_out = excluded.left_out RETURNING id",
        (content.path, *values),
    ).fetchone()[0]
    _drop_edges(sql, number)
    _write_symbols(sql, number, [_itself(content.path, facts), *facts.symbols] if facts and not left_out else [])
    return int(number)


def drop_file(sql: Sql, path: str) -> None:
    """A file that is gone, with its symbols and their edges."""
    row = find_file(sql, path)
    if row is not None:
        _drop_edges(sql, row.id)
        _write_symbols(sql, row.id, [])
        sql.execute("DELETE FROM files WHERE id = ?", (row.id,))


def _drop_edges(sql: Sql, file: int) -> None:
    """What a file used before: of a new content, nothing is known until it is linked."""
    sql.execute("DELETE FROM edges WHERE source IN (SELECT id FROM symbols WHERE file = ?)", (file,))
    sql.execute("DELETE FROM linked WHERE file = ?", (file,))


def _write_symbols(sql: Sql, file: int, symbols: Iterable[Symbol]) -> None:
    """Put symbols in the place of those that a file had. One of the same name keeps its number."""
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


def _itself(path: str, facts: FileFacts) -> Symbol:
    """The file as a symbol."""
    return Symbol(FILE_KIND, path.rpartition("/")[2], "", 1, max(1, facts.lines), "", facts.doc)  # type: ignore[arg-type]  # only here


def _file(row: tuple[int, str, bytes, str, int, int, int, int, int, int, str]) -> FileRow:
    id, path, blob, language, size, mtime_ns, ctime_ns, ino, looked_ns, lines, left_out = row
    status = Status(size, mtime_ns, ctime_ns, ino)
    return FileRow(id, path, blob.hex(), language, status, looked_ns, lines, left_out)
