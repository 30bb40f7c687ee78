"""Files cut into passages: a function, method or class with its own lines, a run of module-level code, or a section of
a document. A passage is the unit that search ranks and answers cite.

The result depends on the content and its format alone, so files with equal content share it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter

import msgspec

from clew.catalog.formats.restructured_text import find_titles
from clew.knowledge.code.models import FileFacts, Symbol
from clew.knowledge.code.search.words import MAX_KNOWN, MAX_WORD, TERM_BYTES, pack_terms
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.readable import find_words
from clew.trail.search.text import split_word

FORMAT = 4
"""The version of the packed form. Contents in another version are packed again."""
MAX_PASSAGES = 4_000
"""Symbols beyond this number belong to the passage around them."""
MAX_ROWS = 30_000
"""The most passages of one file."""
MAX_TEXT = 400_000
MAX_EMBEDDED, MAX_LEADING = 700, 100
SECTION_LINES = 40
"""A longer section, or a longer run of module-level code, is cut at a blank line."""
FIELDS = 3
"""The counts of a term: in the name, in comments, strings and prose, in code."""
MARKDOWN, RST = "markdown", "rst"
BETWEEN = " › "

SYMBOL_KINDS = ("function", "method", "class", "interface")
KINDS = (*SYMBOL_KINDS, "module", "section", "text")
"""Kinds of passages; `text` is a file in no known format, such as configuration."""

_FORMATS = {"md": MARKDOWN, "markdown": MARKDOWN, "mdx": MARKDOWN, "rst": RST, "txt": RST, "news": RST}
_PLAIN_NAMES = frozenset(("readme", "changes", "changelog", "history", "news", "todo", "contributing", "install"))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode
_CLOSED = frozenset(("function", "method"))
_LEADING = ("//", "/*", "*", "#", "@", "--")
_QUOTED = r'"(?>(?:[^"\\\n]++|\\.)*)"?|\'(?>(?:[^\'\\\n]++|\\.)*)\'?'
"""An unterminated string ends at the end of its line, so that no character in it starts a comment."""
_HASHES = lazy_pattern(rf'("""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)|#[^\n]*|{_QUOTED})')
_SLASHES = lazy_pattern(rf"(/\*[\s\S]*?(?:\*/|\Z)|//[^\n]*|{_QUOTED}|`[^`]*`)")
_RUST = lazy_pattern(r'(/\*[\s\S]*?(?:\*/|\Z)|//[^\n]*|\'\\?"\'|"(?>(?:[^"\\]++|\\[\s\S])*)"?)')
_COMMENTS = {"python": _HASHES, "ruby": _HASHES, "rust": _RUST}
_FENCE = lazy_pattern(r" {0,3}(```+|~~~+)")
_HEADING = lazy_pattern(r" {0,3}(#{1,6})[ \t]+(\S.*?)[ \t#]*$")
_UNDERLINE = lazy_pattern(r" {0,3}(=+|-{2,})[ \t]*$")


class Packed(msgspec.Struct, array_like=True, frozen=True):
    """The passages of a content. `terms`, `rows` and `counts` are parallel arrays: a 32-bit term, the 16-bit number of
    its passage, and one byte for its count in each field. `lengths` has 32 bits a passage. `owners` are enclosing
    names: classes of a method, headings above a section. `kinds` are indexes into KINDS."""

    names: list[str]
    owners: list[str]
    kinds: bytes
    starts: list[int]
    ends: list[int]
    lengths: bytes
    terms: bytes
    rows: bytes
    counts: bytes


class Passage(msgspec.Struct):
    """One passage while its file is being cut: lines count from 1, the last one included."""

    kind: str
    start: int
    end: int
    name: str = ""
    owner: str = ""
    about: str = ""
    defined: str = ""
    lines: list[str] = msgspec.field(default_factory=list)


def format_of(path: str) -> str:
    """The format of a document by its name; empty for a file that is none."""
    name, _, ending = path.rpartition("/")[2].lower().rpartition(".")
    return _FORMATS.get(ending, "") if name else RST if ending in _PLAIN_NAMES else ""


def encode_text(facts: FileFacts, text: str) -> tuple[bytes, bytes]:
    """The stored passages of a content, and their texts for an embedder. Pure: may run in another process."""
    packed, texts = pack(facts, text)
    return _encode(packed), texts


def pack(facts: FileFacts, text: str) -> tuple[Packed, bytes]:
    """The passages of a content, and the texts that `read_texts` returns. Never raises."""
    passages = cut(facts, text[:MAX_TEXT].encode("utf-8", "replace").decode())
    words: list[bytes] = []
    texts: list[str] = []
    for each in passages:
        body = "\n".join(each.lines)
        code, prose = split_comments(body, facts.language if each.kind not in ("section", "text") else "")
        words.extend(pack_terms(find_words(part)) for part in (each.defined, f"{each.owner} {prose}", code))
        texts.append(_embedded(each, body))
    return _pack(passages, words), zlib.compress(_encode(texts), 1)


def read_texts(texts: bytes) -> list[str]:
    """A text for each passage, to be embedded."""
    return _decode(zlib.decompress(texts))


def cut(facts: FileFacts, text: str) -> list[Passage]:
    """The passages of a content in the order of their lines; one for an empty file."""
    lines = text.split("\n")
    if facts.language == MARKDOWN:
        found = list(_sections(lines, list(_markdown_headings(lines)), "section"))
    elif facts.language == RST:
        found = list(_sections(lines, [(each.level, each.start, each.name) for each in find_titles(lines)], "section"))
    elif not facts.language:
        found = list(_sections(lines, [], "text"))
    else:
        found = _cut_code(facts, lines)
    return found[:MAX_ROWS] or [Passage("text", 1, max(1, len(lines)))]


def _cut_code(facts: FileFacts, lines: Sequence[str]) -> list[Passage]:
    """A passage for each symbol, outermost functions only, and passages for the lines between them."""
    found: list[Passage] = []
    owner = [-1] * len(lines)
    closed_until = 0
    for symbol in sorted(facts.symbols, key=attrgetter("line_start")):
        if symbol.kind not in SYMBOL_KINDS or symbol.line_start <= closed_until or len(found) >= MAX_PASSAGES:
            continue
        first, last = _first_line(lines, symbol.line_start), min(symbol.line_end, len(lines))
        owner[first - 1 : last] = [len(found)] * (last - first + 1)
        found.append(_symbol_passage(symbol, len(lines)))
        closed_until = last if symbol.kind in _CLOSED else closed_until
    for line, at in zip(lines, owner, strict=True):
        if at >= 0:
            found[at].lines.append(line)
    between = _cut_between(facts, lines, [at < 0 for at in owner])
    return sorted((*found, *between), key=attrgetter("start"))


def _symbol_passage(symbol: Symbol, lines: int) -> Passage:
    owner, _, _ = symbol.qualname.rpartition(".")
    start = min(max(symbol.line_start, 1), lines)
    return Passage(
        symbol.kind,
        start,
        max(start, min(symbol.line_end, lines)),
        name=symbol.qualname,
        owner=owner.replace(".", " "),
        about=symbol.doc,
        defined=symbol.name,
    )


def _cut_between(facts: FileFacts, lines: Sequence[str], is_free: Sequence[bool]) -> Iterator[Passage]:
    """Runs of lines outside of all symbols, with the names that they define."""
    names = [
        (each.line_start, each.name)
        for each in facts.symbols
        if each.kind not in SYMBOL_KINDS and "." not in each.qualname
    ]
    for is_between, run in groupby(range(len(lines)), is_free.__getitem__):
        span = list(run)
        for first, last in _cut_run(lines, span[0], span[-1] + 1) if is_between else ():
            defined = " ".join(name for line, name in names if first < line <= last)
            about = facts.doc if first == 0 else ""
            yield Passage("module", first + 1, last, about=about, defined=defined, lines=list(lines[first:last]))


def _sections(lines: Sequence[str], headings: Sequence[tuple[int, int, str]], kind: str) -> Iterator[Passage]:
    """A passage for each (level, line, name) heading and for the lines before the first; several for a long section."""
    above: list[tuple[int, str]] = []
    starts = [0, *(line for _, line, _ in headings), len(lines)]
    for at, (start, end) in enumerate(pairwise(starts)):
        if at:
            level, _, name = headings[at - 1]
            while above and above[-1][0] >= level:
                above.pop()
            above.append((level, name))
        names = [name for _, name in above]
        for first, last in _cut_run(lines, start, end):
            yield Passage(
                kind,
                first + 1,
                last,
                name=names[-1] if names else "",
                owner=BETWEEN.join(names[:-1]),
                defined=names[-1] if names else "",
                lines=list(lines[first:last]),
            )


def _cut_run(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of at most SECTION_LINES lines, cut at a blank line if possible. Spans without content are left out."""
    while start < end:
        stop = min(start + SECTION_LINES, end)
        if stop < end:
            blank = next((at for at in range(stop, start + SECTION_LINES // 2, -1) if not lines[at - 1].strip()), stop)
            stop = blank
        first = next((at for at in range(start, stop) if lines[at].strip()), stop)
        last = next((at for at in range(stop, first, -1) if lines[at - 1].strip()), first)
        if any(character.isalnum() for line in lines[first:last] for character in line):
            yield first, last
        start = stop


def _markdown_headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Headings outside of fenced code: `# …`, and lines that are underlined."""
    fence = ""
    for at, line in enumerate(lines):
        found = _FENCE.match(line)
        if found is not None:
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        elif not fence and (heading := _HEADING.match(line[:300])):
            yield len(heading[1]), at, heading[2]
        elif not fence and at and _UNDERLINE.match(line) and _may_be_title(lines, at - 1):
            yield 1 if line.lstrip().startswith("=") else 2, at - 1, lines[at - 1].strip()[:200]


def _may_be_title(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    is_alone = at == 0 or not lines[at - 1].strip()
    return is_alone and bool(line.strip()) and not line.startswith(("    ", "\t", ">", "-", "*", "|"))


def _first_line(lines: Sequence[str], line: int) -> int:
    """The first of the comments and decorators right above a symbol."""
    highest = max(line - MAX_LEADING, 1)
    while highest < line <= len(lines) and lines[line - 2].lstrip().startswith(_LEADING):
        line -= 1
    return max(line, 1)


def split_comments(text: str, language: str) -> tuple[str, str]:
    """The code of a text, and its comments and strings. Text in no language is prose."""
    if not language:
        return "", text
    pieces = _COMMENTS.get(language, _SLASHES).split(text)
    return " ".join(pieces[::2]), " ".join(pieces[1::2])


def _embedded(passage: Passage, body: str) -> str:
    """The text that is embedded for a passage: its names, split into words, then the beginning of its body."""
    name = _spell(f"{passage.owner} {passage.defined}")
    if passage.kind in ("section", "text"):
        return f"{name}. {body[:MAX_EMBEDDED]}"
    return f"{name}. {passage.about} {_spell(body[:MAX_EMBEDDED])}"


def _spell(text: str) -> str:
    """The words of a text, with identifiers split into their parts."""
    return " ".join(filter(None, map(_spelled.__getitem__, find_words(text))))


class _SpelledWords(dict[str, str]):
    """A cache of words in their parts. Cleared when it is full."""

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_KNOWN:
            self.clear()
        found = self[word] = " ".join(split_word(word[:MAX_WORD]))
        return found


_spelled = _SpelledWords()


def _pack(passages: Sequence[Passage], fields: Sequence[bytes]) -> Packed:
    """Count equal terms of a passage, each field by itself."""
    import numpy as np  # only building the index needs it

    sizes = np.array([len(each) // TERM_BYTES for each in fields], np.int64).reshape(-1, FIELDS)
    words = np.frombuffer(b"".join(fields), np.uint32)
    place = np.repeat(np.arange(sizes.size), sizes.ravel())
    keys, row = np.unique((place // FIELDS).astype(np.uint64) << np.uint64(32) | words, return_inverse=True)
    counts = np.bincount(row * FIELDS + place % FIELDS, minlength=len(keys) * FIELDS)
    return Packed(
        names=[each.name for each in passages],
        owners=[each.owner if each.kind == "section" else "" for each in passages],
        kinds=bytes(KINDS.index(each.kind) for each in passages),
        starts=[each.start for each in passages],
        ends=[each.end for each in passages],
        lengths=sizes[:, 1:].sum(axis=1).astype("<u4").tobytes(),
        terms=(keys & np.uint64(0xFFFF_FFFF)).astype("<u4").tobytes(),
        rows=(keys >> np.uint64(32)).astype("<u2").tobytes(),
        counts=np.minimum(counts, 255).astype(np.uint8).tobytes(),
    )
