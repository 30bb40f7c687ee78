"""Plans an edit: finds the text to replace, builds the new text, and shows the diff."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches

import msgspec

from clew.errors import InvalidInput
from clew.fences import clean, is_unseen
from clew.tools.files.text_encoding import Decoded
from clew.trust import printable

MAX_DIFF = 20_000
"""The limit for a shown diff, in characters."""
_CONTEXT = 3
_MOST_COMPARED = 20_000
"""The limit for a line-by-line comparison. A larger change is shown as one block."""
_MOST_SEARCHED = 5_000
_NAMED = 10
_NO_NEWLINE = "\n\\ No newline at end of file\n"

Span = tuple[int, int]


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of an edit. If `reversible`, the edit with both strings swapped restores the file."""

    diff: str
    lines_added: int
    lines_removed: int
    files_affected: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    reversible: bool = True


class EditPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The text after an edit, the changed lines, and a preview."""

    text: str
    lines: tuple[int, ...]
    preview: Preview


def plan_edit(path: str, content: Decoded, old: str, new: str) -> EditPlan:
    """Replace each occurrence of `old`. Line ends may differ from the file, and invisible characters may be missing,
    because readers do not see them.

    Raises InvalidInput if `old` is empty, equal to `new`, or not found; then the hint has the nearest line.
    """
    if not old:
        raise InvalidInput("old_string", "is empty", hint="To write a whole file, use write-file")
    if old == new:
        raise InvalidInput("new_string", "is equal to old_string: nothing would change")
    spans = find_spans(content.text, old)
    if not spans:
        raise InvalidInput("old_string", f"is not in {printable(path, 300)}", hint=_suggestion(content.text, old, new))
    inserted = content.with_newlines(new)
    text = _replaced(content.text, spans, inserted)
    before, after = lines_of(content.text), lines_of(text)
    diff, added, removed = unified_diff(path, before, after)
    is_reversible = bool(inserted) and len(find_spans(text, inserted)) == len(spans)
    preview = Preview(
        diff=diff,
        lines_added=added,
        lines_removed=removed,
        files_affected=(path,),
        warnings=tuple(_warnings(content.text, spans, old)),
        reversible=is_reversible,
    )
    return EditPlan(text=text, lines=tuple(_line_numbers(content.text, spans)), preview=preview)


def lines_of(text: str) -> list[str]:
    """Split into lines with their ends. Only a line feed ends a line."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def ambiguity(lines: Sequence[int]) -> str:
    """Describe how often a text occurs, and on which lines."""
    named = ", ".join(map(str, lines[:_NAMED])) + (" …" if len(lines) > _NAMED else "")
    return f"occurs {len(lines):,} times, on the lines {named}"


def find_spans(text: str, wanted: str) -> list[Span]:
    """Return the positions of a text, from left to right without overlaps. If there is no exact match, invisible
    characters are ignored."""
    if spans := list(_occurrences(text, wanted)):
        return spans
    seen, places = _visible(text)
    target, _ = _visible(wanted)
    if not target:
        return []
    return [(places[start], places[end - 1] + 1) for start, end in _occurrences(seen, target)]


def _occurrences(text: str, wanted: str) -> Iterator[Span]:
    at = text.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = text.find(wanted, at + len(wanted))


def _visible(text: str) -> tuple[str, list[int]]:
    """Return the text without invisible characters, and the original position of each character. A carriage return
    before a line feed is invisible too."""
    unseen = {each for each in set(text) if is_unseen(each)}
    places = [at for at, each in enumerate(text) if each not in unseen]
    return "".join(text[at] for at in places), places


def _replaced(text: str, spans: Sequence[Span], new: str) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def _line_numbers(text: str, spans: Sequence[Span]) -> Iterator[int]:
    ends = [at for at, each in enumerate(text) if each == "\n"]
    for start, _ in spans:
        yield bisect_right(ends, start - 1) + 1


def _warnings(text: str, spans: Sequence[Span], old: str) -> Iterator[str]:
    if len(spans) > 1:
        yield (
            f"old_string {ambiguity(tuple(_line_numbers(text, spans)))}: edit-file needs replace_all, "
            "or more of the surrounding text to change one place only"
        )
    hidden = [each for start, end in spans for each in text[start:end] if is_unseen(each) and each != "\r"]
    if hidden and not any(map(is_unseen, old)):
        yield f"{len(hidden):,} invisible characters are replaced too"


def _suggestion(text: str, old: str, new: str) -> str:
    """Return a hint for a text that was not found: the edit was applied already, or a similar line exists."""
    if new.strip() and find_spans(text, new):
        return "new_string is in the file already: the edit may have been applied. Read the file again"
    wanted = next((line.strip() for line in lines_of(old) if line.strip()), "")
    lines = [line.strip() for line in lines_of(text)[:_MOST_SEARCHED]]
    found = wanted if wanted in lines else next(iter(get_close_matches(wanted, _short(lines), 1, 0.5)), None)
    if not wanted or found is None:
        return "Read the file again and copy the text from it"
    place = f"line {lines.index(found) + 1}: {printable(found, 200)}"
    if found == wanted:
        return f"The text begins like {place}, but differs in whitespace or in later lines. Copy it from the file"
    return f"The most similar is {place}"


def _short(lines: Sequence[str]) -> list[str]:
    return [line for line in dict.fromkeys(lines) if 0 < len(line) <= 500]


def unified_diff(path: str, before: Sequence[str], after: Sequence[str]) -> tuple[str, int, int]:
    """Return the unified diff, cut if it is long, and the numbers of added and removed lines."""
    start, end = _common(before, after)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    is_large = len(old) + len(new) > _MOST_COMPARED
    changes = [("replace", 0, len(old), 0, len(new))] if is_large else SequenceMatcher(None, old, new).get_opcodes()
    moved = [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in changes if tag != "equal"]
    added = sum(d - c for _, _, _, c, d in moved)
    removed = sum(b - a for _, a, b, _, _ in moved)
    shown = printable(path, 300)
    lines = [f"--- a/{shown}\n", f"+++ b/{shown}\n"]
    for hunk in _hunks(moved):
        lines += _hunk_lines(hunk, before, after)
    diff = clean("".join(line if line.endswith("\n") else f"{line}{_NO_NEWLINE}" for line in lines))
    if len(diff) > MAX_DIFF:
        cut = diff.rfind("\n", 0, MAX_DIFF) + 1
        diff = f"{diff[:cut]}[... {len(diff) - cut:,} characters more ...]\n"
    return diff, added, removed


Change = tuple[str, int, int, int, int]


def _common(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal lines at the beginning, and at the end of the rest."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    end = next((at for at in range(most - start) if before[-1 - at] != after[-1 - at]), most - start)
    return start, end


def _hunks(changes: Sequence[Change]) -> list[list[Change]]:
    """Group changes that share context lines."""
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change[1] - hunks[-1][-1][2] <= 2 * _CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _hunk_lines(hunk: Sequence[Change], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    lead = min(_CONTEXT, hunk[0][1])
    tail = min(_CONTEXT, len(before) - hunk[-1][2])
    old, new = (hunk[0][1] - lead, hunk[-1][2] + tail), (hunk[0][3] - lead, hunk[-1][4] + tail)
    yield f"@@ -{_range(*old)} +{_range(*new)} @@\n"
    at = old[0]
    for _, a, b, c, d in hunk:
        yield from (f" {line}" for line in before[at:a])
        yield from (f"-{line}" for line in before[a:b])
        yield from (f"+{line}" for line in after[c:d])
        at = b
    yield from (f" {line}" for line in before[at : old[1]])


def _range(start: int, end: int) -> str:
    size = end - start
    first = start + 1 if size else start
    return str(first) if size == 1 else f"{first},{size}"
