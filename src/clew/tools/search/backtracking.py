"""Rewrites regular expressions of ignore rules so that several stars cause no exponential backtracking.

Each star except the last can keep its first match: the text between two stars of a name has a fixed length, and the
part between two `**` has a fixed number of names.
"""

from __future__ import annotations

import re

from clew.lazy_pattern import lazy_pattern

_FOLDERS = lazy_pattern(r"\(\?:\.\+/\)\?|\(\?:/\.\+\)\?")
_SLASH = lazy_pattern(r"(?<!\[\^)/")
_STAR = "[^/]*"
_BRACKETS = lazy_pattern(r"\\.|\[(\^?)(\]?[^\]]*)\]", re.S)
_FOLDER_ABOVE = "(?P<ps_d>/)"
_END = f"(?:{_FOLDER_ABOVE}|$)"


def without_backtracking(expression: str) -> re.Pattern[str] | None:
    """Return an expression that matches the paths of a pathspec expression, and not those below them; None if there are
    none. Raises re.error for an invalid range."""
    if expression.endswith(_FOLDER_ABOVE):
        return None
    if not expression.startswith("^"):
        return re.compile(expression, re.S)
    tail = r"\Z" if expression.endswith(_END) else ""
    body = expression.removeprefix("^").removesuffix(_END)
    leads = [_first_fit(found) for found in _FOLDERS.findall(body)]
    first, *others = ["/".join(map(_name, _SLASH.split(block))) for block in _FOLDERS.split(body)]
    steps = [lead + block for lead, block in zip(leads, others, strict=True)]
    kept = [rf"(?>{step}(?=/|\Z))" for step in steps[:-1]]
    return re.compile("".join((first, *kept, *steps[-1:], tail)), re.S)


def _first_fit(folders: str) -> str:
    return "(?:.+?/)??" if folders.endswith("/)?") else "(?:/.+?)??"


def _name(expression: str) -> str:
    """Return the expression of one name between slashes."""
    first, *others = [_BRACKETS.sub(_within_name, chunk) for chunk in expression.split(_STAR)]
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1] if chunk)
    return rf"{first}{between}(?>[^/]*{others[-1]}(?=/|\Z))"


def _within_name(found: re.Match[str]) -> str:
    """Return a character class that does not match a slash, with special characters escaped."""
    if found.group(2) is None or found.group() == "[^/]":
        return found.group()
    letters = re.sub(r"[\[&~|]", r"\\\g<0>", found.group(2))
    return f"(?!/)[{found.group(1)}{letters}]"
