"""Ranges of lines for a model, within a limit of characters, with a note on omitted text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from clew.errors import InvalidInput
from clew.fences import clean, fenced
from clew.secrecy import MASK, mask_document
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.text_encoding import HEAD_BYTES, is_binary
from clew.trust import printable

MAX_CHARACTERS = 60_000
MAX_LINE = 2_000
MAX_SCANNED = 1_000_000_000
"""The limit for a search for a range, in bytes."""

_CHUNK = 65_536


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """The lines from `start` to `end`, 1-based; `total` is None if the rest was not counted."""

    text: str
    start: int
    end: int
    total: int | None
    is_cut: bool


def take_range(lines: Iterable[str], start: int, end: int | None) -> Range:
    """Return the lines of the range that fit. Raises InvalidInput if it is empty or begins after the last line."""
    if end is not None and end < start:
        raise InvalidInput("end_line", f"{end} is before start_line {start}")
    taken: list[str] = []
    room, number = MAX_CHARACTERS, 0
    is_cut = False
    for number, line in enumerate(lines, 1):
        if number < start:
            continue
        shown = _cut(line)
        room -= len(shown) + 1
        if (end is not None and number > end) or (room < 0 and taken):
            is_cut = end is None or number <= end
            return Range(text="\n".join(taken), start=start, end=number - 1, total=None, is_cut=is_cut)
        taken.append(shown)
    if number < start and (start > 1 or number):
        raise InvalidInput("start_line", f"{start:,} is after the last line, {number:,}")
    return Range(text="\n".join(taken), start=start, end=number, total=number, is_cut=is_cut)


def read_large(folder: WorkingFolder, real: str, start: int, end: int | None) -> Range:
    """Read a range of a file that is too large to read completely. Raises the errors of `WorkingFolder.opened`, and
    InvalidInput for a binary file."""
    with folder.opened(real) as (file, about):
        if about.st_size > MAX_SCANNED:
            raise InvalidInput("path", f"{printable(real, 300)} has more than {MAX_SCANNED:,} bytes")
        head = file.read(HEAD_BYTES)
        if is_binary(head):
            raise InvalidInput("path", f"{printable(real, 300)} is binary ({about.st_size:,} bytes)")
        file.seek(0)
        return take_range(_stream(file), start, end)


def _stream(file: BinaryIO) -> Iterator[str]:
    """Yield the beginning of each line."""
    line = b""
    while chunk := file.readline(_CHUNK):
        line = line if len(line) > 4 * MAX_LINE else line + chunk
        if chunk.endswith(b"\n"):
            yield line.decode("utf-8", errors="replace").rstrip("\r\n")
            line = b""
    if line:
        yield line.decode("utf-8", errors="replace")


def render_range(path: str, found: Range, total: int | None, about: str) -> str:
    """Format the lines in a fence, below a line with the range and the next start line."""
    known = found.total if total is None else total
    of = f" of {known:,}" if known is not None else ""
    notes = [f"{printable(path, 300)}, lines {found.start:,} to {found.end:,}{of} ({about})."]
    if known == 0:
        notes = [f"{printable(path, 300)} is empty ({about})."]
    if found.is_cut:
        notes.append(f"Continue with start_line {found.end + 1}.")
    masked = mask_document(found.text)
    if MASK in masked:
        notes.append("Text that looks like a key is masked.")
    shown = clean(masked)
    if len(shown) < len(masked):
        notes.append("Invisible characters are left out.")
    return f"{' '.join(notes)}\n{fenced(shown, 'text')}"


def _cut(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [... {len(line) - MAX_LINE:,} characters more]"
