"""From the bytes of a file to its facts. Any bytes are valid input: `FileFacts.error` says what could not be read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from clew.knowledge.code.languages.descriptions import describe_comment, describe_docstring
from clew.knowledge.code.languages.detect import LANGUAGES, load_grammar
from clew.knowledge.code.languages.python_syntax import read_python
from clew.knowledge.code.languages.walker import ACTIONS, Handler, LanguageTable, Walker, last_row, named_at
from clew.knowledge.code.models import CUT, FileFacts

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query, Tree


MAX_TOKENS = 600_000
"""The number of tokens in two megabytes of code. Generated data files have more."""

_SHAPES = bytes(ord("a") if chr(code).isalnum() or code == ord("_") or code > 127 else ord(" ") for code in range(256))
_SIGNS = b"!%&()*+,-./:;<=>?@[]^{|}~"
MAX_BYTES = 2_000_000
MAX_MEAN_LINE = 2_000
"""Files with longer lines on average are generated."""

_PIECE = 2_048
_FIRST_SECONDS = 0.1
"""A hundred times the time of the first piece of code."""
_UNPROBED = frozenset(("python",))
"""Languages for which no input is known that slows the parser down."""

_EASY_BYTES, _UNPROBED_EASY_BYTES = 64_000, 160_000
_TRIED = ((1_024, 0.008), (2_048, 0.012), (4_096, 0.02))
"""Bytes of each part that `takes_long` tries, and the seconds allowed: three times the time of code, or more. The sizes
grow, because few bytes suffice to detect hard input, while 4,096 bytes of it at once can cost seconds and 500 MB."""

_SECONDS_A_BYTE = 2e-6
_SECONDS = 1.0
"""The parser's limit in processor time: ten times the time of code, or more. Text of another language takes quadratic
time."""

_MODULES = {"typescript": "javascript", "tsx": "javascript", "cpp": "c"}
_BEFORE_DOC = frozenset(("hash_bang_line", "package_clause", "package_declaration"))
_DOC_NODES = 12
"""Nodes at the top of a file that may hold its description."""


def has_more_tokens(content: bytes, limit: int = MAX_TOKENS) -> bool:
    """Whether a content has more words and signs than the limit. Tokens in strings and comments are counted too."""
    if len(content) <= limit:
        return False
    words = (b" " + content.translate(_SHAPES)).count(b" a")
    return words + len(content) - len(content.translate(None, _SIGNS)) > limit


def cut_tokens(content: bytes, limit: int = MAX_TOKENS) -> tuple[bytes, bool]:
    """The first lines of a content up to the limit, and whether there are more."""
    if not has_more_tokens(content, limit):
        return content, False
    low, high = limit, len(content)
    while high - low > limit // 100:
        middle = (low + high) // 2
        low, high = (low, middle) if has_more_tokens(content[:middle], limit) else (middle, high)
    return content[: content.rfind(b"\n", 0, low) + 1], True


class _Grammar(NamedTuple):
    language: Language
    query: Query
    table: LanguageTable
    handlers: Mapping[str, Handler]


def extract(content: bytes, language: str) -> FileFacts:
    """The symbols, imports and references of a file. Never raises. The caller masks keys first, as `readable_text`
    does: signatures and descriptions are copied from the content."""
    lines = _count_lines(content)
    if language not in LANGUAGES:
        return FileFacts(language, lines=lines, error="no parser for this language")
    if len(content) > MAX_BYTES:
        return FileFacts(language, lines=lines, error=f"larger than {MAX_BYTES:,} bytes")
    if len(content) > 20 * MAX_MEAN_LINE and len(content) > MAX_MEAN_LINE * lines:
        return FileFacts(language, lines=lines, error="made by a machine: its lines are too long")
    whole = _as_utf8(content)
    source, is_cut = cut_tokens(whole)
    facts = read_python(source) if language == "python" and not is_cut else None
    return facts or _by_tables(source, language, _count_lines(whole), is_cut=is_cut)


def _by_tables(source: bytes, language: str, lines: int, *, is_cut: bool) -> FileFacts:
    """The facts that the table of a language finds in a syntax tree of tree-sitter, which errors do not stop."""
    grammar = _grammar(language)
    tree, is_whole = _parse(source, language, grammar.language)
    walk = Walker(source, grammar.table)
    root = tree.root_node
    walk.run(root, grammar.query, grammar.handlers)
    references = walk.references()
    if not is_whole:
        error = "too hard to parse, read in part"
    elif is_cut or walk.is_cut:
        error = CUT
    else:
        error = "syntax errors, read in part" if root.has_error else ""
    return FileFacts(language, walk.symbols, walk.imports, references, _describe(source, root), lines, error)


def is_hard(content: bytes, language: str) -> bool:
    """Whether parsing may take long: the content is large, or a part of it is slow. A parser cannot be stopped."""
    if language not in LANGUAGES or len(content) > MAX_BYTES:
        return False
    if language in _UNPROBED:
        return len(content) > _UNPROBED_EASY_BYTES
    return len(content) > _EASY_BYTES or takes_long(content, language)


def takes_long(content: bytes, language: str) -> bool:
    """Whether a part of the content takes the parser much longer than code does."""
    from tree_sitter import Parser  # native code, loaded only to read code

    parser = Parser(_grammar(language).language)
    largest, _ = _TRIED[-1]
    parts = (content[at : at + largest] for at in range(0, len(content), largest))
    return any(_seconds(parser, part[:size]) > seconds for part in parts for size, seconds in _TRIED)


def _seconds(parser: Parser, part: bytes) -> float:
    begun = time.thread_time()
    parser.parse(part)
    return time.thread_time() - begun


def _count_lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


@cache
def _grammar(name: str) -> _Grammar:
    """A language with its query. Its own handlers come before the shared ones or replace them."""
    from tree_sitter import Query  # native code, loaded only to read code

    table: LanguageTable = import_module(f"clew.knowledge.code.languages.{_MODULES.get(name, name)}").TABLES[name]
    language = load_grammar(name)
    own = {capture: handler for capture, handler in table.handlers.items() if capture not in ACTIONS}
    return _Grammar(language, Query(language, table.query), table, {**own, **ACTIONS, **table.handlers})


def _as_utf8(content: bytes) -> bytes:
    """The lines of a file in UTF-8, without a byte order mark and without NUL, which would end the file."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.decode("utf-16", "replace").encode("utf-8", "replace")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        content = content.decode("latin-1").encode()
    if b"\0" in content:
        content = content.replace(b"\0", b" ")
    return content if b"\r" not in content or b"\n" in content else content.replace(b"\r", b"\n")


def _parse(source: bytes, name: str, language: Language) -> tuple[Tree, bool]:
    """The tree, and whether it covers the whole source. After the time limit the parser sees the end of the file."""
    from tree_sitter import Parser  # native code, loaded only to read code

    if name in _UNPROBED:
        return Parser(language).parse(source), True
    # if the first bytes are hard, the parser may not ask for more before it is too late
    begun = time.thread_time()
    beginning = Parser(language).parse(source[:_PIECE])
    if time.thread_time() - begun > _FIRST_SECONDS:
        return beginning, False
    allowed = _SECONDS + _SECONDS_A_BYTE * len(source)
    deadline, earliest = time.thread_time() + allowed, time.monotonic() + allowed
    end = len(source)

    def read(offset: int, point: object) -> bytes:
        nonlocal end
        # the clock of the thread is slow, so the other one decides when to ask it
        if offset < end and time.monotonic() > earliest and time.thread_time() > deadline:
            end = offset  # for all later offsets too: the parser may go back and try again and again
        return source[offset : min(offset + _PIECE, end)]

    return Parser(language).parse(read), end == len(source)


def _describe(source: bytes, root: Node) -> str:
    """The comment at the top of the file, unless it is a licence or belongs to the first definition."""
    start, end, last = 0, 0, -2
    for index in range(min(root.named_child_count, _DOC_NODES)):
        node = root.named_child(index)
        if node is None or "comment" not in node.type:
            is_apart = node is None or node.start_point[0] > last + 1
            return _describe_before(source, node, describe_comment(source[start:end]), is_apart=is_apart)
        if node.start_point[0] > last + 1:
            if doc := describe_comment(source[start:end]):
                return doc
            start = node.start_byte
        end, last = node.end_byte, last_row(node)
    return describe_comment(source[start:end])


def _describe_before(source: bytes, node: Node | None, comment: str, *, is_apart: bool) -> str:
    """The description, given the first node that is not a comment."""
    if node is None:
        return comment
    string = named_at(node) if node.type == "expression_statement" else None
    if string is not None and string.type == "string" and string.start_byte == node.start_byte:
        return describe_docstring(source[string.start_byte : string.end_byte])
    is_about_file = is_apart or node.type in _BEFORE_DOC or node.type.startswith(("import", "use_", "preproc"))
    return comment if is_about_file else ""
