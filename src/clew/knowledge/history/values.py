"""Normal forms of names and values, so that different spellings compare equal: numbers, versions, quotes, yes and
no."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from packaging.utils import canonicalize_version

from clew.knowledge.git.tags import version_key

MAX_VALUE = 2_000

_QUOTES = "\"'`“”‘’"
_MARKS = re.compile(r"[`'\"*]+")
_CODE = re.compile(r"[./#:()]")
_SPACES = re.compile(r"\s+")
_AROUND = re.compile(r"(?:(?<!\s)\s++)?([,()\[\]{}:=<>|])\s*+")
_WORDS = {
    **dict.fromkeys(("none", "null", "nil", "undefined", "not set", "unset"), "none"),
    **dict.fromkeys(("true", "yes", "on", "enabled"), "true"),
    **dict.fromkeys(("false", "no", "off", "disabled"), "false"),
}
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d+)(?:[eE][-+]?\d{1,4})?|[-+]?\d{1,3}(?:,\d{3})+")
_LEAST = re.compile(
    r"(?:>=|≥|=>|at least|min(?:imum)?\.?(?: version)?|from)\s*v?(?P<a>\d[\w.]*)"
    r"|v?(?P<b>\d[\w.]*?)\s*(?:\+|(?:and|or) (?:newer|later|higher|above|up|greater|upwards?))",
    re.IGNORECASE,
)
_BOUND = re.compile(r"(>=|<=|==|~=|!=|\^|~|>|<)\s*v?(\d[\w.*-]*)")
_VERSIONED = re.compile(r"\b(?:versions?|releases?)\b", re.IGNORECASE)
_MINIMUM = re.compile(r"\b(?:minimum|minimal|min|lowest|oldest|requires?|required)\b", re.IGNORECASE)


@lru_cache(1 << 13)
def normal_name(text: str) -> str:
    """A subject, attribute or source for comparison: lower case, without marks, hyphens and underscores alike. Names of
    code, such as `cluster.DBSCAN` beside `cluster.dbscan`, and single letters stay."""
    words = (word.rstrip(".,;:") for word in _MARKS.sub("", text).split())
    return " ".join(" ".join(map(_normal_word, words)).split())


@lru_cache(1 << 13)
def normal_value(text: str, attribute: str = "") -> str:
    """A value for comparison. For a minimum, `3.11`, `>=3.11` and "3.11 or newer" are equal, and upper bounds do not
    count. For a version, 3.10 is not 3.1."""
    plain = _unquoted(_SPACES.sub(" ", text[:MAX_VALUE].strip().rstrip(".")))
    if (word := _WORDS.get(plain.lower())) is not None:
        return word
    if _MINIMUM.search(attribute) and (least := _least(plain)):
        return least
    if _VERSIONED.search(attribute) and (version := _version(plain)):
        return f"version {version}"
    return _number(plain) or _tidied(plain)


def _normal_word(word: str) -> str:
    if len(word) == 1 or _CODE.search(word):
        return word
    return word.replace("-", " ").replace("_", " ").lower()


def _unquoted(text: str) -> str:
    while len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1].strip()
    return text


def _least(text: str) -> str:
    """The lower bound of a requirement as text; empty when it has none."""
    lower = [version for sign, version in _BOUND.findall(text) if sign in (">=", "~=", "^", "~", "==")]
    said = _LEAST.fullmatch(text)
    found = lower[0] if lower else (said["a"] or said["b"]) if said else text
    version = _version(found)
    return f"min {version}" if version else ""


def _version(text: str) -> str:
    """A version without trailing zeros; empty for anything else."""
    key = version_key(text)
    return canonicalize_version(key) if key is not None else ""


def _number(text: str) -> str:
    """A number in its shortest form; empty for anything else."""
    if not _NUMBER.fullmatch(text):
        return ""
    try:
        number = Decimal(text.replace(",", "").replace("_", "")).normalize()
    except InvalidOperation:
        return ""
    if not number:
        return "0"
    return f"{number:f}" if -30 < number.adjusted() < 30 else str(number)


def _tidied(text: str) -> str:
    """Without spaces around marks, and with one kind of quotes."""
    return _AROUND.sub(r"\1", text.translate(dict.fromkeys(map(ord, '"`“”‘’'), "'")))
