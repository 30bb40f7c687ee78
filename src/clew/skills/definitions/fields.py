"""The fields of Clew's own format: the allowed keys of a definition, and the checks of their values.

The records of the manifest define them. A key is the name of a field, in one of three spellings.
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Any, Literal, get_type_hints

import msgspec

from clew.decode_errors import in_plain_words, noun_of
from clew.errors import InvalidInput, ValidationError
from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.front_matter_fixes import quote_value, rename_key, replace_value, written_list
from clew.skills.checks.problems import Fix, Problem
from clew.skills.checks.suggestions import nearest
from clew.skills.files.document import MarkdownDocument
from clew.skills.files.tree_walk import is_plain
from clew.skills.manifest import AgentPermissions, AgentSpec, Parameter, Skill, ToolEntry, Toolset, Triggers
from clew.skills.triggers import expand
from clew.tools.permissions.rules import parse_rule
from clew.trail.model.validation import compile_schema

Sort = Literal["agent", "skill", "toolset", "tool"]
RECORDS: dict[Sort, type[msgspec.Struct]] = {"agent": AgentSpec, "skill": Skill, "toolset": Toolset, "tool": ToolEntry}

MAX_NAME = 64
MAX_DESCRIPTION = 4_000
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOOL_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,7}")
_NAMES = "1 to 64 letters of a to z, digits, `.`, `_` and `-`, the first a letter or digit"
_DERIVED = frozenset(
    {"content", "prompt", "references", "scripts", "assets", "is_executable", "path", "folder", "origin", "digest"}
)
_NOTES = ("license", "compatibility")
"""Keys of agentskills.io without an effect at run time. They go to the metadata."""
_PARTS: dict[str, type[msgspec.Struct]] = {
    "triggers": Triggers,
    "parameters": Parameter,
    "permissions": AgentPermissions,
}
_NAMED = tuple[str, ...]
_JSON_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MAX_SHOWN = 80
_MAX_NUMBER = 2**63


def _kinds_of(sort: Sort) -> dict[str, Any]:
    hints = get_type_hints(RECORDS[sort])
    notes = dict.fromkeys(_NOTES, str) if sort == "skill" else {}
    given = {name: kind for name, kind in hints.items() if name not in _DERIVED}
    return {name: _NAMED if kind == _NAMED | None else kind for name, kind in given.items()} | notes


FIELDS: dict[Sort, dict[str, Any]] = {sort: _kinds_of(sort) for sort in RECORDS}
"""The type of every field that a file may give, by kind of definition."""


def spellings(field: str) -> tuple[str, ...]:
    """`initialSkills`, `initial_skills` and `initial-skills` are one field; suggestions use the first."""
    first, *rest = field.split("_")
    return tuple(dict.fromkeys((first + "".join(each.capitalize() for each in rest), field, field.replace("_", "-"))))


_SPELLED: dict[Sort, dict[str, str]] = {
    sort: {spelled: field for field in fields for spelled in spellings(field)} for sort, fields in FIELDS.items()
}


class Fields:
    """The checked values of one document by field, and the problems of the others."""

    def __init__(self, document: MarkdownDocument, sort: Sort) -> None:
        self.document = document
        self.sort = sort
        self.values: dict[str, Any] = {}
        self.keys: dict[str, str] = {}
        self.problems: list[Problem] = []
        is_read = bool(document.values) or not document.problems
        for key, value in document.meta.items() if is_read else ():  # values of invalid YAML are unreliable
            self._take(key, value)

    def key_of(self, field: str) -> str:
        """Return the key of a field as spelled in the document."""
        return self.keys.get(field, spellings(field)[0])

    def report(self, message: str, path: str, **more: Any) -> None:
        """Report a problem at a key, an item or a value of the document."""
        self.problems.append(problem_at(self.document, path, message, **more))

    def _take(self, key: str, value: Any) -> None:
        field = _SPELLED[self.sort].get(key)
        if field is None:
            self._report_unknown(key)
        elif field in self.keys:
            self.report(f"`{key}` and `{self.keys[field]}` are the same key", key, is_key=True)
        else:
            self.keys[field] = key
            if value is not None:
                self._check(field, key, value)

    def _report_unknown(self, key: str) -> None:
        allowed = tuple(spellings(field)[0] for field in FIELDS[self.sort])
        near = nearest(key, allowed)
        is_free = near and not any(each in self.document.meta for each in spellings(_SPELLED[self.sort][near]))
        fix = rename_key(self.document, key, near, f"rename it to {near}") if is_free else None
        hint = "" if near or "metadata" not in FIELDS[self.sort] else "Put your own keys below `metadata`"
        message = f"there is no key `{key[:_MAX_SHOWN]}` in {_a(self.sort)}"
        self.report(message, key, is_key=True, allowed=allowed, nearest=near, fix=fix, hint=hint, context={"key": key})

    def _check(self, field: str, key: str, value: Any) -> None:
        kind = FIELDS[self.sort][field]
        if field == "allowed_tools" and isinstance(value, str):
            value = value.replace(",", " ").split()
        if field in _PARTS and not self._check_parts(_PARTS[field], key, value):
            return
        strange = unfit(value)
        if strange:
            self.report(f"`{key}` has {strange}, which JSON cannot express", key, hint="Put it in quotes")
            return
        try:
            self.values[field] = msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            self._report_invalid(key, value, kind, error)

    def _check_parts(self, kind: type[msgspec.Struct], key: str, value: Any) -> bool:
        """Whether the mappings below a key have only allowed keys."""
        allowed = kind.__struct_fields__
        found = enumerate(value) if isinstance(value, list) else [("", value)]
        before = len(self.problems)
        for number, part in found:
            below = f"{key}[{number}]" if number != "" else key
            for name in part if isinstance(part, dict) else ():
                if name not in allowed:
                    self._report_unknown_part(f"{below}.{name}", str(name), allowed)
        return len(self.problems) == before

    def _report_unknown_part(self, path: str, name: str, allowed: tuple[str, ...]) -> None:
        near = nearest(name, allowed)
        fix = rename_key(self.document, path, near, f"rename it to {near}") if near else None
        message = f"there is no key `{name[:_MAX_SHOWN]}` here"
        self.report(message, path, is_key=True, allowed=allowed, nearest=near, fix=fix, context={"key": name})

    def _report_invalid(self, key: str, value: Any, kind: Any, error: msgspec.ValidationError) -> None:
        told = in_plain_words(error, kind, key)
        path = key if told.field == key else f"{key}{'' if told.field.startswith('[') else '.'}{told.field}"
        if "[...]" in path:  # msgspec does not name the entry of a mapping
            path = next(f"{key}.{name}" for name, each in value.items() if not isinstance(each, str))
        missing = told.reason == "is missing"
        fix = self._fix_of(key, path, value, kind, told.reason)
        place = path.rpartition(".")[0] if missing else path
        choices = _choices(told.hint)
        allowed = choices or tuple(filter(None, (noun_of(kind),)))
        hint = "" if choices else told.hint
        context = {"key": path}
        self.report(f"`{path[:_MAX_SHOWN]}` {told.reason}", place, hint=hint, allowed=allowed, fix=fix, context=context)

    def _fix_of(self, key: str, path: str, value: Any, kind: Any, reason: str) -> Fix | None:
        if kind == _NAMED and isinstance(value, str) and value.strip():
            return self._as_list(key, value)
        below = value.get(path.removeprefix(f"{key}.")) if isinstance(value, dict) else None
        if reason == "must be a list, not text" and isinstance(below, str) and below.strip():
            return self._as_list(path, below)
        return quote_value(self.document, path) if reason.startswith("must be text, not ") else None

    def _as_list(self, path: str, value: str) -> Fix | None:
        """Return a fix that splits text at commas into a list. None if the text has quotes."""
        items = [each.strip() for each in value.split(",") if each.strip()]
        if any(each.startswith(("'", '"')) for each in items):
            return None
        return replace_value(self.document, path, written_list(items), "make it a list")


def problem_at(document: MarkdownDocument, path: str, message: str, *, is_key: bool = False, **more: Any) -> Problem:
    """Build a problem at the place of a key or value, by default of the kind `validation`."""
    places = (document.keys, document.values) if is_key else (document.values, document.keys)
    place = places[0].get(path) or places[1].get(path)
    column = width = 0
    if place is not None:
        column, width = place.column, max(place.end - place.column, 0) if place.last == place.line else 0
    line = place.line if place is not None else document.line_of(path)
    given = {"kind": "validation", **more}
    return Problem(path=document.path, line=line, column=column, width=width, message=message, **given)


def check_name(fields: Fields, name: str) -> bool:
    """Whether a name is allowed. Adds a problem if not."""
    allowed = _TOOL_NAME if fields.sort == "tool" else _NAME
    if allowed.fullmatch(name):
        return True
    strange = next((each for each in name if not re.fullmatch(r"[A-Za-z0-9._-]", each)), "")
    reason = f": it has {_shown(strange)}" if strange else ""
    message = f"`{ascii(name[:_MAX_SHOWN])[1:-1]}` is not a valid name{reason}"
    path = fields.key_of("name")
    better = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:MAX_NAME] if name.isascii() else ""
    fix = replace_value(fields.document, path, better, f"call it {better}") if better else None
    fields.report(message, path, allowed=(_NAMES,), fix=fix, context={"name": name})
    return False


def check_text(fields: Fields, *, is_required: bool) -> bool:
    """Whether there is a usable description. Adds a problem if not."""
    text = fields.values.get("description", "")
    key = fields.key_of("description")
    if not text.strip():
        is_told = any(key in (each.context.get("key"), each.nearest) for each in fields.problems)
        if is_required and not is_told:
            hint = "Add a line `description:` that says what it does and when to use it"
            fields.report("`description` is missing", key, hint=hint, context={"key": "description"})
        return not is_required
    seen = text.replace("\n", "").replace("\t", "")
    strange = "" if is_plain(seen) else next(each for each in seen if not is_plain(each))
    if strange:
        fields.report(f"`description` has {_shown(strange)}", key, allowed=("visible characters",))
    if len(text) > MAX_DESCRIPTION:
        fields.report(f"`description` has {len(text):,} characters", key, allowed=(f"at most {MAX_DESCRIPTION:,}",))
    return not strange and len(text) <= MAX_DESCRIPTION


def check_pattern(fields: Fields) -> None:
    """Report a trigger pattern that is not a list of alternatives."""
    triggers = fields.values.get("triggers")
    if triggers is None or not triggers.pattern:
        return
    try:
        expand(triggers.pattern)
    except ValidationError as error:
        fields.report(error.message, f"{fields.key_of('triggers')}.pattern", allowed=error.allowed, hint=error.hint)


def check_permissions(fields: Fields) -> None:
    """Report a rule that cannot be parsed."""
    rules = fields.values.get("permissions", AgentPermissions())
    for verdict in rules.__struct_fields__:
        for number, text in enumerate(getattr(rules, verdict)):
            try:
                parse_rule(text, verdict)
            except InvalidInput as error:
                place = f"{fields.key_of('permissions')}.{verdict}[{number}]"
                fields.report(f"the rule {error.reason}", place, hint=error.hint)


def check_schema(fields: Fields) -> None:
    """Report parameters of a tool that are not valid JSON Schema, with the place in the schema."""
    schema = fields.values.get("schema")
    if not schema:
        return
    try:
        compile_schema(schema)
    except InvalidInput as error:
        parts = [each.replace("~1", "/").replace("~0", "~") for each in error.field.split("/")[1:]]
        place = "".join([fields.key_of("schema"), *(f"[{each}]" if each.isdigit() else f".{each}" for each in parts)])
        value = _at(schema, parts)
        is_type = parts[-1:] == ["type"] and isinstance(value, str)
        near = nearest(value, _JSON_TYPES) if is_type else ""
        fix = replace_value(fields.document, place, near, f"take {near}") if near else None
        reason = f"`{value[:_MAX_SHOWN]}` is not a type" if is_type else error.reason
        message = f"`{place[:_MAX_SHOWN]}` is not valid JSON Schema: {reason}"
        fields.report(message, place, allowed=_JSON_TYPES if is_type else (), nearest=near, fix=fix, hint=error.hint)


def _at(value: Any, parts: list[str]) -> Any:
    """Return the value at a path within mappings, or None."""
    for each in parts:
        value = value.get(each) if isinstance(value, dict) else None
    return value


def unfit(value: Any, depth: int = 0) -> str:
    """Describe the first part of a value that a manifest cannot store; empty if there is none."""
    if isinstance(value, dict):
        keys = "" if all(isinstance(key, str) for key in value) else "a key that is not text"
        return keys or next(filter(None, (unfit(each, depth + 1) for each in value.values())), "")
    if isinstance(value, list):
        return next(filter(None, (unfit(each, depth + 1) for each in value)), "")
    if isinstance(value, datetime.date) and depth:
        return "a date"
    if isinstance(value, float) and not math.isfinite(value):
        return "an infinite number or NaN"
    if isinstance(value, int) and not -_MAX_NUMBER <= value < _MAX_NUMBER:
        return "a number that is too large"
    return "" if isinstance(value, str | int | float | datetime.date | None) else "a value of an unknown type"


def _choices(hint: str) -> tuple[str, ...]:
    _, found, names = hint.partition("Choose one of: ")
    return tuple(names.split(", ")) if found else ()


def _shown(character: str) -> str:
    return f"`{character}`" if character.isascii() and character.isprintable() else f"U+{ord(character):04X}"


def _a(sort: Sort) -> str:
    return f"an {sort}" if sort == "agent" else f"a {sort}"
