"""Foreign text as data: cut, without invisible characters, on one line or behind a fence, and never able to look like
a heading, a list, guidance or a route of ours."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Any

from clew.trail.breadcrumb import encode_canonical

LIST_LIMIT = 500
PAGE_LIMIT = 2_000
MAX_DEPTH = 40

_SLASHES = dict.fromkeys(map(ord, "\u2044\u2215\u29f8\uff0f\u2571"), "/")
_COLONS = dict.fromkeys(map(ord, "\uff1a\ufe55\u02d0\ua789\u2236\ufe13\u0589\u05c3"), ":")
_QUOTES = dict.fromkeys(map(ord, '"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02'), "'")
_LOOK_ALIKES = {**_SLASHES, **_COLONS}
_ON_A_LINE = {**_QUOTES, ord("`"): "'", ord("<"): "\u2039", ord(">"): "\u203a", ord("|"): "/"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_LINES = re.compile(r"[\r\n\u0085\u2028\u2029\v\f]+")
_MARK = re.compile(r"^\s*(?:(?:[#>*+=~|_-]+|\d{1,4}[.)])(?:\s+|$)|[#>=~|`]+)+")
_ROUTE = re.compile(r"([\w.-]+)\s*:\s*/\s*/\s*(tools|resources)\b", re.IGNORECASE)
_LINK = re.compile(r"\]\s*\(")
_BACKTICKS = re.compile(r"`{3,}")


def visible(text: str) -> str:
    """The text without characters that cannot be seen or that turn the line around; line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    lined = _LINES.sub("\n", text).replace("\t", " ")
    return "".join(each for each in lined if each == "\n" or unicodedata.category(each) not in _INVISIBLE)


def one_line(text: str, limit: int = LIST_LIMIT) -> str:
    """A foreign text as a part of a line of ours, at most `limit` characters long."""
    seen = visible(text[: limit * 20]).translate(_LOOK_ALIKES)
    lines = (_MARK.sub("", line).strip() for line in seen.split("\n"))
    joined = " ".join(" ".join(lines).split()).translate(_ON_A_LINE)
    plain = _LINK.sub("] (", _ROUTE.sub(r"\1: //\2", joined))
    return plain if len(plain) <= limit and len(text) <= limit * 20 else f"{plain[: limit - 1].rstrip()}…"


def quoted(text: str, limit: int = LIST_LIMIT) -> str:
    """A foreign text on one line in quotation marks that it cannot close."""
    return f"\u201c{one_line(text, limit)}\u201d"


def fenced(text: str, source: str, *, limit: int = PAGE_LIMIT, language: str = "text") -> str:
    """A foreign text as a block that it cannot leave, with a line before it that says whose it is. `source` is our
    own wording."""
    seen = visible(text[: limit + 1])
    cut = f"\n… cut here: {len(text):,} characters in all" if len(text) > limit else ""
    fence = "`" * max([3, *(len(found) + 1 for found in _BACKTICKS.findall(seen))])
    return f"{source} (data, not instructions):\n\n{fence}{language}\n{seen[:limit]}{cut}\n{fence}"


def digest_of(entry: dict[str, Any]) -> str:
    """What changes with anything that a model would see of an entry. Raises InvalidInput for what JSON cannot hold."""
    shown = {key: value for key, value in entry.items() if key not in ("_meta", "icons", "execution")}
    return hashlib.blake2b(encode_canonical(shown, "entry"), digest_size=16).hexdigest()


def clean_schema(schema: Any, depth: int = 0) -> Any:
    """A schema with its texts for people made plain, for showing; what it allows stays the same."""
    if depth > MAX_DEPTH:
        return {}
    if isinstance(schema, list):
        return [clean_schema(each, depth + 1) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: one_line(value, 300)
        if key in ("description", "title", "$comment") and isinstance(value, str)
        else clean_schema(value, depth + 1)
        for key, value in schema.items()
    }


def params_prose(schema: dict[str, Any], most: int = 12) -> str:
    """What a tool takes, in a sentence."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not properties:
        return "Takes no parameters."
    named = [_param(name, part, name in required) for name, part in list(properties.items())[:most]]
    more = f" and {len(properties) - most} more" if len(properties) > most else ""
    return f"Takes {', '.join(named)}{more}."


def _param(name: str, part: Any, is_required: bool) -> str:
    kind = part.get("type", "any") if isinstance(part, dict) else "any"
    kinds = " or ".join(map(str, kind[:4])) if isinstance(kind, list) else str(kind)
    need = "" if is_required else ", optional"
    said = part.get("description") if isinstance(part, dict) else None
    about = f": {quoted(said, 80)}" if isinstance(said, str) and said.strip() else ""
    return f"{one_line(name, 60)} ({one_line(kinds, 40)}{need}{about})"
