"""Python of later versions in the words of the one that reads it: aliases and parameters of types, lazy imports and
bare lists of exceptions, which older parsers do not know. Every line stays where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_BRACKETS = 200
"""More than the parameters of types have."""

_PARAMETERS = r"\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*+\]"
_ALIAS = re.compile(rf"^([ \t]*+)type[ \t]++(\w++)[ \t]*+(?:{_PARAMETERS})?+[ \t]*+=(?!=)", re.MULTILINE)
_LAZY = re.compile(r"^([ \t]*+)lazy[ \t]++(?=import\b|from\b)", re.MULTILINE)
_EXCEPT = re.compile(r"^([ \t]*+except\*?)[ \t]++([\w.]++(?:[ \t]*+,[ \t]*+[\w.]++)++)[ \t]*+:", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*+(?:(?:async[ \t]++)?+def|class)[ \t]++\w++(?=[ \t]*+\[)", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]]")


def in_older_words(text: str) -> str:
    """The text as far as it can be said in older words; the same where there is nothing to say otherwise."""
    text = _EXCEPT.sub(r"\1 (\2):", _LAZY.sub(r"\1", text))
    return "".join(_without_parameters(_ALIAS.sub(r"\1\2 =", text)))


def _without_parameters(text: str) -> Iterator[str]:
    """The parts of a text without the parameters of types that functions and classes have. Line ends among these go to
    the arguments or bases."""
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
    """Where the brackets end that open next; None where they do not, or hold more than parameters do."""
    depth = 0
    for number, found in enumerate(_BRACKET.finditer(text, start)):
        depth += 1 if found[0] == "[" else -1
        if depth == 0:
            return found.end()
        if number > MOST_BRACKETS:
            return None
    return None
