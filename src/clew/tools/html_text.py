"""Converts an HTML page to markdown (headings, paragraphs, lists, links and code, without invisible elements), and
reads its metadata."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec

from clew.lazy_pattern import lazy_pattern

_HIDDEN = frozenset(("script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas"))
_BLOCKS = frozenset(
    (
        *("p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "tr", "ul", "ol"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "figure", "form", "dl", "dt", "dd", "hr", "body"),
    )
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_VOID = frozenset(
    ("br", "hr", "img", "input", "meta", "link", "area", "base", "col", "embed", "source", "track", "wbr")
)
_RAW = frozenset(("script", "style"))
_MAX_DEPTH, _LOOKED_BACK = 200, 50
_MAX_TAG, _MAX_META = 5_000, 200
"""Limits for tags. For a longer tag, such as one with an embedded picture, only the name is read."""
_KEPT = "\0"
"""A placeholder for a space that must not be collapsed."""
_SPACES = lazy_pattern(r"[ \t\r\n\f\xa0]+")
_EMPTY = lazy_pattern(r"\n{3,}")
_TAG = lazy_pattern(r"</?([a-zA-Z][a-zA-Z0-9:-]{0,40})(?:[\s/][^<>]*)?>")
_UNSEEN = lazy_pattern(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])", re.IGNORECASE)


class HtmlPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page as markdown. `meta` holds its meta elements by lower-case name or property, `url` its canonical link."""

    title: str
    text: str
    meta: dict[str, list[str]] = {}
    url: str = ""


def html_to_text(html: str) -> str:
    """Return the title, then the text with a line for each block."""
    page = read_html(html)
    is_titled = not page.title or page.text.startswith(f"# {page.title}")
    return page.text if is_titled else f"{page.title}\n\n{page.text}".strip()


def read_html(html: str, *, skip: frozenset[str] = frozenset()) -> HtmlPage:
    """Read a page without invisible elements and without elements named in `skip`. Takes linear time, and reads broken
    HTML as far as possible."""
    parser = _HtmlReader(_HIDDEN | skip)
    parser.feed(_simplify(html.replace(_KEPT, "")))
    parser.close()
    lines = (line.strip() for line in "".join(parser.parts).split("\n"))
    text = _EMPTY.sub("\n\n", "\n".join(lines)).strip().replace(_KEPT, " ")
    return HtmlPage(title=_SPACES.sub(" ", "".join(parser.title)).strip(), text=text, meta=parser.meta, url=parser.url)


def _simplify(html: str) -> str:
    """Remove comments, scripts and stray `<`, because the parser of the standard library takes quadratic time for
    unclosed markup."""
    lowered, kept, at = html.lower(), [], 0
    while (begin := html.find("<", at)) >= 0:
        kept.append(html[at:begin].replace(">", "&gt;"))
        tag = _TAG.match(html, begin)
        if tag is None and html.startswith(("<!", "<?"), begin):
            mark = "-->" if html.startswith("<!--", begin) else ">"
            end = html.find(mark, begin)
            at = end + len(mark) if end >= 0 else len(html)
        elif tag is None:
            kept.append("&lt;")
            at = begin + 1
        else:
            is_raw = tag[1].lower() in _RAW and not tag[0].startswith("</")
            kept.append("" if is_raw else tag[0] if len(tag[0]) <= _MAX_TAG else f"<{tag[1]}>")
            end = lowered.find(f"</{tag[1].lower()}", tag.end()) if is_raw else tag.end()
            at = end if end >= 0 else len(html)
    return "".join((*kept, html[at:].replace(">", "&gt;")))


class _HtmlReader(HTMLParser):
    def __init__(self, hidden: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self.meta: dict[str, list[str]] = {}
        self.url = ""
        self._never_shown = hidden
        self._hidden: list[str] = []
        """The open elements, starting with the outermost hidden one."""
        self._is_title = False
        self._preformatted = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._read_metadata(tag, given)
        if tag == "title":
            self._is_title = True
        if tag == "body" and self._hidden[:1] == ["head"]:  # the end tag of head is optional
            self._hidden.clear()
        if self._hidden or tag in self._never_shown or _is_unseen(given):
            self._hidden += [] if tag in _VOID else [tag]
            return
        if tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "pre":
            self._preformatted += 1
            self.parts.append("\n\n```\n")
        elif tag == "a" and len(self._links) < _MAX_DEPTH:
            self._links.append(given.get("href", ""))
        elif tag in _BLOCKS:
            self.parts.append(f"\n\n{_HEADINGS.get(tag, '')}" if tag != "tr" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._is_title = False
        if self._hidden:
            self._close_hidden(tag)
        elif tag == "pre" and self._preformatted:
            self._preformatted -= 1
            self.parts.append("\n```\n\n")
        elif tag == "a" and self._links:
            target = self._links.pop()
            if target.startswith(("http://", "https://", "/")):
                self.parts.append(f" ({target})")
        elif tag in _BLOCKS and tag not in _VOID:
            self.parts.append("\n\n" if tag != "tr" else "")

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title.append(data)
        elif not self._hidden:
            self.parts.append(data.replace(" ", _KEPT) if self._preformatted else _SPACES.sub(" ", data))

    def _close_hidden(self, tag: str) -> None:
        first = max(0, len(self._hidden) - _LOOKED_BACK)
        at = next((at for at in range(len(self._hidden) - 1, first - 1, -1) if self._hidden[at] == tag), None)
        if at is not None:
            del self._hidden[at:]

    def _read_metadata(self, tag: str, given: dict[str, str]) -> None:
        if tag == "meta" and given.get("content", "").strip():
            key = (given.get("name") or given.get("property") or "").lower()
            self.meta.setdefault(key, []).append(" ".join(given["content"].split())[:_MAX_META])
        elif tag == "link" and given.get("rel") == "canonical":
            self.url = given.get("href", "")[:2_000]


def _is_unseen(given: dict[str, str]) -> bool:
    return "hidden" in given or given.get("aria-hidden") == "true" or _UNSEEN.search(given.get("style", "")) is not None
