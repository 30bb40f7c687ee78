"""Signatures on one line, and descriptions of one paragraph."""

from __future__ import annotations

import re

from clew.knowledge.lines import cut
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_secrets

MAX_DOC = 300
MAX_SIGNATURE = 300
_READ_BYTES = 3_000
"""Bytes of a comment or a definition's head that are read."""

_QUOTES = lazy_pattern(r"[rRuUbBfF]{0,2}(\"\"\"|'''|\"|')")
_OPENING = lazy_pattern(r"^\s*(?:/\*+!?|=begin\b)")
_CLOSING = lazy_pattern(r"(?:\*+/|=end\b)\s*$")
_MARGIN = lazy_pattern(r"^[ \t]*(?://+[!/]?|#+[:!|]?(?!\w)|\*+(?!\w))?[ \t]?", re.MULTILINE)
_RULE = lazy_pattern(r"^[\W_]+$")
_PARAGRAPH = lazy_pattern(r"\n[ \t]*\n")
_TAG = lazy_pattern(
    r"\s(?=@(?:param|return|returns|throws|see|since|author|type|example)\b)|\n[ \t]*(?=:param|:return|>>> )"
)
_PRAGMA = lazy_pattern(
    r"copyright|\(c\)\s|licen[sc]e|spdx|all rights reserved|@generated|eslint|prettier|noqa|pylint|coding[:=]|^#!"
    r"|rubocop|frozen_string_literal|clang-format|nolint|^\W*go:build|^\W*\+build|type:\s*ignore|@ts-|use strict",
    re.IGNORECASE,
)
_ANNOTATIONS = lazy_pattern(r"^(?:@(?!interface\b)[\w.]+(?:\((?:[^()\"']|\"[^\"]*\"|'[^']*')*\))?\s+)+")
_LINE_COMMENT = lazy_pattern(rb"(?:^|[ \t,({])(?:#(?![\w\[{])|//)[^\n]*", re.MULTILINE)
_TIDY = (
    (("( ", "[ "), lazy_pattern(r"([(\[]) "), r"\1"),
    ((" )", " ]"), lazy_pattern(r",? ([)\]])"), r"\1"),
)
_SECRET_NAME = lazy_pattern(r"(?i)key|secret|token|passw|pwd|passphrase|cookie|authorization")


def describe_comment(raw: bytes) -> str:
    """The first paragraph of a comment on one line; empty for licences, pragmas and rules."""
    text = raw[:_READ_BYTES].decode("utf-8", "replace")
    text = _CLOSING.sub("", _OPENING.sub("", text))
    return "" if _PRAGMA.search(text[:400]) else _first_paragraph(_MARGIN.sub("", text))


def describe_docstring(raw: bytes) -> str:
    """The first paragraph of a Python string literal on one line."""
    text = raw[:_READ_BYTES].decode("utf-8", "replace")
    found = _QUOTES.match(text)
    return _first_paragraph(text[found.end() :].removesuffix(found[1]) if found else text)


def _first_paragraph(text: str) -> str:
    for paragraph in _PARAGRAPH.split(text.replace("\r", "")):
        line = " ".join(each for each in _TAG.split(paragraph, 1)[0].split() if not _is_rule(each))
        if line and not _RULE.match(line):
            return cut(line, MAX_DOC)
    return ""


def _is_rule(word: str) -> bool:
    return len(word) > 3 and not word[0].isalnum() and _RULE.match(word) is not None


def sign(raw: bytes) -> str:
    """The head of a definition on one line, without comments and annotations."""
    raw = raw[:_READ_BYTES]
    if b"\n" in raw and (b"#" in raw or b"//" in raw):
        raw = _LINE_COMMENT.sub(b"", raw)
    line = " ".join(raw.decode("utf-8", "replace").split())
    if line.startswith("@"):
        line = _ANNOTATIONS.sub("", line)
    line = line.rstrip(" :{;")
    for marks, found, tidy in _TIDY:
        if any(mark in line for mark in marks):
            line = found.sub(tidy, line)
    return cut(line, MAX_SIGNATURE)


def sign_value(raw: bytes) -> str:
    """As `sign`, for a value, which may be a password."""
    line = sign(raw)
    return mask_secrets(line) if _SECRET_NAME.search(line) and ("'" in line or '"' in line) else line
