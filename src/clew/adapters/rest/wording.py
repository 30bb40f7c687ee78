"""The decoder's complaints in plain words: which value, what is wrong with it, and what would be right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from clew.errors import InvalidInput

_AT = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_NOUNS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
    "datetime": "a time",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_TIME = "For example 2026-01-01T00:00:00Z"
MAX_SHOWN = 80


def in_plain_words(error: Exception, kind: Any, whole: str) -> InvalidInput:
    """What a validation error of msgspec says about a value of type `kind`. `whole` names the value itself: `body`,
    or `query`, in which everything is text and to say so would not help."""
    complaint, path = _AT.fullmatch(str(error)).groups()  # type: ignore[union-attr]  # matches any text
    path = path or ""
    for pattern, explain in _EXPLANATIONS:
        if found := re.fullmatch(pattern, complaint, re.DOTALL):
            field, reason, hint = explain(found, path, _kinds_at(kind, path))
            break
    else:
        field, reason, hint = path, complaint[:1].lower() + complaint[1:], ""
    if whole == "query":
        reason = reason.removesuffix(", not text")
        hint = f"Add ?{field}=… to the address" if reason == "is missing" else hint
    return InvalidInput(field or whole, reason[:300], hint=hint)


_Explained = tuple[str, str, str]
"""Field, reason and hint."""


def _missing(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    hint = next((f"It must be {_noun(field.type)}" for field in _fields(kinds) if field.encode_name == found[1]), "")
    return _below(path, found[1]), "is missing", hint


def _unknown(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    return _below(path, found[1][:MAX_SHOWN]), "is not a field here", suggest(found[1], _names(kinds), "Fields are")


def _wrong_choice(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    choices = [str(value) for kind in kinds for value in getattr(kind, "values", ())]
    return path, f"{found[1][:MAX_SHOWN]} is not one of the choices", suggest(found[1], choices, "Choose one of")


def _wrong_kind(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    wanted = [_NOUNS.get(name, name) for name in found[1].split(" | ")]
    given = "a fraction" if found[2] == "float" else _NOUNS.get(found[2], found[2])
    return path, f"must be {_either(wanted)}, not {given}", _example(kinds)


def _out_of_bounds(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    return path, f"must be {_BOUNDS[found[1]]} {_number(found[2])}", ""


def _wrong_length(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    unit = "characters" if found[1] == "str" else "entries"
    return path, f"must have {_BOUNDS[found[2]]} {_number(found[3])} {unit}", ""


def _not_a_time(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    return path, "is not a time", _TIME


def _too_large_a_number(found: re.Match[str], path: str, kinds: Sequence[Any]) -> _Explained:
    return path, "holds a number that is too large", "Send it as text if every digit counts"


_EXPLANATIONS: tuple[tuple[str, Callable[[re.Match[str], str, Sequence[Any]], _Explained]], ...] = (
    (r"Object missing required field `(.*)`", _missing),
    (r"Object contains unknown field `(.*)`", _unknown),
    (r"Invalid (?:enum )?value (.*)", _wrong_choice),
    (r"Expected `([^`]+)`, got `([^`]+)`", _wrong_kind),
    (r"Expected `\w+` ([<>]=?) (\S+)", _out_of_bounds),
    (r"Expected `(\w+)` of length ([<>]=) ([0-9]+)", _wrong_length),
    (r"Invalid RFC3339 encoded .*|Timestamp is out of range.*", _not_a_time),
    (r"(?:Number|Integer value) out of range", _too_large_a_number),
)


def suggest(given: str, known: Iterable[str], introduction: str) -> str:
    """A hint that names what was probably meant, then all there is."""
    names = list(known)
    if not names:
        return ""
    near = difflib.get_close_matches(given.strip("'")[:MAX_SHOWN], names, n=1)
    guess = f"Did you mean {near[0]}? " if near else ""
    return f"{guess}{introduction}: {', '.join(names)}"


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _number(text: str) -> str:
    return f"{float(text):,.10g}"


def _either(words: Sequence[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


@lru_cache(maxsize=64)
def _inspect(kind: Any) -> Any:
    return msgspec.inspect.type_info(kind)


def _kinds_at(kind: Any, path: str) -> list[Any]:
    """The types that a value at a path may have, as msgspec describes them."""
    kinds = _alternatives(_inspect(kind))
    for name, _ in _STEP.findall(path):
        inner = [field.type for field in _fields(kinds) if field.encode_name == name] if name else _members(kinds)
        kinds = [each for one in inner for each in _alternatives(one)]
    return kinds


def _alternatives(info: Any) -> list[Any]:
    return list(info.types) if isinstance(info, msgspec.inspect.UnionType) else [info]


def _members(kinds: Sequence[Any]) -> list[Any]:
    names = ("item_type", "value_type")
    return [getattr(kind, name) for kind in kinds for name in names if hasattr(kind, name)]


def _fields(kinds: Sequence[Any]) -> list[Any]:
    return [field for kind in kinds if isinstance(kind, msgspec.inspect.StructType) for field in kind.fields]


def _names(kinds: Sequence[Any]) -> list[str]:
    return [field.encode_name for field in _fields(kinds)]


_KINDS: dict[type, str] = {
    msgspec.inspect.StrType: "str",
    msgspec.inspect.IntType: "int",
    msgspec.inspect.FloatType: "float",
    msgspec.inspect.BoolType: "bool",
    msgspec.inspect.NoneType: "null",
    msgspec.inspect.DateTimeType: "datetime",
    msgspec.inspect.StructType: "object",
    msgspec.inspect.DictType: "object",
}


def _noun(info: Any) -> str:
    words = [_NOUNS[_KINDS.get(type(each), "array")] for each in _alternatives(info)]
    return _either(words)


def _example(kinds: Sequence[Any]) -> str:
    if any(isinstance(kind, msgspec.inspect.DateTimeType) for kind in kinds):
        return _TIME
    names = _names(kinds)
    return f"Its fields are: {', '.join(names)}" if names else ""
