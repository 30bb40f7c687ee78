"""Changelogs: what changed with which version. Keep a Changelog, the plain forms of markdown and reStructuredText,
version lines that say when they were released, and lists whose upper points are the versions or the kinds of change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Literal, NamedTuple

import msgspec

from clew.fences import clean
from clew.knowledge.code.file_content import blob_id
from clew.knowledge.history.decision import Decision, find_date
from clew.knowledge.history.headings import MAX_HEADING, read_heading
from clew.secrecy import mask_document

MAX_SIZE = 4_000_000
MAX_TEXT = 2_000

ChangeKind = Literal["added", "changed", "deprecated", "removed", "fixed", "security", "breaking", "other"]

_NAME = re.compile(r"(?:changelog|changes|history|news|releases?|release[-_]notes)(?:\.(?:md|rst|txt))?", re.IGNORECASE)
_VERSION = re.compile(
    r"(?<![\w.])v?(\d++\.\d++(?:\.\d++)*+(?:[-.]?(?:a|b|rc|alpha|beta|dev|post)[-.]?\d*)?)(?![\w.]*\d)", re.IGNORECASE
)
_UNRELEASED = re.compile(r"\bunreleased\b", re.IGNORECASE)
_UNDERLINE = re.compile(r"([=\-~^*#+])\1{2,}\s*")
_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(.+)")
_RELEASED = re.compile(r"\s*:?\**(?:released|release date)\b|\s*[_*]*\d{4}-\d\d-\d\d[_*]*\s*$", re.IGNORECASE)
_VERSION_POINT = re.compile(rf"{_VERSION.pattern}(?:\W+(?:[\w.,]+\W+){{0,3}}[\d-]{{4,10}})?\W?", re.IGNORECASE)
_GROUP = re.compile(r"\**(\w+(?: \w+){0,2})\**:\**")
"""A point of a list that only says what those below it are."""
_LABEL = re.compile(r"\*\*(.{2,30}?):?\*\*")
_WORDS: tuple[tuple[ChangeKind, re.Pattern[str]], ...] = (
    ("breaking", re.compile(r"\bbreaking\b|\bbackwards?[- ]incompatible\b", re.IGNORECASE)),
    ("deprecated", re.compile(r"\bdeprecat", re.IGNORECASE)),
    ("removed", re.compile(r"\b(?:remov|dropp?(?:ed|s)?\b|no longer support)", re.IGNORECASE)),
    ("security", re.compile(r"\bsecurity\b|\bCVE-\d", re.IGNORECASE)),
    ("fixed", re.compile(r"\bfix(?:e[sd])?\b|\bbugs?\b|\bregression\b", re.IGNORECASE)),
    ("added", re.compile(r"\badd(?:s|ed)?\b|\bnew\b|\bfeatures?\b|\bsupport for\b", re.IGNORECASE)),
    ("changed", re.compile(r"\bchang|\bdefault\b|\bnow\b|\brenam|\brequire", re.IGNORECASE)),
)
_DECIDED: frozenset[ChangeKind] = frozenset(("breaking", "deprecated", "removed", "changed"))


class Group(NamedTuple):
    """A point of a list that says of which kind those are that are indented further; without a label, none."""

    indent: int = -1
    label: str = ""


class ChangeNote(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a changelog. `version` is empty for what is not released yet."""

    version: str
    day: date | None
    kind: ChangeKind
    text: str
    path: str
    line: int
    hash: str

    @property
    def cited(self) -> str:
        return f"{self.path}:{self.line}"


def is_changelog(path: str) -> bool:
    """Whether a path looks like that of a changelog."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def read_changelog(path: str, content: bytes) -> list[ChangeNote]:
    """The changes that a file tells of, in its order; none from a file that is too large."""
    if len(content) > MAX_SIZE:
        return []
    lines = clean(mask_document(content.decode(errors="replace"))).split("\n")
    return list(_notes(path, blob_id(content), lines))


def changelog_decisions(notes: list[ChangeNote]) -> list[Decision]:
    """What was decided among the changes: what breaks, goes, is deprecated, or is done differently."""
    return [
        Decision(
            kind="changelog",
            title=note.text.split("\n", 1)[0][:200],
            source=note.path,
            line=note.line,
            hash=note.hash,
            status=note.kind,
            day=note.day,
            version=note.version,
            decision=note.text,
        )
        for note in notes
        if note.kind in _DECIDED
    ]


def _notes(path: str, hash: str, lines: list[str]) -> Iterator[ChangeNote]:
    version, released, group = None, None, ""
    above = Group()
    for number, line in enumerate(lines, 1):
        bullet = _BULLET.fullmatch(line)
        heading = _heading(lines, number - 1) or _version_point(lines, number - 1, bullet)
        if heading is not None:
            found, above = _VERSION.search(heading), Group()
            if found or _UNRELEASED.search(heading):
                version, released, group = found[1] if found else "", find_date(heading), ""
            else:
                group = heading
        elif version is not None and _RELEASED.match(line):
            released = released or find_date(line)
        elif version is not None and bullet:
            indent = len(bullet[1])
            above = above if indent > above.indent else Group()
            if (label := _group(bullet[2])) and _is_deeper(lines, number, indent):
                above = Group(indent, label)
                continue
            said = " ".join([bullet[2], *_continued(lines, number, indent)])[:MAX_TEXT]
            text = f"{above.label}: {said}" if above.label else said
            kind = _kind(above.label or group, text)
            yield ChangeNote(version=version, day=released, kind=kind, text=text, path=path, line=number, hash=hash)


def _version_point(lines: list[str], at: int, bullet: re.Match[str] | None) -> str | None:
    """The point of a list, not below another and with others below it, that is a version and perhaps its day."""
    if bullet is None or bullet[1] or not _VERSION_POINT.fullmatch(bullet[2]):
        return None
    return bullet[2] if _is_deeper(lines, at + 1, 0) else None


def _group(text: str) -> str:
    """What a point says of those below it; nothing for a change of its own."""
    found = _GROUP.fullmatch(text.strip())
    return found[1] if found and any(words.search(found[1]) for _, words in _WORDS) else ""


def _is_deeper(lines: list[str], after: int, indent: int) -> bool:
    """Whether the next line is a point below one of that indent."""
    bullet = _BULLET.fullmatch(lines[after]) if after < len(lines) else None
    return bullet is not None and len(bullet[1]) > indent


def _heading(lines: list[str], at: int) -> str | None:
    """The heading on a line, by its marks or by the line drawn below it."""
    marked = read_heading(lines[at])
    if marked is not None:
        return marked.text
    line = lines[at].rstrip()[:MAX_HEADING]
    is_underlined = at + 1 < len(lines) and _UNDERLINE.fullmatch(lines[at + 1]) is not None
    return line if line and not line[0].isspace() and is_underlined and not _BULLET.fullmatch(line) else None


def _continued(lines: list[str], after: int, indent: int) -> Iterator[str]:
    """Lines that belong to the bullet before them: indented further, until an empty one or another bullet."""
    for line in lines[after : after + 40]:
        is_deeper = len(line) - len(line.lstrip()) > indent
        if not line.strip() or not is_deeper or _BULLET.fullmatch(line):
            return
        yield line.strip()


def _kind(group: str, text: str) -> ChangeKind:
    """By the label in front, by the heading above where that says it, else by the first of the telling words."""
    label = _LABEL.match(text)
    for told in (label[1] if label else "", group, text):
        for kind, words in _WORDS:
            if words.search(told):
                return kind
    return "other"
