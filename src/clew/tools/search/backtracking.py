"""Regular expressions of ignore rules, rewritten so that the places of several stars are never tried in combination.

Of several stars, each but the last can as well take the first place that fits and keep it: what stands between two
stars of a name has one length, and what stands between two `**` has one number of names.
"""

from __future__ import annotations

import re

_FOLDERS = re.compile(r"\(\?:\.\+/\)\?|\(\?:/\.\+\)\?")
_SLASH = re.compile(r"(?<!\[\^)/")
_STAR = "[^/]*"
_BRACKETS = re.compile(r"\\.|\[(\^?)(\]?[^\]]*)\]", re.S)
_FOLDER_ABOVE = "(?P<ps_d>/)"
_END = f"(?:{_FOLDER_ABOVE}|$)"


def without_backtracking(expression: str) -> re.Pattern[str] | None:
    """An expression that matches the paths of a pathspec expression, and not those below them; None when there are
    none. Raises re.error when a range in it makes no sense."""
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
    """The expression of one name between slashes."""
    first, *others = [_BRACKETS.sub(_within_name, chunk) for chunk in expression.split(_STAR)]
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1] if chunk)
    return rf"{first}{between}(?>[^/]*{others[-1]}(?=/|\Z))"


def _within_name(found: re.Match[str]) -> str:
    """Letters in brackets, which never are a slash; their marks mean nothing more than themselves."""
    if found.group(2) is None or found.group() == "[^/]":
        return found.group()
    letters = re.sub(r"[\[&~|]", r"\\\g<0>", found.group(2))
    return f"(?!/)[{found.group(1)}{letters}]"
