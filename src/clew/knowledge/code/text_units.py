"""A file cut into units, and the terms of each: one unit for every function, method and class with the lines that
are its own, and the first for all that lies outside of them. Depends on the content alone, not on its path."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from operator import attrgetter

import msgspec
import numpy as np

from clew.knowledge.code.models import FileFacts, Symbol
from clew.knowledge.code.words import TERM_BYTES, pack_terms
from clew.trail.readable import find_words
from clew.trail.text import split_text

FORMAT = 2
"""Changes whenever what is packed does: what was packed by another number is made anew."""
MAX_UNITS = 4_000
"""What a file defines beyond these counts for the file as a whole."""
MAX_TEXT = 400_000
MAX_DOC, MAX_SOURCE, MAX_LEADING = 500, 1_000, 100
FIELDS = 3
"""Counts of a term: in the names that are defined, in comments and strings, in code."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, str]]).decode
_OPENING = frozenset(("function", "method", "class", "interface"))
_CLOSED = frozenset(("function", "method"))
_LEADING = ("//", "/*", "*", "#", "@", "--")
_QUOTED = r'"(?:[^"\\\n]++|\\.)*+"?|\'(?:[^\'\\\n]++|\\.)*+\'?'
"""One that does not end goes on to the end of its line, so that no sign in it is taken for the beginning of another."""
_HASHES = re.compile(rf'("""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)|#[^\n]*|{_QUOTED})')
_SLASHES = re.compile(rf"(/\*[\s\S]*?(?:\*/|\Z)|//[^\n]*|{_QUOTED}|`[^`]*`)")
_RUST = re.compile(r'(/\*[\s\S]*?(?:\*/|\Z)|//[^\n]*|\'\\?"\'|"(?:[^"\\]++|\\[\s\S])*+"?)')
_PROSE = {"python": _HASHES, "ruby": _HASHES, "rust": _RUST}


class PackedText(msgspec.Struct, array_like=True, frozen=True):
    """The units of a content, packed. `terms`, `units` and `counts` run side by side: a 32-bit term, the 16-bit number
    of its unit, its count in each field as a byte. `lengths` has 32 bits a unit."""

    names: list[str]
    lines: list[int]
    lengths: bytes
    terms: bytes
    units: bytes
    counts: bytes


class Unit(msgspec.Struct):
    """One part of a file while it is being read: its symbol, if any, and its pieces of text."""

    name: str = ""
    line: int = 1
    about: str = ""
    defined: str = ""
    text: str = ""
    pieces: list[str] = msgspec.field(default_factory=list)


def pack_text(facts: FileFacts, text: str) -> tuple[PackedText, bytes]:
    """The units of a file's text, the one of the file first, and what `read_texts` reads. Never raises, whatever the
    facts say."""
    units = cut_units(facts, text[:MAX_TEXT].encode("utf-8", "replace").decode())
    words: list[bytes] = []
    for unit in units:
        unit.text = "\n".join(unit.pieces)
        code, prose = split_prose(unit.text, facts.language)
        words.extend(pack_terms(find_words(part)) for part in (unit.defined, prose, code))
    sizes = np.array([len(each) // TERM_BYTES for each in words], np.int64).reshape(-1, FIELDS)
    packed = _pack(units, np.frombuffer(b"".join(words), np.uint32), sizes)
    return packed, _pack_texts(units)


def _pack(units: Sequence[Unit], words: np.ndarray, sizes: np.ndarray) -> PackedText:
    """Count equal terms of a unit, each field for itself."""
    place = np.repeat(np.arange(sizes.size), sizes.ravel())
    keys, row = np.unique((place // FIELDS).astype(np.uint64) << np.uint64(32) | words, return_inverse=True)
    counts = np.bincount(row * FIELDS + place % FIELDS, minlength=len(keys) * FIELDS)
    return PackedText(
        names=[unit.name for unit in units],
        lines=[unit.line for unit in units],
        lengths=sizes[:, 1:].sum(axis=1).astype("<u4").tobytes(),
        terms=(keys & np.uint64(0xFFFF_FFFF)).astype("<u4").tobytes(),
        units=(keys >> np.uint64(32)).astype("<u2").tobytes(),
        counts=np.minimum(counts, 255).astype(np.uint8).tobytes(),
    )


def _pack_texts(units: Sequence[Unit]) -> bytes:
    """What each symbol says of itself, and the beginning of its source."""
    texts = [(unit.about, f"{unit.about.partition('.')[0]}. {unit.text[:MAX_SOURCE]}") for unit in units[1:]]
    return zlib.compress(_encode(texts), 1)


def read_texts(texts: bytes, *, whole: bool) -> list[str]:
    """A text for each unit to be embedded: its name and description, or the beginning of its source. Empty for the
    file itself."""
    return ["", *(pair[whole] for pair in _decode(zlib.decompress(texts)))]


def cut_units(facts: FileFacts, text: str) -> list[Unit]:
    """The units in the order of their lines, each with its own lines only; of functions the outermost counts."""
    lines = text.split("\n")
    units = [Unit()]
    owner = [0] * len(lines)
    closed_until = 0
    for symbol in sorted(facts.symbols, key=attrgetter("line_start")):
        if symbol.kind not in _OPENING or symbol.line_start <= closed_until or len(units) >= MAX_UNITS:
            continue
        first, last = _first_line(lines, symbol.line_start), min(symbol.line_end, len(lines))
        owner[first - 1 : last] = [len(units)] * (last - first + 1)
        units.append(_unit_of(symbol))
        closed_until = last if symbol.kind in _CLOSED else closed_until
    for line, unit in zip(lines, owner, strict=True):
        units[unit].pieces.append(line)
    names = (symbol.name for symbol in facts.symbols if symbol.kind not in _OPENING and "." not in symbol.qualname)
    units[0].defined = " ".join(names)
    return units


def _unit_of(symbol: Symbol) -> Unit:
    about = f"{' '.join(split_text(symbol.name).parts)}. {symbol.doc}"
    return Unit(name=symbol.qualname, line=symbol.line_start, about=about[:MAX_DOC], defined=symbol.name)


def _first_line(lines: Sequence[str], line: int) -> int:
    """Where the comments and decorators begin that stand right above a symbol."""
    highest = max(line - MAX_LEADING, 1)
    while highest < line <= len(lines) and lines[line - 2].lstrip().startswith(_LEADING):
        line -= 1
    return max(line, 1)


def split_prose(text: str, language: str) -> tuple[str, str]:
    """The code of a piece of text, and its comments and strings. What is in no language is prose."""
    if not language or language == "text":
        return "", text
    pieces = _PROSE.get(language, _SLASHES).split(text)
    return " ".join(pieces[::2]), " ".join(pieces[1::2])
