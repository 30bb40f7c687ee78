"""An answer of `ask` for a person: cited lines, a few lines of their text, and tools that match the question."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.catalog.operations.answers import MORE, NOTHING_AT_ALL, CatalogAnswer, CatalogEntry, Cited, Section
from clew.cli.project import is_empty_project
from clew.cli.terminal.markdown import has_tags, plain_text, print_markdown
from clew.cli.terminal.output import CYAN, DIM, clean, is_terminal, paint, print_json, print_lines, say
from clew.cli.terminal.source_lines import SourceLines

RESOURCES, TOOLS = 5, 2
EXCERPT, EXCERPTS = 6, 10
"""The maximum number of excerpt lines of the best source, and of all sources together."""
ROWS, FIRST_ROWS = 2, 4
"""The maximum number of terminal rows for a citation, and for the first citation."""
NEAR = 0.5
"""A second tool is named if it has at least this share of the closest tool's score."""
REPOSITORY = "repo"
NOTHING = "Nothing here is close to that question. Try other words, or a name from the code."
DENIAL = "Nothing"
"""The beginning of a note that the files have no answer, with the nearest places."""
EMPTY = "Add files, or go to a project (cd PROJECT), and ask again."


def print_answer(
    answer: CatalogAnswer, question: str, root: Path, *, agent: bool, json: bool, files: SourceLines | None = None
) -> None:
    """Print the answer for people, as an agent gets it, or as JSON. `files` are the files below `root`."""
    if json:
        print_json(answer)
    elif agent:
        print_markdown(answer.markdown)
    elif not answer.known and not _has_resources(answer) and is_empty_project(root):
        say(f"{root} is empty. {EMPTY}")
    else:
        print_lines(render_for_people(answer, question, root, files))


def _has_resources(answer: CatalogAnswer) -> bool:
    return any(section.resources for section in answer.sections)


def render_for_people(answer: CatalogAnswer, question: str, root: Path, files: SourceLines | None = None) -> str:
    """The answer as lines. `CatalogAnswer.markdown` is the form for agents."""
    blocks = [
        _before(answer),
        [*_cited_lines(answer.known, question, files or SourceLines(root))],
        [*_resource_lines(answer)],
        [paint(clean(note), DIM) for note in answer.notes if note.endswith(MORE)],
        _tool_lines(answer),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) or NOTHING


def _before(answer: CatalogAnswer) -> list[str]:
    """Lines before the citations: the text of a model, notes, and a note if nothing matches."""
    notes = [paint(clean(note), DIM) for note in answer.notes if not note.endswith(MORE)]
    said = [plain_text(line) for line in answer.text.splitlines() if line.strip()]
    if answer.is_relevant or _is_denied(answer):
        return [*said, *notes]
    return [*said, *notes, NOTHING_AT_ALL if NOTHING_AT_ALL in answer.hint else NOTHING]


def _is_denied(answer: CatalogAnswer) -> bool:
    return any(note.startswith(DENIAL) for note in answer.notes)


def _cited_lines(known: Sequence[Cited], question: str, files: SourceLines) -> Iterator[str]:
    """Each citation, and below it lines of its text that it does not quote already."""
    left = EXCERPTS
    for at, item in enumerate(known):
        place = files.place(item.path, item.start) if item.path else paint(clean(item.place), CYAN)
        length = len(f"{item.path}:{item.start}" if item.path else item.place)
        text = _text_of(item, files)
        yield from _hanging(place, length, text, FIRST_ROWS if at == 0 else ROWS)
        is_line = item.start == item.end
        most = min(left, EXCERPT if at == 0 else 1 if is_line else 0)
        if item.path and most and not (is_line and _letters(files.line(item.path, item.start)) in _letters(text)):
            lines = files.excerpt(item.path, item.start, item.end, most, about=question, blob=item.blob)
            left -= len(lines)
            yield from lines


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def first_line(answer: CatalogAnswer, root: Path) -> str:
    """The best citation on one line, with its place; empty without one."""
    for item in answer.known[:1]:
        place = f"{item.path}:{item.start}" if item.path else item.place
        return f"{clean(place)}  {_text_of(item, SourceLines(root))}"
    return ""


def _text_of(item: Cited, files: SourceLines) -> str:
    """The text of a citation without markup. If the cut is within HTML tags, the line begins at its first words."""
    if item.path and has_tags(item.text):
        found = files.prose(item.path, item.start, item.end)
        if found:
            return clean(found)
    owner = "" if not item.owner or item.owner in item.text else f"{item.owner}: "
    return plain_text(f"{owner}{item.text}")


def _hanging(head: str, length: int, text: str, rows: int) -> list[str]:
    """A head and a text beside it. On a terminal the text wraps to at most `rows` rows and is truncated with `…`.
    `length` is the visible length of the head."""
    if not is_terminal():
        return [f"{head}  {text}"]
    width = max(shutil.get_terminal_size().columns, 40)
    wrapped = textwrap.wrap(
        text,
        width,
        initial_indent=" " * min(length + 2, width - 10),
        subsequent_indent="    ",
        max_lines=rows,
        placeholder="…",
        break_on_hyphens=False,
    )
    if not wrapped:
        return [head]
    return [f"{head}  {wrapped[0].lstrip()}", *wrapped[1:]]


def _resource_lines(answer: CatalogAnswer) -> Iterator[str]:
    """The closest resources. Tools of the repository are left out if files of the repository are cited, or have no
    answer."""
    is_settled = bool(answer.known) or _is_denied(answer)
    found = [
        each
        for section in answer.sections
        for each in section.resources
        if not is_settled or section.domain != REPOSITORY
    ]
    for each in sorted(found, key=lambda each: -each.score)[:RESOURCES]:
        yield from _hanging(paint(each.route, CYAN), len(each.route), plain_text(each.description), ROWS)


def _tool_lines(answer: CatalogAnswer) -> list[str]:
    """The closest tools by name; described if the answer has nothing else."""
    tools = _relevant_tools(answer.sections)
    if not tools:
        return []
    if answer.known or any(section.resources for section in answer.sections):
        return [f"Tools: {', '.join(paint(each.route, CYAN) for each in tools)}"]
    return [
        row
        for each in tools
        for row in _hanging(paint(each.route, CYAN), len(each.route), plain_text(each.description), ROWS)
    ]


def _relevant_tools(sections: Sequence[Section]) -> list[CatalogEntry]:
    """At most two tools, those that only read first. A tool is relevant if it is close to the question, no farther
    than the closest resource, and not much farther than the closest tool."""
    tools = sorted((each for section in sections for each in section.tools), key=lambda each: -each.score)
    if not tools:
        return []
    closest_resource = max((each.score for section in sections for each in section.resources), default=0.0)
    least = max(1.0, closest_resource, NEAR * tools[0].score)
    relevant = [each for each in tools if each.score >= least][:TOOLS]
    return sorted(relevant, key=lambda each: not each.reads_only)
