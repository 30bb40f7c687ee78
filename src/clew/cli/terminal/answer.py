"""An answer of `ask` for a person: citations first, then resources, then a few lines about tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.catalog.operations.answers import CatalogAnswer, CatalogEntry, Section
from clew.catalog.operations.markdown import cited_line, known_lines
from clew.catalog.operations.text import inline

RESOURCES, TOOLS, NAMES = 8, 3, 5
"""Resources, tools with a description, and further tools by name that are shown."""
DESCRIPTION = 120


def render_brief(answer: CatalogAnswer) -> str:
    """Return the short markdown of an answer. `CatalogAnswer.markdown` has all tools with their parameters."""
    known = [*known_lines(answer.notes, answer.text), *map(cited_line, answer.known)]
    parts = [
        answer.hint,
        _block("Known", known),
        _block("Resources", _resource_lines(answer)),
        _block("Tools", _tool_lines(answer.sections)),
        f"*{answer.cut}*" if answer.cut else "",
        f"*Handle: `{answer.handle}`. Pass it to `clew get` and `clew ask` with --handle.*",
    ]
    return "\n\n".join(filter(None, parts))


def _block(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((f"## {heading}", *lines)) if lines else ""


def _resource_lines(answer: CatalogAnswer) -> list[str]:
    """The closest resources, without a description that a citation above already quotes."""
    quoted = " ".join(cited.text for cited in answer.known)
    found = sorted((each for section in answer.sections for each in section.resources), key=lambda each: -each.score)
    return [_line(each, "" if each.description in quoted else each.description) for each in found[:RESOURCES]]


def _tool_lines(sections: Sequence[Section]) -> list[str]:
    described = _closest(sections)[:TOOLS]
    shown = {each.route for each in described}
    names = [route for route in _names(sections) if route not in shown][:NAMES]
    more = sum(len(each.tools) + len(each.folded) + each.more for each in sections) - len(described) - len(names)
    lines = [_line(each, inline(each.description, DESCRIPTION)) for each in described]
    rest = ", ".join(f"`{name}`" for name in names)
    if more:
        rest = f"{rest} and {more} more" if rest else f"{more} more"
    return [*lines, f"- also: {rest} (`--tools` describes them all)"] if rest else lines


def _closest(sections: Sequence[Section]) -> list[CatalogEntry]:
    """Tools that match the question, closest first; without a match, the first tool of each domain."""
    tools = sorted((each for section in sections for each in section.tools), key=lambda each: -each.score)
    return [each for each in tools if each.score > 0] or [section.tools[0] for section in sections if section.tools]


def _names(sections: Sequence[Section]) -> Iterator[str]:
    """All routes of tools that the answer names: the first of each domain, then the second, and so on."""
    columns = [[*(each.route for each in section.tools), *section.folded] for section in sections]
    for at in range(max(map(len, columns), default=0)):
        yield from (column[at] for column in columns if at < len(column))


def _line(entry: CatalogEntry, description: str) -> str:
    return f"- **`{entry.route}`**: {description}" if description else f"- **`{entry.route}`**"
