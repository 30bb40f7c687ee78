"""Parsing of Python source, including syntax that is newer than the running interpreter.

Type aliases, type parameters, lazy imports and bare lists of exceptions are rewritten into older syntax. Every line
keeps its number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

MAX_BRACKETS = 200
"""Brackets of one list of type parameters."""

_PARAMETERS = r"\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*+\]"
_ALIAS = re.compile(rf"^([ \t]*+)type[ \t]++(\w++)[ \t]*+(?:{_PARAMETERS})?+[ \t]*+=(?!=)", re.MULTILINE)
_LAZY = re.compile(r"^([ \t]*+)lazy[ \t]++(?=import\b|from\b)", re.MULTILINE)
_EXCEPT = re.compile(r"^([ \t]*+except\*?)[ \t]++([\w.]++(?:[ \t]*+,[ \t]*+[\w.]++)++)[ \t]*+:", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*+(?:(?:async[ \t]++)?+def|class)[ \t]++\w++(?=[ \t]*+\[)", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]]")


def parse_module(content: bytes) -> ast.Module:
    """The syntax tree of a file. Raises SyntaxError, ValueError, RecursionError and MemoryError."""
    try:
        return ast.parse(content)
    except SyntaxError as error:
        text = content.decode("utf-8-sig", errors="replace")
        older = downgrade_syntax(text)
        if older == text:
            raise
        try:
            return ast.parse(older)
        except SyntaxError:
            raise error from None


def parse_expression(text: str) -> ast.expr | None:
    """The syntax tree of an expression, or None if it is not one."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def downgrade_syntax(text: str) -> str:
    """Rewrite newer syntax into older syntax with the same lines; text without newer syntax is returned unchanged."""
    text = _EXCEPT.sub(r"\1 (\2):", _LAZY.sub(r"\1", text))
    return "".join(_drop_type_parameters(_ALIAS.sub(r"\1\2 =", text)))


def _drop_type_parameters(text: str) -> Iterator[str]:
    """The text without type parameters; their line ends move into the arguments or bases."""
    at = 0
    for found in _DEFINED.finditer(text):
        end = _end_of_brackets(text, found.end())
        if found.start() < at or end is None:
            continue
        has_arguments = text.startswith("(", end)
        lines = "\n" * text.count("\n", found.end(), end)
        yield text[at : found.end()]
        yield f"({lines}" if has_arguments else f"({lines})"
        at = end + has_arguments
    yield text[at:]


def _end_of_brackets(text: str, start: int) -> int | None:
    """The end of the next bracketed part, or None if it is unclosed or too long for type parameters."""
    depth = 0
    for number, found in enumerate(_BRACKET.finditer(text, start)):
        depth += 1 if found[0] == "[" else -1
        if depth == 0:
            return found.end()
        if number > MAX_BRACKETS:
            return None
    return None
