"""Translates the globs of `.gitignore` to regular expressions that match the same paths as git.

Paths and globs have one character for each byte, as git compares bytes. Several stars cause no exponential
backtracking: each star except the last keeps its first match. This is safe, because the text between two stars of a
name has a fixed length, and the part between two `**` has a fixed number of slashes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SPECIAL = frozenset("*?[\\")
"""Characters that make a glob more than a literal text."""

_STAR, _FOLDERS, _ANYTHING = "[^/]*", "(?:.*?/)??", ".*?"
_RANGE = re.compile(r"-[^\]]", re.S)
_CLASS = re.compile(r"\[:([^\]]*):\]")
_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}


def translate(glob: str) -> re.Pattern[str] | None:
    """Return an expression for `match`, or None for a glob that matches nothing."""
    tokens = _tokens(glob)
    return None if tokens is None else re.compile(_join(tokens) + r"\Z", re.S)


def _tokens(glob: str) -> list[str] | None:
    """Return one expression for each character that the glob matches, and one for each star."""
    plain = next((at for at, letter in enumerate(glob) if letter in SPECIAL), len(glob))
    tokens = [re.escape(letter) for letter in glob[:plain]]
    at = plain
    while at < len(glob):
        letter = glob[at]
        if letter == "*":
            token, at = _star(glob, at, is_first=at == plain)
        elif letter == "[":
            found = _bracket(glob, at + 1)
            if found is None:
                return None
            token, at = found
        elif letter == "\\":
            if at + 1 == len(glob):
                return None
            token, at = re.escape(glob[at + 1]), at + 2
        else:
            token, at = "[^/]" if letter == "?" else re.escape(letter), at + 1
        tokens.append(token)
    return tokens


def _star(glob: str, at: int, *, is_first: bool) -> tuple[str, int]:
    """Read one or more stars. `**` matches slashes after a slash, and before a slash or the end. Git also accepts it
    after any literal text, as the first special character."""
    end = at
    while glob[end : end + 1] == "*":
        end += 1
    rest = glob[end:]
    if end - at == 1 or not (is_first or glob[at - 1] == "/") or not (not rest or rest.startswith(("/", "\\/"))):
        return _STAR, end
    return (_FOLDERS, end + 1) if rest.startswith("/") else (_ANYTHING, end)


def _bracket(glob: str, at: int) -> tuple[str, int] | None:
    """Read a set of characters; None if it does not end, or names an unknown class."""
    negation = "^" if glob[at : at + 1] in ("!", "^") else ""
    at += len(negation)
    ranges: list[str] = []
    previous, is_first = "", True
    while is_first or glob[at : at + 1] != "]":
        is_first = False
        if name := _CLASS.match(glob, at):
            if name[1] not in _CLASSES:
                return None
            ranges.append(_CLASSES[name[1]])
            previous, at = "", name.end()
            continue
        is_range = bool(previous) and _RANGE.match(glob, at) is not None
        at += is_range
        at += glob[at : at + 1] == "\\"
        letter = glob[at : at + 1]
        if not letter:
            return None
        if is_range:
            ranges += [f"{re.escape(previous)}-{re.escape(letter)}"] if previous <= letter else []
            previous = ""
        else:
            ranges.append(re.escape(letter))
            previous = letter
        at += 1
    if not ranges:
        return ("[^/]" if negation else "(?!)"), at + 1
    return f"(?!/)[{negation}{''.join(ranges)}]", at + 1


def _join(tokens: Sequence[str]) -> str:
    """Join expressions so that no star but the last tries a second match."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for token in tokens:
        if token in (_FOLDERS, _ANYTHING):
            blocks.append((token, []))
        else:
            blocks[-1][1].append(token)
    first, *others = [lead + "/".join(_name(name) for name in _split(block, "/")) for lead, block in blocks]
    return "".join((first, *(f"(?>{block})" for block in others[:-1]), *others[-1:]))


def _name(tokens: Sequence[str]) -> str:
    """Return the expression of one name between slashes."""
    first, *others = ["".join(chunk) for chunk in _split(tokens, _STAR)]
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1] if chunk)
    return rf"{first}{between}(?>[^/]*{others[-1]}(?=/|\Z))"


def _split(tokens: Sequence[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
