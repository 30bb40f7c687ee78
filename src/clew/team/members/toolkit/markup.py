"""Static reading of user interface code: elements of HTML, JSX, Vue and Svelte, and values of styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Literal

import msgspec

Level = Literal["A", "AA", "AAA"]
LEVELS: tuple[Level, ...] = ("A", "AA", "AAA")
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"))
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|rgba?\([^)]*\)|hsla?\([^)]*\)")
_LENGTH = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:px|rem|em)\b")
_MEDIA = re.compile(r"@media[^{]*|\b(?:sm|md|lg|xl|2xl):")
_HEADING = re.compile(r"h([1-6])")
_HEX = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\b")
_PAIR = re.compile(r"(?<![-\w])(background(?:-color)?|color)\s*:\s*[\"']?(#[0-9a-fA-F]{3,6})", re.IGNORECASE)


class MarkupElement(msgspec.Struct, frozen=True, kw_only=True):
    """One element with its attributes in lower case, its depth, its line, and the text right inside it."""

    tag: str
    attributes: dict[str, str]
    depth: int
    line: int
    text: str = ""


class AccessibilityIssue(msgspec.Struct, frozen=True, kw_only=True):
    line: int
    level: Level
    rule: str
    message: str


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[MarkupElement] = []
        self._open: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name.lower().lstrip(":"): value or "" for name, value in attrs}
        element = MarkupElement(tag=tag, attributes=given, depth=len(self._open), line=self.getpos()[0])
        self.found.append(element)
        if tag not in _VOID:
            self._open.append(len(self.found) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, -1, -1):
            if self.found[self._open[at]].tag == tag:
                del self._open[at:]
                return

    def handle_data(self, data: str) -> None:
        for at in self._open:  # a label or button counts the text of the elements inside it
            before = self.found[at]
            if data.strip():
                self.found[at] = msgspec.structs.replace(before, text=f"{before.text} {data.strip()}".strip()[:200])


def read_elements(source: str) -> list[MarkupElement]:
    """The elements of a source in order. Expressions of a framework count as text."""
    reader = _Reader()
    start = source.find("<")
    skipped = source.count("\n", 0, max(start, 0))
    reader.feed("\n" * skipped + _EXPRESSION.sub(_as_text, source[max(start, 0) :]))
    reader.close()
    return reader.found


def _as_text(found: re.Match[str]) -> str:
    return f'"{{}}"{found[0].count(chr(10)) * chr(10)}' if found.string[: found.start()].endswith("=") else "{}"


def outline(source: str) -> str:
    """The elements as an indented list, with classes and texts."""
    lines = []
    for each in read_elements(source):
        classes = each.attributes.get("class") or each.attributes.get("classname") or ""
        shown = f" .{'.'.join(classes.split())}" if classes else ""
        text = f" {each.text[:60]!r}" if each.text else ""
        lines.append(f"{'  ' * each.depth}- {each.tag}{shown}{text}")
    return "\n".join(lines) or "No elements."


def check_accessibility(source: str, level: Level) -> list[AccessibilityIssue]:
    """Breaches of WCAG that can be seen in the source, up to a level, by line."""
    most = LEVELS.index(level)
    elements = read_elements(source)
    found = (*_name_issues(elements), *_order_issues(elements), *_contrast(source))
    return sorted((each for each in found if LEVELS.index(each.level) <= most), key=lambda each: each.line)


def _name_issues(elements: list[MarkupElement]) -> Iterator[AccessibilityIssue]:
    """Elements without a name, a label, an alternative text or a role."""
    labelled = {
        each.attributes.get("for") or each.attributes.get("htmlfor") for each in elements if each.tag == "label"
    }
    for each in elements:
        given = each.attributes
        is_named = any(given.get(name) for name in ("aria-label", "aria-labelledby", "title"))
        is_field = each.tag in ("input", "select", "textarea") and given.get("type") != "hidden"
        if each.tag == "img" and "alt" not in given:
            yield _issue(each, "A", "1.1.1", "an image has no alt text")
        if is_field and not is_named and given.get("id", "") not in labelled - {None, ""}:
            yield _issue(each, "A", "3.3.2", f"a {each.tag} has no label")
        if each.tag in ("button", "a") and not each.text and not is_named:
            yield _issue(each, "A", "4.1.2", f"a {each.tag} has no name")
        if each.tag in ("div", "span") and "onclick" in given and "role" not in given:
            yield _issue(each, "A", "4.1.2", f"a {each.tag} is clickable and has no role")
        if each.tag == "a" and each.text.lower() in ("click here", "here", "more"):
            yield _issue(each, "AAA", "2.4.9", f"the link text {each.text!r} says nothing")


def _order_issues(elements: list[MarkupElement]) -> Iterator[AccessibilityIssue]:
    """A missing language, a changed order of focus, and headings that skip a level."""
    heading = 0
    for each in elements:
        if each.tag == "html" and not each.attributes.get("lang"):
            yield _issue(each, "A", "3.1.1", "the page has no language")
        if each.attributes.get("tabindex", "").isdecimal() and int(each.attributes["tabindex"]) > 0:
            yield _issue(each, "A", "2.4.3", "a positive tabindex changes the order")
        if match := _HEADING.fullmatch(each.tag):
            if heading and int(match[1]) > heading + 1:
                yield _issue(each, "AA", "2.4.6", f"a heading skips from h{heading} to {each.tag}")
            heading = int(match[1])


def _contrast(source: str) -> Iterator[AccessibilityIssue]:
    """Pairs of colour and background within one rule or attribute."""
    for block in re.finditer(r"\{[^{}]*\}|style=\"[^\"]*\"", source):
        colours = {name.lower()[:5]: value for name, value in _PAIR.findall(block[0])}
        if len(colours) < 2:
            continue
        ratio = contrast_ratio(colours["color"], colours["backg"])
        line = source.count("\n", 0, block.start()) + 1
        for level, least, rule in (("AA", 4.5, "1.4.3"), ("AAA", 7.0, "1.4.6")):
            if ratio < least:
                message = f"contrast {ratio:.1f} is below {least:g}"
                yield AccessibilityIssue(line=line, level=level, rule=rule, message=message)  # type: ignore[arg-type]  # one of LEVELS


def contrast_ratio(first: str, second: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    match = _HEX.match(colour)
    digits = match[1] if match else "000000"
    whole = "".join(each * 2 for each in digits) if len(digits) == 3 else digits
    parts = [int(whole[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _issue(element: MarkupElement, level: Level, rule: str, message: str) -> AccessibilityIssue:
    return AccessibilityIssue(line=element.line, level=level, rule=rule, message=message)


def raw_values(source: str) -> list[tuple[int, str]]:
    """Colours and lengths that are written as values, each with its line."""
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        if "var(" not in line and not line.lstrip().startswith(("--", "$", "//", "/*")):
            found += [(number, value) for pattern in (_COLOUR, _LENGTH) for value in pattern.findall(line)]
    return found


def layout_facts(source: str) -> dict[str, int]:
    """How often a source uses each means of layout."""
    words = {
        "flex": r"display:\s*flex|\bflex\b",
        "grid": r"display:\s*grid|\bgrid\b",
        "absolute": r"position:\s*absolute|\babsolute\b",
        "float": r"float:\s*\w+",
        "fixed_widths": r"\bwidth:\s*\d+px",
    }
    counts = {name: len(re.findall(pattern, source)) for name, pattern in words.items()}
    return {**counts, "breakpoints": len(_MEDIA.findall(source))}
