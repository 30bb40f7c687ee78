"""From the bytes of a file to what it says. Any bytes are welcome: what cannot be read is left out, and said."""

from __future__ import annotations

import time
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.descriptions import describe_comment, describe_docstring
from clew.knowledge.code.languages.detect import LANGUAGES, load_grammar
from clew.knowledge.code.languages.grammar import Grammar, build_grammar
from clew.knowledge.code.languages.nodes import child_at
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import CUT, FileFacts

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

MAX_BYTES = 2_000_000
MAX_MEAN_LINE = 2_000
"""Longer lines on average than anybody writes: the file was made by a machine."""

_PIECE = 2_048
_PROBE = 2_048
_PROBE_SECONDS = 0.1
"""A hundred times what the beginning of code takes."""
_UNPROBED = frozenset(("python",))
"""Languages without beginnings that are hard: nothing that was tried took their parsers longer than other text does."""

_EASY_BYTES, _UNPROBED_EASY_BYTES = 64_000, 160_000
_TRIED = ((1_024, 0.008), (2_048, 0.012), (4_096, 0.02))
"""How much is tried of each part of a content before all of it is read, and the seconds that may take: three times what
code takes and more. What is hard shows in little: with 4,096 bytes at once it can cost seconds and 500 MB."""

_SECONDS_A_BYTE = 2e-6
_SECONDS = 1.0
"""What a parser may take, in time of the processor: ten times what code takes and more. Text of another language
takes time with its length squared."""

_MODULES = {
    "python": "python",
    "javascript": "javascript",
    "typescript": "javascript",
    "tsx": "javascript",
    "go": "go",
    "rust": "rust",
    "java": "java",
    "c": "c",
    "cpp": "c",
    "ruby": "ruby",
}
_BEFORE_DOC = frozenset(("hash_bang_line", "package_clause", "package_declaration"))
_LOOKED_AT = 12
"""Nodes at the top of a file among which its description is looked for."""


def extract(content: bytes, language: str) -> FileFacts:
    """What `content` defines, imports and uses. Never raises: `error` says why nothing or not all could be read. Keys
    are to be masked before, as by `readable_text`: what is taken from the content is kept as it is."""
    lines = _count_lines(content)
    if language not in LANGUAGES:
        return FileFacts(language, lines=lines, error="no parser for this language")
    if len(content) > MAX_BYTES:
        return FileFacts(language, lines=lines, error=f"larger than {MAX_BYTES:,} bytes")
    if len(content) > 20 * MAX_MEAN_LINE and len(content) > MAX_MEAN_LINE * lines:
        return FileFacts(language, lines=lines, error="made by a machine: its lines are too long")
    source = _as_utf8(content)
    grammar = _grammar(language)
    tree, is_whole = _parse(source, grammar, is_probed=language not in _UNPROBED)
    walk = Walk(source, grammar.shape)
    root = tree.root_node
    walk.run(root, grammar.handlers)
    references = walk.references()
    if not is_whole:
        error = "too hard to parse, read in part"
    elif walk.is_cut:
        error = CUT
    else:
        error = "syntax errors, read in part" if root.has_error else ""
    return FileFacts(
        language, walk.symbols, walk.imports, references, _describe(source, root), _count_lines(source), error
    )


def is_hard(content: bytes, language: str) -> bool:
    """Whether reading a content may take long: it is large, or takes a parser long. A parser cannot be stopped."""
    if language not in LANGUAGES or len(content) > MAX_BYTES:
        return False
    if language in _UNPROBED:
        return len(content) > _UNPROBED_EASY_BYTES
    return len(content) > _EASY_BYTES or takes_long(content, language)


def takes_long(content: bytes, language: str) -> bool:
    """Whether a part of a content of a known language takes a parser much longer than code does."""
    from tree_sitter import Parser  # native code, for those who read code only

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
def _grammar(language: str) -> Grammar:
    module = import_module(f"clew.knowledge.code.languages.{_MODULES[language]}")
    return build_grammar(load_grammar(language), module.TABLE, module.SHAPE)


def _as_utf8(content: bytes) -> bytes:
    """The same lines in UTF-8, without a mark at the beginning and without NUL, which would end a file."""
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


def _parse(source: bytes, grammar: Grammar, *, is_probed: bool) -> tuple[Tree, bool]:
    """The tree, and whether it is of the whole source. A parser that takes too long is told that the file ends."""
    from tree_sitter import Parser  # native code, for those who read code only

    if len(source) > _PROBE and is_probed:
        # Where even the beginning is hard, the parser may not ask for more before it is too late.
        begun = time.thread_time()
        beginning = Parser(grammar.language).parse(source[:_PROBE])
        if time.thread_time() - begun > _PROBE_SECONDS:
            return beginning, False
    allowed = _SECONDS + _SECONDS_A_BYTE * len(source)
    deadline, earliest = time.thread_time() + allowed, time.monotonic() + allowed
    end = len(source)

    def read(offset: int, point: object) -> bytes:
        nonlocal end
        # The clock of the thread is slow: it is asked only when it can have run out.
        if offset < end and time.monotonic() > earliest and time.thread_time() > deadline:
            # Wherever it asks next: it may be trying other ways from further back, again and again.
            end = offset
        return source[offset : min(offset + _PIECE, end)]

    return Parser(grammar.language).parse(read), end == len(source)


def _describe(source: bytes, root: Node) -> str:
    """What stands at the top before anything else: not the licence, and not what is about the first definition."""
    block = (0, 0, -2)
    for index in range(min(root.child_count, _LOOKED_AT)):
        node = root.child(index)
        if node is None:
            break
        if "comment" in node.type:
            if node.start_point[0] > block[2] + 1 and (doc := _doc_of(source, block)):
                return doc
            start = block[0] if node.start_point[0] <= block[2] + 1 else node.start_byte
            block = (start, node.end_byte, node.end_point[0] - (node.end_point[1] == 0))
            continue
        return _describe_before(source, node, block)
    return _doc_of(source, block)


def _describe_before(source: bytes, node: Node, block: tuple[int, int, int]) -> str:
    string = child_at(node) if node.type == "expression_statement" else None
    if string is not None and string.type == "string" and string.start_byte == node.start_byte:
        return describe_docstring(source[string.start_byte : string.end_byte])
    stands_apart = node.start_point[0] > block[2] + 1
    is_about_file = stands_apart or node.type in _BEFORE_DOC or node.type.startswith(("import", "use_", "preproc"))
    return _doc_of(source, block) if is_about_file else ""


def _doc_of(source: bytes, block: tuple[int, int, int]) -> str:
    return describe_comment(source[block[0] : block[1]]) if block[1] else ""
