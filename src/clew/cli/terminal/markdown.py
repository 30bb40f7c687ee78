"""Markdown for people: styled on a terminal, unchanged elsewhere."""

from __future__ import annotations

import re
import sys

from clew.cli.terminal.output import BLUE, BOLD, CYAN, DIM, clean, paint, wants_styles
from clew.lazy_pattern import lazy_pattern

_MARKED = lazy_pattern(
    r"\\(?P<plain>[*`<(\[\]#>+~=_-])|\*\*`(?P<route>[^`]+)`\*\*|(?P<bar>`+)(?P<code>.+?)(?<!`)(?P=bar)(?!`)"
    r"|\*\*(?P<bold>(?:[^*\\]|\\.)+)\*\*"
)
_ELEMENTS = (
    "a|abbr|b|blockquote|br|center|code|dd|details|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|kbd|li|ol|p|picture|pre|s|small"
    "|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|video"
)
_TAG_END = rf"<(?:!--.*?(?:-->|$)|/?(?:{_ELEMENTS})(?=[\s/>]|$)[^<>]*(?:>|$))"
_LINK_END = r"\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)"
_TAG = lazy_pattern(rf"\\?{_TAG_END}", re.IGNORECASE)
_ESCAPED_TAG = lazy_pattern(rf"\\{_TAG_END}", re.IGNORECASE)
_IMAGE = lazy_pattern(rf"!\[[^\[\]]*\]\\?{_LINK_END}")
_LINK = lazy_pattern(rf"\[([^\[\]]*)\]\\?{_LINK_END}")
_ESCAPED_LINK = lazy_pattern(rf"\[([^\[\]]*)\]\\{_LINK_END}")
_BEGIN = lazy_pattern(r"^\s*(?:#{1,6}\s+|[-*+]\s+|>\s*)")
_FENCE = lazy_pattern(r"`{3,}|~{3,}")


def print_markdown(text: str) -> None:
    """Print an answer, without control characters from its text."""
    safe = clean(text)
    if wants_styles(sys.stdout):
        safe = "\n".join(_styled(safe.split("\n")))
    sys.stdout.write(safe + "\n")


def plain_text(text: str) -> str:
    """One line of markdown as plain text: without markup, tags, addresses of links and control characters."""
    line = _ESCAPED_LINK.sub(r"\1", _ESCAPED_TAG.sub("", " ".join(text.split())))
    return _MARKED.sub(_unmark, clean(" ".join(line.split())))


def has_tags(text: str) -> bool:
    """Whether a line of markdown shows tags of HTML."""
    return _ESCAPED_TAG.search(text) is not None


def prose_of(line: str) -> str:
    """The words of a line of a document, without tags, images, addresses of links and the mark at its beginning."""
    bare = _LINK.sub(r"\1", _IMAGE.sub("", _TAG.sub(" ", _BEGIN.sub("", line))))
    return " ".join(bare.replace("**", "").split())


def _unmark(found: re.Match[str]) -> str:
    if found["bold"]:
        return _MARKED.sub(_unmark, found["bold"])
    return found["plain"] or found["route"] or _bared(found["code"])


def _styled(lines: list[str]) -> list[str]:
    fence, shown = "", []
    for line in lines:
        bar = _FENCE.match(line)
        if bar is not None and (not fence or line.strip() == fence):
            fence = "" if fence else bar.group()
            shown.append(paint(line, DIM))
        else:
            shown.append(line if fence else _styled_line(line))
    return shown


def _styled_line(line: str) -> str:
    if line.startswith("#"):
        return paint(line.lstrip("# "), BLUE)
    stripped = line.strip()
    if stripped.startswith("*") and stripped.endswith("*") and not stripped.startswith("**"):
        return line.replace(stripped, paint(stripped.strip("*"), DIM))
    return _MARKED.sub(_paint, line)


def _paint(found: re.Match[str]) -> str:
    """The terminal form of one piece of markdown. An escaped character stays as it is."""
    if found["plain"]:
        return found["plain"]
    if found["bold"]:
        return paint(_MARKED.sub(_paint, found["bold"]), BOLD)
    return paint(found["route"] or _bared(found["code"]), CYAN)


def _bared(code: str) -> str:
    """Code without the spaces that keep its backticks from those around it."""
    return code[1:-1] if code.startswith(" `") or code.endswith("` ") else code
