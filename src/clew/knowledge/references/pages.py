"""Web pages as text: headings, paragraphs, lists and code. What a reader would not see is left out: scripts, styles,
forms, and elements that are hidden."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import msgspec

from clew.catalog.formats.outline import Heading
from clew.catalog.formats.prose import clean_name

_LEFT_OUT = frozenset(
    (
        "noscript",
        "template",
        "svg",
        "math",
        "iframe",
        "object",
        "embed",
        "canvas",
        "form",
        "button",
        "select",
        "textarea",
        "nav",
    )
)
_BLOCKS = frozenset(
    (
        "p",
        "div",
        "section",
        "article",
        "main",
        "header",
        "footer",
        "aside",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "tr",
        "pre",
        "blockquote",
        "figure",
        "figcaption",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "br",
        "body",
    )
)
_VOID = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    )
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])", re.IGNORECASE)
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9:-]{0,40})(?:[\s/][^<>]*)?>")
_RAW = frozenset(("script", "style"))
MAX_TAG = 5_000
"""Of a longer tag, such as one with a picture in it, only the name is read."""
_AUTHOR = frozenset(("author", "article:author", "dc.creator", "citation_author"))
_DATE = frozenset(("article:published_time", "date", "dc.date", "citation_publication_date", "citation_date"))
_HTML = re.compile(
    r"\s*(?:<!--.*?-->\s*)?(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])", re.IGNORECASE | re.DOTALL
)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page as text, its headings by line, and what it says of itself."""

    title: str
    lines: list[str]
    headings: list[Heading]
    authors: tuple[str, ...] = ()
    published_at: str = ""
    url: str = ""


def is_html(text: str) -> bool:
    """Whether a text begins as a page does."""
    return _HTML.match(text[:4_000]) is not None


def read_page(text: str) -> Page:
    """The text of a page. Anything is taken for one: what is no markup is text."""
    reader = _Reader()
    reader.feed(_tamed(text))
    reader.close()
    return reader.page()


def _tamed(text: str) -> str:
    """The markup without comments, scripts and what is no tag after all. The parser takes time with the square of the
    length of markup that never ends; of this it gets none."""
    lowered, kept, at = text.lower(), [], 0
    while (begin := text.find("<", at)) >= 0:
        kept.append(text[at:begin].replace(">", "&gt;"))
        tag = _TAG.match(text, begin)
        if tag is None and text.startswith(("<!", "<?"), begin):
            mark = "-->" if text.startswith("<!--", begin) else ">"
            end = text.find(mark, begin)
            at = end + len(mark) if end >= 0 else len(text)
        elif tag is None:
            kept.append("&lt;")
            at = begin + 1
        else:
            raw = tag[1].lower() in _RAW and not tag[0].startswith("</")
            kept.append("" if raw else tag[0] if len(tag[0]) <= MAX_TAG else f"<{tag[1]}>")
            end = lowered.find(f"</{tag[1].lower()}", tag.end()) if raw else tag.end()
            at = end if end >= 0 else len(text)
    return "".join((*kept, text[at:].replace(">", "&gt;")))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, bool]] = []
        self._hidden = 0
        self._lines: list[str] = []
        self._words: list[str] = []
        self._headings: list[Heading] = []
        self._level = self._pre = 0
        self._title: list[str] = []
        self._told: dict[str, list[str]] = {}
        self._url = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self._tell(tag, said)
        if tag in _BLOCKS:
            self._end_line()
        if tag in _VOID:
            return
        is_hidden = tag in _LEFT_OUT or _is_hidden(said)
        self._open.append((tag, is_hidden))
        self._hidden += is_hidden
        self._pre += tag == "pre"
        self._level = _HEADINGS.get(tag, self._level)
        if tag == "li":
            self._words.append("- ")

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, _ in self._open[-50:]):
            return
        if tag in _BLOCKS:
            self._end_line()
        while self._open:
            name, was_hidden = self._open.pop()
            self._hidden -= was_hidden
            self._pre -= name == "pre"
            if name == tag:
                break
        if tag in _HEADINGS:
            self._level = 0

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "title" and not self._hidden:
            self._title.append(data)
        elif not self._hidden:
            self._words.append(data)

    def page(self) -> Page:
        self._end_line()
        first = self._headings[0].name if self._headings else ""
        return Page(
            title=clean_name("".join(self._title), first or "Page"),
            lines=self._lines,
            headings=self._headings,
            authors=tuple(name for key in sorted(_AUTHOR) for name in self._told.get(key, ())),
            published_at=next((self._told[key][0] for key in sorted(_DATE) if key in self._told), ""),
            url=self._url,
        )

    def _tell(self, tag: str, said: dict[str, str]) -> None:
        if tag == "meta" and said.get("content", "").strip():
            key = (said.get("name") or said.get("property") or "").lower()
            self._told.setdefault(key, []).append(" ".join(said["content"].split())[:200])
        elif tag == "link" and said.get("rel") == "canonical":
            self._url = said.get("href", "")[:2_000]

    def _end_line(self) -> None:
        text, self._words = "".join(self._words), []
        if self._pre:
            self._lines += text.strip("\n").split("\n") if text.strip() else []
            return
        line = " ".join(text.split())
        if not line or line == "-":
            return
        if self._level:
            at = len(self._lines)
            self._headings.append(Heading(level=self._level, start=at, end=at + 1, name=clean_name(line, "Section")))
        self._lines += [line, ""]


def _is_hidden(said: dict[str, str]) -> bool:
    return "hidden" in said or said.get("aria-hidden") == "true" or _HIDDEN.search(said.get("style", "")) is not None


def to_moment(text: str) -> datetime | None:
    """A date as pages and files write it, in UTC where they name no zone; None for what is none."""
    plain = text.strip().replace("/", "-")
    for form in (plain, plain[:10], f"{plain}-01", f"{plain}-01-01"):
        try:
            found = datetime.fromisoformat(form)
        except ValueError:
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
