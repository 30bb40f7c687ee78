"""The text of a page of HTML: headings, paragraphs, lists and links, without what a browser would not show."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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
_MAX_DEPTH = 200
_KEPT = "\0"
"""A space that stays where it is."""
_SPACES = re.compile(r"[ \t\r\n\f\xa0]+")
_EMPTY = re.compile(r"\n{3,}")


def html_to_text(html: str) -> str:
    """The title, then the text with a line for each block. Broken HTML gives what can be read of it."""
    parser = _Reader()
    parser.feed(html.replace(_KEPT, ""))
    parser.close()
    lines = (line.strip() for line in "".join(parser.parts).split("\n"))
    text = _EMPTY.sub("\n\n", "\n".join(lines)).strip().replace(_KEPT, " ")
    title = _SPACES.sub(" ", "".join(parser.title)).strip()
    return f"{title}\n\n{text}".strip() if title and not text.startswith(f"# {title}") else text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._hidden: list[str] = []
        self._is_title = False
        self._preformatted = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._is_title = True
        if tag in _HIDDEN and len(self._hidden) < _MAX_DEPTH:
            self._hidden.append(tag)
        if self._hidden:
            return
        if tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "pre":
            self._preformatted += 1
            self.parts.append("\n\n")
        elif tag == "a" and len(self._links) < _MAX_DEPTH:
            self._links.append(dict(attrs).get("href") or "")
        elif tag in _BLOCKS:
            self.parts.append(f"\n\n{_HEADINGS.get(tag, '')}" if tag != "tr" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._is_title = False
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
            return
        if self._hidden:
            return
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
            self.parts.append("\n\n")
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
