"""One definition file of any format, and the problems of its values. All formats read front matter through it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.problems import Problem, Severity
from clew.skills.files.document import MarkdownDocument
from clew.trust import printable

MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_VALUE = 4_000
"""The limit for values of keys that Clew does not use. Longer ones are cut."""
_MAX_SUMMARY = 300
_HEADING = lazy_pattern(r"\A(?:#{1,6}\s+|[>*-]\s+)")
_VALUE = lazy_pattern(r"[^:]*:[ \t]*(.*?)(?:[ \t]+#.*)?")


class DefinitionSource(msgspec.Struct, kw_only=True):
    """A definition file while a format reads it.

    `path` is its real path, `named` the name that follows from the path, `raw` its text. `problems` collects the
    problems that the format reports. `used` are the keys that the format has read.
    """

    path: str
    named: str
    raw: str
    document: MarkdownDocument
    digest: str = ""
    problems: list[Problem] = []
    used: set[str] = set()

    def warn(self, message: str, key: str = "", *, allowed: Iterable[str] = (), hint: str = "") -> None:
        """Report a problem of a value. The definition is still used."""
        self._report("warning", message, key, tuple(allowed), hint)

    def refuse(self, message: str, key: str = "", *, hint: str = "") -> None:
        """Report an error. The definition is not used."""
        self._report("error", message, key, (), hint)

    def _report(self, severity: Severity, message: str, key: str, allowed: tuple[str, ...], hint: str) -> None:
        line = self.document.line_of(key) if key else 1
        problem = Problem(
            kind="validation", severity=severity, path=self.path, line=line, message=message, allowed=allowed, hint=hint
        )
        self.problems.append(problem)

    def text(self, *keys: str) -> str:
        """Return the value of the first key that exists, as text; empty if there is none or it is not text."""
        key, value = self._take(keys)
        if isinstance(value, str):
            return value.strip()
        if value is None or isinstance(value, dict | list):
            if value is not None:
                self.warn(f"`{key}` must be text, not {'a list' if isinstance(value, list) else 'a mapping'}", key)
            return ""
        return self._as_written(key, value)

    def flag(self, *keys: str) -> bool:
        """Whether the value is true, yes, on or 1."""
        return self.text(*keys).lower() in {"true", "yes", "on", "1"}

    def words(self, *keys: str) -> tuple[str, ...]:
        """Return names without duplicates, from a list or from text with commas or spaces. Brackets stay whole."""
        key, value = self._take(keys)
        if isinstance(value, dict):
            return tuple(str(name) for name, is_on in value.items() if is_on is not False and is_on != "deny")
        if isinstance(value, list):
            items = [str(each) for each in value if isinstance(each, str | int | float) and str(each).strip()]
            if len(items) < len(value):
                self.warn(f"`{key}` has entries that are not names", key)
            return tuple(dict.fromkeys(each.strip() for each in items))
        return tuple(dict.fromkeys(split_words(str(value)))) if value is not None else ()

    def mapping(self, key: str) -> dict[str, str]:
        """Return a mapping from text to text."""
        _, value = self._take((key,))
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.warn(f"`{key}` must be a mapping from names to texts", key)
            return {}
        return {str(name): _flat(each) for name, each in value.items()}

    def others(self) -> dict[str, str]:
        """Return the values of the keys that the format has not read, as text."""
        rest = {key: value for key, value in self.document.meta.items() if key not in self.used}
        return {key: self._as_written(key, value) if _is_number(value) else _flat(value) for key, value in rest.items()}

    def _take(self, keys: Iterable[str]) -> tuple[str, Any]:
        meta = self.document.meta
        self.used.update(keys)
        key = next((each for each in keys if meta.get(each) is not None), "")
        return key, meta.get(key)

    def _as_written(self, key: str, value: Any) -> str:
        """Return a value as written in the file: YAML parses 1.10 as 1.1 and `on` as true."""
        lines = self.raw.split("\n")
        number = self.document.lines.get(key, 0)
        found = _VALUE.fullmatch(lines[number - 1].rstrip("\r")) if 0 < number <= len(lines) else None
        return (found[1].strip("\"'") if found else "") or str(value)


def split_words(text: str) -> list[str]:
    """Split names at commas and spaces; brackets such as `Bash(git add:*)` stay whole."""
    found: list[str] = []
    depth = 0
    word = ""
    for each in text:
        depth = max(0, depth + (each == "(") - (each == ")"))
        if depth == 0 and (each == "," or each.isspace()):
            found.append(word)
            word = ""
        else:
            word += each
    return [each for each in (*found, word) if each]


def to_name(text: str, *, also: str = "") -> str:
    """Convert text to a valid name: lower-case letters, digits, single hyphens, and the characters of `also`."""
    plain = unicodedata.normalize("NFKC", text.strip()).lower()
    kept = "".join(each if each.isalnum() or (each in also and also) else "-" for each in plain)
    return re.sub(r"-{2,}", "-", kept).strip("-")[:MAX_NAME].rstrip("-")


def first_paragraph(body: str) -> str:
    """Return the first paragraph of a text without headings, or the heading if there is no paragraph."""
    heading = ""
    for block in re.split(r"\n\s*\n", _without_comments(body)):
        lines = [line.strip() for line in block.strip().split("\n")]
        lines = [line for line in lines if line and not line.startswith(("```", "~~~", "|", "---", "==="))]
        if lines and lines[0].startswith("#"):
            heading = heading or _HEADING.sub("", lines[0], count=1)
            lines = lines[1:]
        if lines:
            return _cut(" ".join(_HEADING.sub("", line, count=1) for line in lines))
    return _cut(heading)


def _without_comments(body: str) -> str:
    """Remove the comments of a text, in linear time. A comment without an end is text."""
    parts, done = [], 0
    while (start := body.find("<!--", done)) >= 0 and (end := body.find("-->", start + 4)) >= 0:
        parts.append(body[done:start])
        done = end + 3
    return "".join([*parts, body[done:]])


def describe(source: DefinitionSource, *, is_required: bool) -> str:
    """Return the description of a definition, else the first paragraph of its text, else its name."""
    given = source.text("description")
    if given:
        if len(given) > MAX_DESCRIPTION:
            source.warn(
                f"the description has {len(given):,} characters", "description", allowed=(f"1 to {MAX_DESCRIPTION:,}",)
            )
        return given
    found = first_paragraph(source.document.body) or source.named
    if is_required:
        source.warn(
            "`description` is missing: Clew uses the beginning of the text",
            "description",
            hint="Describe in `description` what it does and when to use it",
        )
    return found


def metadata_of(source: DefinitionSource, known: Collection[str] = ()) -> dict[str, str]:
    """Return the fields of a definition that Clew does not use: its `metadata`, and all unread keys."""
    given = source.mapping("metadata")
    others = source.others()
    unknown = sorted(set(others) - set(known))
    if unknown:
        shown = ", ".join(f"`{printable(each, MAX_NAME)}`" for each in unknown[:10])
        source.warn(f"unknown keys, which have no effect: {shown}", unknown[0], allowed=known)
    return {**others, **given}


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SUMMARY else text[: _MAX_SUMMARY - 1].rsplit(" ", 1)[0] + "…"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(value: Any) -> str:
    """Convert a value to text."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
