"""Changelogs: the changes of each version. Changelogs are found under any common name and folder, in markdown,
reStructuredText and plain text. Changes are list items and paragraphs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from clew.fences import clean
from clew.knowledge.code.file_content import FileContent, blob_id, read_content
from clew.knowledge.code.files import VERSION_FILE, text_stem
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_document

MAX_TEXT = 2_000
MAX_HEADING = 300

ChangeKind = Literal["added", "changed", "deprecated", "removed", "fixed", "security", "breaking", "other"]

_NUMBER = (
    r"\d++(?>(?:\.(?:\d++|x\b))+)"
    r"(?:[-.]?(?:a|b|c|m|rc|alpha|beta|dev|post|pre|preview|next|canary|snapshot)[-.]?\d*+(?>(?:\.\d++)*))?"
)
_VERSION = lazy_pattern(
    rf"(?<![\w.])v?({_NUMBER})(?![\w.]*\d)|\b(?:version|release|v)\s*(\d{{1,4}})(?![\w.]*\d)",
    re.IGNORECASE,
)
_UNRELEASED = lazy_pattern(r"\b(?:unreleased|upcoming|next release|in development)\b", re.IGNORECASE)
_WORD = lazy_pattern(r"[^\W\d_]+")
_OF_RELEASE = frozenset(("version", "release", "released", "date", "v", "on"))
"""Words in a heading that may accompany a version and a day."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DATES = (
    lazy_pattern(r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{2})[-/.](?P<day>\d{2})(?!\d)"),
    lazy_pattern(
        rf"(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th)?[\s-]+(?:of\s+)?{_MONTH},?[\s-]+(?P<year>\d{{4}})", re.IGNORECASE
    ),
    lazy_pattern(rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})", re.IGNORECASE),
)

_MARKED = lazy_pattern(r"(#{1,6}+)\s++(\S.*+)")
_RULE = lazy_pattern(r"([=\-~^*#+\"'`_.:])\1{2,}\s*")
_BULLET = lazy_pattern(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(.+)")
_MARKED_VERSION = lazy_pattern(r"#{1,3}\s+\[?v?\d+\.\d")
_FENCE = lazy_pattern(r"\s*(?:```|~~~)[^`~]*")
_MARKUP = lazy_pattern(r"\s*(?:\.\.(?: |$)|<!--|\[[^\]]{1,200}\]:\s|:[\w-]{1,40}:(?:\s|$))")
"""Directives, comments, link definitions and fields."""
_SHORT = 60
_PLAIN = 7
"""The level of headings without marks."""
_DEBIAN = lazy_pattern(r"[\w.+-]+ \((?P<version>[^)\s]{1,60})\) [\w. -]{1,60}; urgency=.*")
_LABEL = lazy_pattern(r"\*\*(.{2,30}?):?\*\*")
_KINDS: tuple[tuple[ChangeKind, re.Pattern[str]], ...] = (
    ("breaking", lazy_pattern(r"\bbreaking\b|\bbackwards?[- ]incompatible\b", re.IGNORECASE)),
    ("deprecated", lazy_pattern(r"\bdeprecat", re.IGNORECASE)),
    ("removed", lazy_pattern(r"\b(?:remov|dropp?(?:ed|s)?\b|no longer support)", re.IGNORECASE)),
    ("security", lazy_pattern(r"\bsecurity\b|\bCVE-\d", re.IGNORECASE)),
    ("fixed", lazy_pattern(r"\bfix(?:e[sd])?\b|\bbugs?\b|\bregression\b", re.IGNORECASE)),
    ("added", lazy_pattern(r"\badd(?:s|ed)?\b|\bnew\b|\bfeatures?\b|\bsupport for\b", re.IGNORECASE)),
    ("changed", lazy_pattern(r"\bchang|\bdefault\b|\bnow\b|\brenam|\brequire", re.IGNORECASE)),
)


class TextHeading(NamedTuple):
    """A heading: its level, from 1, its text without marks, and the lines that it takes."""

    level: int
    text: str
    lines: int = 1


_BREAK = TextHeading(_PLAIN, "")


class ChangeNote(msgspec.Struct, frozen=True, kw_only=True):
    """One change: a list item or a paragraph, from `line` to `end_line`. `version` is empty for an unreleased change;
    `hash` is the git blob id of the file."""

    version: str
    day: date | None
    kind: ChangeKind
    text: str
    path: str
    line: int
    end_line: int
    hash: str

    @property
    def cited(self) -> str:
        return f"{self.path}:{self.line}"


def read_changelog(path: str, content: bytes) -> list[ChangeNote]:
    """The changes that a file lists, in its order."""
    lines = clean(mask_document(content.decode(errors="replace"))).split("\n")
    return _ChangelogReader(path, blob_id(content), lines).read()


def read_heading(line: str) -> TextHeading | None:
    """The markdown heading that a line is, if it begins with its marks."""
    found = _MARKED.fullmatch(line)
    if found is None:
        return None
    text = found[2].rstrip()
    return TextHeading(len(found[1]), (text.rstrip("#").rstrip() or text)[:MAX_HEADING])


def find_date(text: str) -> date | None:
    """The first valid day in a text, as numbers that begin with the year, or with the name of the month."""
    for form in _DATES:
        for found in form.finditer(text[:2_000]):
            month = found["month"].lower()[:3]
            number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
            try:
                return date(int(found["year"]), number, int(found["day"]))
            except ValueError:
                continue
    return None


class _OpenChange(msgspec.Struct, kw_only=True):
    """A change that is being read: its lines, indent and texts so far."""

    line: int
    end: int
    indent: int
    is_item: bool
    texts: list[str]


class _ChangelogReader:
    """Reads the lines of one file from the first to the last, each once."""

    def __init__(self, path: str, hash: str, lines: Sequence[str]) -> None:
        self._path, self._hash, self._lines = path, hash, lines
        named = VERSION_FILE.fullmatch(text_stem(path))
        self._version: str | None = named["version"] or "" if named else None
        self._day: date | None = None
        self._section = ""
        self._release: TextHeading | None = None
        """The first heading of a release; others like it are releases too."""
        self._is_strict = False
        self._rules: list[str] = []
        """Styles of underlined headings, by level."""
        self._open: _OpenChange | None = None
        self._is_blank, self._is_top = True, True
        self._notes: list[ChangeNote] = []

    def read(self) -> list[ChangeNote]:
        at, is_code = self._after_front_matter(), False
        while at < len(self._lines):
            line = self._lines[at]
            is_code = is_code and not _MARKED_VERSION.match(line)  # the end of the code may be missing
            if _FENCE.fullmatch(line):
                is_code = not is_code
            elif is_code or not line.strip():
                self._is_blank = self._is_blank or not is_code
            elif heading := self._heading(at):
                self._take_heading(heading)
                at += heading.lines - 1
                self._is_blank = True
            elif not _MARKUP.match(line):
                self._take_text(at, line)
                self._is_blank = False
            at += 1
        self._close()
        return self._notes

    def _after_front_matter(self) -> int:
        if not self._lines or self._lines[0].strip() != "---":
            return 0
        ends = (at for at, line in enumerate(self._lines[1:50], 1) if line.strip() == "---")
        return next(ends, -1) + 1

    def _heading(self, at: int) -> TextHeading | None:
        """The heading on a line. It has markup, has rules above or below, or is a line that only names a release."""
        line = self._lines[at]
        if marked := read_heading(line):
            return marked
        text, below = line.strip()[:MAX_HEADING], self._line(at + 1)
        if _RULE.fullmatch(line):
            is_above = below.strip() and self._line(at + 2).rstrip() == line.rstrip()
            return TextHeading(self._level(f"over {line[0]}"), below.strip()[:MAX_HEADING], 3) if is_above else _BREAK
        if line[0].isspace():
            return None
        if item := _BULLET.fullmatch(line):  # a list whose upper items are the versions
            deeper = _BULLET.fullmatch(below)
            is_release = deeper is not None and len(deeper[1]) > 0 and _is_release(item[2][:MAX_HEADING])
            return TextHeading(_PLAIN, item[2][:MAX_HEADING]) if is_release else None
        if _RULE.fullmatch(below) and (below[0] in "=-" or len(below.rstrip()) >= len(text)):
            return TextHeading(self._level(below[0]), text, 2)
        return TextHeading(_PLAIN, text) if self._is_blank and self._is_plain_release(text) else None

    def _is_plain_release(self, text: str) -> bool:
        """Whether a line without heading markup begins a release. The date of a release may be on the line below its
        heading."""
        if self._is_top and self._release is not None and not _VERSION.search(text):
            return False
        is_dated = not self._is_strict and _DATES[0].match(text) is not None
        return is_dated or _DEBIAN.fullmatch(text) is not None or _is_release(text, 1)

    def _line(self, at: int) -> str:
        return self._lines[at] if at < len(self._lines) else ""

    def _level(self, style: str) -> int:
        if style not in self._rules:
            self._rules.append(style)
        return self._rules.index(style) + 1

    def _take_heading(self, heading: TextHeading) -> None:
        self._close()
        if not heading.text:
            return
        found, is_bare = _VERSION.search(heading.text), _is_release(heading.text)
        is_upper = self._release is None or heading.level <= self._release.level
        if is_bare and not is_upper and not found and not _UNRELEASED.search(heading.text):
            self._day = self._day or find_date(heading.text)  # the day of a release, as a heading below it
        elif is_bare or (is_upper and self._is_like_release(heading, found)):
            if self._release is None or is_bare > self._is_strict:
                self._release, self._is_strict = heading, is_bare
            self._version = (found[1] or found[2]) if found else ""
            self._day, self._section, self._is_top = find_date(heading.text), "", True
        else:
            self._section, self._is_top = heading.text, False

    def _is_like_release(self, heading: TextHeading, version: re.Match[str] | None) -> bool:
        """Whether a heading with other words begins a release: it starts with its version, after a name at most, or no
        heading has been a version alone so far."""
        if version is None:
            return heading.level == _PLAIN or (not self._is_strict and _UNRELEASED.search(heading.text) is not None)
        return not self._is_strict or len(_WORD.findall(heading.text[: version.start()])) <= 1

    def _take_text(self, at: int, line: str) -> None:
        item = _BULLET.fullmatch(line)
        indent = len(item[1]) if item else len(line) - len(line.lstrip())
        if self._version is None:
            return
        if (
            not item
            and self._is_top
            and len(line) <= MAX_HEADING
            and not _VERSION.search(line)
            and _is_release(line, 3)
        ):
            self._day = self._day or find_date(line)
            return
        if not item and (open := self._open) and (not self._is_blank or (open.is_item and indent > open.indent)):
            open.end = at + 1
            open.texts.append(line.strip())
            return
        self._close(is_before_item=item is not None)
        self._is_top = False
        text = item[2] if item else line.strip()
        self._open = _OpenChange(line=at + 1, end=at + 1, indent=indent, is_item=item is not None, texts=[text])

    def _close(self, *, is_before_item: bool = False) -> None:
        """End the change that is being read. A short text before a list is a heading if it ends with a colon."""
        open, self._open = self._open, None
        if open is None or self._version is None:
            return
        text = " ".join(open.texts[:MAX_TEXT])[:MAX_TEXT]
        if is_before_item and text.endswith(":") and len(text) <= _SHORT:
            self._section = text.rstrip(":")
        elif open.is_item or _WORD.search(text[:MAX_HEADING]):
            note = ChangeNote(
                version=self._version,
                day=self._day,
                kind=_kind_of(self._section, text),
                text=text,
                path=self._path,
                line=open.line,
                end_line=open.end,
                hash=self._hash,
            )
            self._notes.append(note)


def _is_release(text: str, words: int = 0) -> bool:
    """Whether a text is a version or a day, with at most `words` other words."""
    found = _VERSION.search(text) or _UNRELEASED.search(text)
    day = next((day for form in _DATES if (day := form.search(text))), None)
    if found is None and day is None:
        return False
    rest = text
    for start, end in sorted((each.span() for each in (found, day) if each is not None), reverse=True):
        rest = f"{rest[:start]} {rest[end:]}"
    return sum(word.lower() not in _OF_RELEASE for word in _WORD.findall(rest)) <= words


def _kind_of(section: str, text: str) -> ChangeKind:
    """The kind of a change, by the label in front of it, else by the heading above, else by the first word that names a
    kind."""
    label = _LABEL.match(text)
    for said in (label[1] if label else "", section, text):
        for kind, words in _KINDS:
            if words.search(said):
                return kind
    return "other"


# -- files of one kind as they are on disk -----------------------------------------------------------------------

Parsed = TypeVar("Parsed")


class ParsedFiles(Generic[Parsed]):
    """The files of a folder that `is_wanted` chooses by their paths, and the items that `parse` finds in each. A
    changed file is parsed again; one that cannot be read has no items."""

    def __init__(
        self, code: CodeGraph, is_wanted: Callable[[str], bool], parse: Callable[[FileContent], Sequence[Parsed]]
    ) -> None:
        self._code, self._is_wanted, self._parse = code, is_wanted, parse
        self._files: list[FileInfo] | None = None
        """All files as they were listed last; the same list means that none changed."""
        self._known: dict[str, tuple[str, Sequence[Parsed]]] = {}
        """The blob and the items of each file by its path."""
        self._found: list[Parsed] = []

    async def read(self) -> list[Parsed]:
        """The items of all files in the order of their paths; the same list until one of them changes."""
        await self._code.state(self._known)
        files = await self._code.files()
        if files is self._files:
            return self._found
        blobs = {file.path: file.blob for file in files if self._is_wanted(file.path)}
        if blobs != {path: blob for path, (blob, _) in self._known.items()}:
            self._known = await asyncio.to_thread(self._parse_changed, blobs, self._known)
            self._found = [item for path in sorted(blobs) for item in self._known[path][1]]
        self._files = files
        return self._found

    def _parse_changed(
        self, blobs: dict[str, str], known: dict[str, tuple[str, Sequence[Parsed]]]
    ) -> dict[str, tuple[str, Sequence[Parsed]]]:
        found = {path: each for path, each in known.items() if each[0] == blobs.get(path)}
        for path in blobs.keys() - found.keys():
            content = read_content(self._code.tree.root, path)
            found[path] = blobs[path], self._parse(content) if content is not None else ()
        return found
