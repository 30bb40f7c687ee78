"""Lines of the project's files as a terminal shows them: a place that can be clicked, and highlighted code."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from clew.cli.terminal.markdown import prose_of
from clew.cli.terminal.output import CYAN, DIM, clean, link, paint, wants_styles
from clew.lazy_pattern import lazy_pattern

MAX_LINE = 160
FEW_WORDS = 4
_WORD = lazy_pattern(r"[a-z0-9]{3,}")
_IMPORT = lazy_pattern(r"\s*(?:import|from|#include|using|use|require)\b")
_STEM = 5
"""The number of leading letters that are compared to match a word of the question with a word of a line."""

ReadLines = tuple[str, list[str]]
"""The blob id of a file, and its lines."""


class SourceLines:
    """Reads files below a folder, each once; those in `known` are read already. Keys in them are masked."""

    def __init__(self, root: Path, known: Mapping[str, ReadLines] | None = None) -> None:
        self._root = Path(os.path.realpath(root))
        self._files = dict(known or {})

    def place(self, path: str, line: int) -> str:
        """`path:line`, which opens the file when it is clicked on a terminal."""
        return link(paint(clean(f"{path}:{line}"), CYAN), self._root / path, line)

    def line(self, path: str, number: int) -> str:
        """One line without its indentation; empty if there is none."""
        lines = self._read(path)[1]
        return _cut(lines[number - 1].strip()) if 0 < number <= len(lines) else ""

    def best_line(self, path: str, about: str) -> int:
        """The number of the line that fits a text best, by words that few other lines of the file have. Among equal
        lines it is the first, preferably not an import; 1 if no line has a word of the text."""
        from clew.trail.search.text import STOP  # with the rest of the trail

        wanted = _stems(" ".join(word for word in _WORD.findall(about.lower()) if word not in STOP))
        lines = self._read(path)[1]
        held = [wanted & _stems(line) for line in lines]
        lines_with = Counter(stem for stems in held for stem in stems)
        scores = [
            (sum(1 / lines_with[stem] for stem in stems), not _IMPORT.match(line))
            for stems, line in zip(held, lines, strict=True)
        ]
        return scores.index(max(scores)) + 1 if lines_with else 1

    def prose(self, path: str, first: int, last: int) -> str:
        """The first line of a range that has a few words beside its markup; empty if there is none."""
        lines = map(prose_of, self._read(path)[1][first - 1 : last])
        return next((_cut(line) for line in lines if len(line.split()) >= FEW_WORDS), "")

    def excerpt(self, path: str, first: int, last: int, most: int, *, about: str = "", blob: str = "") -> list[str]:
        """At most `most` lines of a range, numbered and highlighted: those with most words of `about`.

        Returns nothing if the file is gone or is no longer the content `blob`.
        """
        found, lines = self._read(path)
        if not lines or (blob and blob != found):
            return []
        last = min(last, len(lines))
        start = _best_start(lines, first, last, most, about)
        end = min(start + most - 1, last)
        while end > start and not lines[end - 1].strip():
            end -= 1
        shown = _dedented([_cut(line) for line in lines[start - 1 : end]])
        width = len(str(end))
        numbers = (paint(f"{number:>{width}}", DIM) for number in range(start, end + 1))
        return [f"    {number}  {line}" for number, line in zip(numbers, highlight(shown, path), strict=True)]

    def _read(self, path: str) -> ReadLines:
        if path not in self._files:
            self._files[path] = read_lines(self._root, path)
        return self._files[path]


def read_lines(root: Path, path: str) -> ReadLines:
    """The blob id and the lines of a file; both empty for a file that is not read."""
    from clew.knowledge.code.file_content import read_content, readable_lines  # numpy is slow to load

    found = read_content(str(root), path)
    return (found.blob, readable_lines(found.body)) if found is not None else ("", [])


def highlight(lines: list[str], path: str) -> list[str]:
    """Lines of a file without control characters; highlighted on a terminal."""
    safe = [clean(line) for line in lines]
    if not wants_styles(sys.stdout):
        return safe
    # only a terminal pays for the lexers
    from rich.console import Console
    from rich.syntax import Syntax

    code = "\n".join(safe)
    text = Syntax("", Syntax.guess_lexer(path, code), theme="ansi_dark", background_color="default").highlight(code)
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False)
    for line in text.split("\n", allow_blank=True)[: len(safe)]:
        console.print(line, end="\n", soft_wrap=True, highlight=False)
    return [line.rstrip() for line in drawn.getvalue().split("\n")[: len(safe)]]


def _best_start(lines: list[str], first: int, last: int, most: int, about: str) -> int:
    """The first line of the window with the most words of a text, ignoring markup. Among equal windows, the first that
    starts with a line of words wins."""
    wanted = _stems(about)
    words = [prose_of(line) for line in lines[first - 1 : last]]
    held = [wanted & _stems(line) for line in words]
    starts = range(max(1, len(held) - most + 1))
    best = max(starts, key=lambda at: (len(set().union(*held[at : at + most])), bool(words[at]), -at), default=0)
    return first + best


def _stems(text: str) -> set[str]:
    words = _WORD.findall(text.lower())
    return {(word[:-1] if word.endswith("s") else word)[:_STEM] for word in words}


def _dedented(lines: list[str]) -> list[str]:
    expanded = [line.expandtabs(4) for line in lines]
    margin = min((len(line) - len(line.lstrip()) for line in expanded if line.strip()), default=0)
    return [line[margin:].rstrip() for line in expanded]


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
