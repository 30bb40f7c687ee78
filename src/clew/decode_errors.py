"""Rewrites decoder errors in plain words: which value is wrong, why, and which values are allowed. All interfaces, the
configuration and the tools use these messages.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from clew.errors import ConfigError, InvalidInput
from clew.lazy_pattern import lazy_pattern

_AT = lazy_pattern(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)
_STEP = lazy_pattern(r"([^.\[\]]+)|\[([^\]]*)\]")
_NOUNS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
    "datetime": "a time",
    "date": "a date",
    "bytes": "text in base64",
    "uuid": "a UUID",
    "decimal": "a decimal number",
    "duration": "a duration",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_EXAMPLES = {
    "datetime": "For example 2026-01-01T00:00:00Z",
    "date": "For example 2026-01-01",
    "duration": "For example PT1H30M",
}
_SYNONYMS = {"none": "null", "struct": "object", "dict": "object", "typeddict": "object", "dataclass": "object"}
"""The name of a type in msgspec's descriptions → its name in msgspec's error messages."""
_SCHEMA_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
"""The name of a type in JSON Schema → its name in msgspec."""
_SCHEMA_BOUNDS = {
    "minimum": ("be at least", "", ""),
    "maximum": ("be at most", "", ""),
    "exclusiveMinimum": ("be more than", "", ""),
    "exclusiveMaximum": ("be less than", "", ""),
    "minLength": ("have at least", " character", " characters"),
    "maxLength": ("have at most", " character", " characters"),
    "minItems": ("have at least", " entry", " entries"),
    "maxItems": ("have at most", " entry", " entries"),
    "minProperties": ("have at least", " field", " fields"),
    "maxProperties": ("have at most", " field", " fields"),
}
MAX_SHOWN = 80
MAX_REASON = 300

_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
"""Scripts with letters that look like those of another."""


def in_plain_words(error: msgspec.ValidationError, kind: Any, whole: str, *, called: str = "field") -> InvalidInput:
    """The message for an error that msgspec found in a value of type `kind`. `whole` is the name of the value itself.
    `called` is the caller's term for a part of it, such as a `field` of a body or a `parameter` of a tool."""
    complaint, path = _AT.fullmatch(str(error)).groups()  # type: ignore[union-attr]  # matches any text
    path = path or ""
    place = _Place(path, _kinds_at(kind, path), called)
    for pattern, explain in _EXPLANATIONS:
        if found := re.fullmatch(pattern, complaint, re.DOTALL):
            field, reason, hint = explain(found, place)
            break
    else:
        field, reason, hint = path, (complaint[:1].lower() + complaint[1:]).replace("`", ""), ""
    return InvalidInput(field or whole, reason[:MAX_REASON], hint=hint)


def config_in_plain_words(
    error: msgspec.ValidationError, kind: Any, place: str, *, called: str = "setting"
) -> ConfigError:
    """Like `in_plain_words`, for a part of the settings: a ConfigError with the place, the setting, and the allowed
    values."""
    wrong = in_plain_words(error, kind, "", called=called)
    told = ConfigError(f"{place}: {wrong.message.removeprefix(': ')}")
    told.hint = wrong.hint
    return told


def misfit_in_plain_words(kind: Any) -> tuple[str, str] | None:
    """The message for an error of a JSON Schema check: the part of the value, empty for the value itself, and the
    reason. None for a kind that has no words here."""
    if kind.name in _SCHEMA_BOUNDS:
        bound, unit, units = _SCHEMA_BOUNDS[kind.name]
        return "", f"must {bound} {kind.limit:,}{unit if kind.limit == 1 else units}"
    explain = _MISFITS.get(kind.name)
    return explain(kind) if explain is not None else None


def either_type(types: Iterable[Any]) -> str:
    """The noun for a value of these JSON Schema types; `null` comes last."""
    names = sorted((str(each) for each in types), key=lambda each: each == "null")
    return _either([_NOUNS.get(_SCHEMA_TYPES.get(name, name), name) for name in names])


def suggest(given: str, known: Iterable[str], introduction: str) -> str:
    """A hint that names the probable choice, then all choices; empty if there are none."""
    names = list(known)
    if not names:
        return ""
    near = difflib.get_close_matches(given.strip("'")[:MAX_SHOWN], names, n=1)
    guess = f"Did you mean {near[0]}? " if near else ""
    return f"{guess}{introduction}: {', '.join(names)}"


def noun_of(kind: Any) -> str:
    """The noun for a value of this type, such as `a whole number`; empty if any value is allowed."""
    return _noun(_inspect(kind))


class _Place(NamedTuple):
    """The location of an error: the path, the allowed types of the value, and the term for its parts."""

    path: str
    kinds: Sequence[Any]
    called: str

    def below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


_Explained = tuple[str, str, str]
"""Field, reason and hint."""


def _missing(found: re.Match[str], place: _Place) -> _Explained:
    nouns = [_noun(field.type) for field in _fields(place.kinds) if field.encode_name == found[1]]
    return place.below(found[1]), "is missing", f"It must be {nouns[0]}" if any(nouns) else ""


def _unknown(found: re.Match[str], place: _Place) -> _Explained:
    names = [field.encode_name for field in _fields(place.kinds)]
    hint = suggest(found[1], names, f"{place.called.capitalize()}s are") or "There are none"
    return place.below(found[1][:MAX_SHOWN]), f"is not a {place.called} here", hint


def _wrong_choice(found: re.Match[str], place: _Place) -> _Explained:
    choices = [choice for kind in place.kinds for choice in _choices(kind)]
    return place.path, f"{found[1][:MAX_SHOWN]} is not one of the choices", suggest(found[1], choices, "Choose one of")


def _wrong_kind(found: re.Match[str], place: _Place) -> _Explained:
    wanted = [_NOUNS.get(name, name) for name in found[1].split(" | ")]
    given = "a fraction" if found[2] == "float" else _NOUNS.get(found[2], found[2])
    return place.path, f"must be {_either(wanted)}, not {given}", _example(place.kinds)


def _out_of_bounds(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, f"must be {_BOUNDS[found[1]]} {_number(found[2])}", ""


def _wrong_length(found: re.Match[str], place: _Place) -> _Explained:
    units = ("character", "characters") if found[1] == "str" else ("entry", "entries")
    return place.path, f"must have {_BOUNDS[found[2]]} {_number(found[3])} {units[found[3] != '1']}", ""


def _wrong_size(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, f"must have {found[1] or ''}{found[2]} {'entry' if found[2] == '1' else 'entries'}", ""


def _no_multiple(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, f"must be a multiple of {_number(found[1])}", ""


def _no_match(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, f"must match the pattern {found[1]}", ""


def _not_encoded(found: re.Match[str], place: _Place) -> _Explained:
    name = {"UUID": "uuid", "base64": "bytes"}.get(found[1], found[1])
    return place.path, f"is not {_NOUNS[name]}", _EXAMPLES.get(name, "")


def _not_a_moment(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, "is not a time", _EXAMPLES["datetime"]


def _no_zone(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, "must carry a time zone", _EXAMPLES["datetime"]


def _too_large_a_number(found: re.Match[str], place: _Place) -> _Explained:
    return place.path, "holds a number that is too large", "Send it as text if every digit counts"


_EXPLANATIONS: tuple[tuple[str, Callable[[re.Match[str], _Place], _Explained]], ...] = (
    (r"Object missing required field `(.*)`", _missing),
    (r"Object contains unknown field `(.*)`", _unknown),
    (r"Invalid (?:enum )?value (.*)", _wrong_choice),
    (r"Expected `([^`]+)`, got `([^`]+)`", _wrong_kind),
    (r"Expected `\w+` ([<>]=?) (\S+)", _out_of_bounds),
    (r"Expected `(\w+)` of length ([<>]=) ([0-9]+)", _wrong_length),
    (r"Expected `array` of (at \w+ )?length ([0-9]+(?: to [0-9]+)?)(?:, got [0-9]+)?", _wrong_size),
    (r"Expected `\w+` that's a multiple of (\S+)", _no_multiple),
    (r"Expected `str` matching regex (.*)", _no_match),
    (r"Invalid (?:RFC3339 encoded |ISO8601 )?(datetime|date|duration|UUID|base64|decimal)(?: .*)?", _not_encoded),
    (r"Invalid RFC3339 encoded time|Timestamp is out of range.*|Invalid epoch timestamp", _not_a_moment),
    (r"Expected `\w+` with a timezone component", _no_zone),
    (r"(?:Number|Integer value) out of range", _too_large_a_number),
)


def _number(text: str) -> str:
    return f"{float(text):,.10g}"


_MISFITS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "required": lambda kind: (kind.property, "is missing"),
    "additionalProperties": lambda kind: (kind.unexpected[0], "is not allowed here"),
    "unevaluatedProperties": lambda kind: (kind.unexpected[0], "is not allowed here"),
    "type": lambda kind: ("", f"must be {either_type(kind.types)}"),
    "enum": lambda kind: ("", f"must be one of: {', '.join(map(_shown, kind.options))}"),
    "const": lambda kind: ("", f"must be {_shown(kind.expected_value)}"),
    "pattern": lambda kind: ("", f"must match the pattern {kind.pattern}"),
    "multipleOf": lambda kind: ("", f"must be a multiple of {_number(str(kind.multiple_of))}"),
    "uniqueItems": lambda kind: ("", "holds an entry twice"),
    "anyOf": lambda kind: ("", "fits none of the shapes that are allowed here"),
    "oneOf": lambda kind: ("", "must fit exactly one of the shapes that are allowed here"),
}


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:MAX_SHOWN]


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


def _noun(info: Any) -> str:
    words = [_word(each) for each in _alternatives(info)]
    return _either(words) if all(words) else ""


def _word(info: Any) -> str:
    """The noun of a type by the class of its description: `IntType` is an int, and a type with items is a list."""
    if choices := _choices(info):
        return _either(choices)
    if isinstance(getattr(info, "item_type", None), msgspec.inspect.StrType):
        return "a list of texts"
    if hasattr(info, "item_type") or hasattr(info, "item_types"):
        return _NOUNS["array"]
    name = type(info).__name__.removesuffix("Type").lower()
    return _NOUNS.get(_SYNONYMS.get(name, name), "")


def _choices(info: Any) -> list[str]:
    if isinstance(info, msgspec.inspect.EnumType):
        return [str(each.value) for each in info.cls]
    return [str(value) for value in info.values] if isinstance(info, msgspec.inspect.LiteralType) else []


def _example(kinds: Sequence[Any]) -> str:
    if any(isinstance(kind, msgspec.inspect.DateTimeType) for kind in kinds):
        return _EXAMPLES["datetime"]
    names = [field.encode_name for field in _fields(kinds)]
    return f"Its fields are: {', '.join(names)}" if names else ""


def unmixed(name: str) -> str:
    """Spell out the letters that mix look-alike scripts in a name. If the name has Latin letters, all others are
    escaped. If not, letters of a script other than the first are escaped."""
    scripts = [(each, unicodedata.name(each, "").partition(" ")[0]) for each in name]
    found = [script for _, script in scripts if script in _ALIKE]
    first = "LATIN" if "LATIN" in found else next(iter(found), "")
    return "".join(
        each.encode("unicode_escape").decode() if script in _ALIKE and script != first else each
        for each, script in scripts
    )
