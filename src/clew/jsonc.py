"""JSON as people keep it in settings: comments and last commas are taken out before it is read."""

from __future__ import annotations

import re

_STRING = r'"(?:\\.|[^"\\\n])*"'
COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])")


def plain_json(text: str) -> str:
    """The same text as plain JSON: comments and last commas are blank, so that every place stays where it is."""
    given = f" {text[1:]}" if text.startswith("\ufeff") else text
    blank = COMMENT.sub(lambda found: found.group(1) or " " * len(found.group()), given)
    return _LAST_COMMA.sub(lambda found: found.group(1) or " ", blank)
