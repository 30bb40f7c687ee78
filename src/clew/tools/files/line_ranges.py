"""Lines of a file as a model is shown them: a range, within a number of characters, with what was left out."""

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
"""Of a larger file no range is looked for."""

_CHUNK = 65_536


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """The lines from `start` to `end`, both counted from 1; `total` is None where the rest was not counted."""

    text: str
    start: int
    end: int
    total: int | None
    is_cut: bool


def take_range(lines: Iterable[str], start: int, end: int | None) -> Range:
    """The lines of the range that fit. Raises InvalidInput where the range is empty or begins after the last line."""
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
    """A range of a file that is too large to be read whole. Raises as `WorkingFolder.opened` does, and InvalidInput
    for a binary file."""
    with folder.opened(real) as (file, about):
        if about.st_size > MAX_SCANNED:
            raise InvalidInput("path", f"{printable(real, 300)} has over {MAX_SCANNED:,} bytes")
        head = file.read(HEAD_BYTES)
        if is_binary(head):
            raise InvalidInput("path", f"{printable(real, 300)} is binary ({about.st_size:,} bytes)")
        file.seek(0)
        return take_range(_stream(file), start, end)


def _stream(file: BinaryIO) -> Iterator[str]:
    """Lines, of which only the beginning is kept."""
    line = b""
    while chunk := file.readline(_CHUNK):
        line = line if len(line) > 4 * MAX_LINE else line + chunk
        if chunk.endswith(b"\n"):
            yield line.decode("utf-8", errors="replace").rstrip("\r\n")
            line = b""
    if line:
        yield line.decode("utf-8", errors="replace")


def render_range(path: str, found: Range, total: int | None, about: str) -> str:
    """The lines behind a fence, below a line that says what they are and how to go on."""
    known = found.total if total is None else total
    of = f" of {known:,}" if known is not None else ""
    notes = [f"{printable(path, 300)}, lines {found.start:,} to {found.end:,}{of} ({about})."]
    if known == 0:
        notes = [f"{printable(path, 300)} is empty ({about})."]
    if found.is_cut:
        notes.append(f"Go on with start_line {found.end + 1}.")
    masked = mask_document(found.text)
    if MASK in masked:
        notes.append("What looks like a key is masked.")
    shown = clean(masked)
    if len(shown) < len(masked):
        notes.append("Characters that cannot be seen are left out.")
    return f"{' '.join(notes)}\n{fenced(shown, 'text')}"


def _cut(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [... {len(line) - MAX_LINE:,} characters more]"
