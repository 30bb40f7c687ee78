"""Describe a file of code: by the comment at its top, else by its definitions. Only comment and definition marks show
languages apart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.catalog.formats.prose import MAX_DESCRIPTION, cut_sentence, one_line
from clew.lazy_pattern import lazy_pattern

LOOKED_AT = 20_000
"""The number of characters of a file that are examined."""

MAX_NAMES = 20

_PREAMBLE = lazy_pattern(
    r"#!.*|#.*coding[:=].*|<\?(?:php|xml).*|<!doctype.*|['\"]use strict['\"];?|package\s+[\w.]+;?", re.I
)
_BLOCK = lazy_pattern(
    r"""[rRuU]?(?P<quote>\"\"\"|''')(?P<doc>.*?)(?P=quote)|/\*+!?(?P<slashed>.*?)\*+/|<!--(?P<markup>.*?)-->"""
    r"""|\(\*(?P<ml>.*?)\*\)|\{-\|?(?P<haskell>.*?)-\}|--\[\[(?P<lua>.*?)\]\]""",
    re.DOTALL,
)
_LINES = lazy_pattern(
    r"(?:(?://+!?|#+(?!\[|\s*(?:include|define|if|pragma|import|ifndef)\b)|--+|;+|%+)[^\n]*(?:\n[ \t]*|\Z))+"
)
_MARGIN = lazy_pattern(r"^[ \t]*(?://+!?|#+|--+|;+|%+|\*+)?[ \t]?", re.MULTILINE)
_LICENSE = lazy_pattern(
    r"copyright|\(c\)|licen[sc]e|spdx|all rights reserved|@generated|eslint|prettier|noqa|pylint", re.I
)
_WORDS = lazy_pattern(r"\w[^\n]*\w[^\n]*\w", re.ASCII | re.DOTALL)
_DEFINED = lazy_pattern(
    r"^(?:(?:export|default|declare|pub(?:\([^)\n]*\))?|public|private|protected|internal|static|final|abstract|sealed"
    r"|async|unsafe|extern|override|open|data|inline|virtual|local|create|or|replace|temporary|materialized)\s+)*"
    r"(?:def|class|fn|func|fun|function|interface|struct|enum|trait|type|protocol|module|namespace|object|record|message"
    r"|service|resource|table|view|procedure|trigger|impl|macro_rules!|const|let|var|val)\s+"
    r"(?:if\s+not\s+exists\s+)?(?:\([^)\n]*\)\s*)?[\"'`]?(?P<name>[A-Za-z_$][\w$.-]*)",
    re.MULTILINE | re.IGNORECASE,
)
_TARGET = lazy_pattern(r"^(?P<name>[A-Za-z_][\w.-]*)(?:\s*\(\)\s*\{|:(?!=))", re.MULTILINE)
_IMPORT = lazy_pattern(r"^[ \t]*(?:import|from|use|using|require|#?\s*include|package|load)\b[^\n]*$", re.MULTILINE)


def describe_code(text: str) -> str:
    """Describe a file in one line, empty for an empty file. The line is the docstring or comment at the top, unless it
    is about the license. Without one, it lists the defined names. Without names, it is the beginning of the file
    without its imports."""
    text = text[:LOOKED_AT]
    for comment in _leading_comments(text):
        if _WORDS.search(comment) and not _LICENSE.search(comment[:200]):
            return _first_paragraph(comment)
    if names := _defined_names(text):
        return f"defines {', '.join(names)}"
    return one_line(_IMPORT.sub("", text)[: 2 * MAX_DESCRIPTION])


def _leading_comments(text: str) -> Iterator[str]:
    """The comments before anything else, a docstring as well. A comment after the imports does not describe the
    file."""
    at = 0
    while True:
        at += len(text[at:]) - len(text[at:].lstrip())
        if found := _BLOCK.match(text, at):
            yield next(group for name, group in found.groupdict().items() if name != "quote" and group is not None)
        elif found := _PREAMBLE.match(text, at) or _LINES.match(text, at):
            yield found[0] if _PREAMBLE.match(text, at) is None else ""
        if found is None or found.end() == at:
            return
        at = found.end()


def _first_paragraph(comment: str) -> str:
    plain = _MARGIN.sub("", comment).strip()
    paragraphs = (one_line(each) for each in re.split(r"\n[ \t]*\n", plain))
    return cut_sentence(next((each for each in paragraphs if _WORDS.search(each)), ""))


def _defined_names(text: str) -> list[str]:
    found = dict.fromkeys(match["name"] for match in _DEFINED.finditer(text))
    found |= {} if found else dict.fromkeys(match["name"] for match in _TARGET.finditer(text))
    return [name[:60] for name in found][:MAX_NAMES]
