"""Printing: tables and colours on a terminal, plain lines otherwise, and never a control character from a record."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from clew.lazy_pattern import lazy_pattern

SHORT = 8
"""The number of characters of an id that a person sees, unless two ids need more to differ."""

_UNSAFE = lazy_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or reverse the text of a terminal; not tab and line feed."""


_TOKEN = lazy_pattern(r'("(?:[^"\\]|\\.)*")(:?)|(-?\d[\d.eE+-]*|true|false|null)')
"""A text of JSON, with a colon if it is a name, or another plain value."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a wait for the person at the terminal at once. Otherwise asyncio would only mark the command as
    cancelled, which has no effect before the wait is over."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def clean(text: str) -> str:
    """A text that is safe to print: each control character is spelled out."""
    return _UNSAFE.sub(lambda found: _spelled(found.group(), "\\x"), text)


def clean_json(text: str) -> str:
    """Replace control characters in JSON by escapes. The value stays the same."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def one_line(text: str) -> str:
    """A text for a cell of a table."""
    return clean(" ".join(text.split()))


def _spelled(character: str, prefix: str) -> str:
    code = ord(character)
    return f"{prefix}{code:02x}" if code < 256 else f"\\u{code:04x}"


def is_terminal() -> bool:
    """Whether a person looks at the output."""
    return sys.stdout.isatty()


def can_ask() -> bool:
    """Whether a person sits at a terminal, to read and to type."""
    return sys.stdin.isatty() and is_terminal()


def agrees(question: str) -> bool:
    """Ask the person at the terminal. Returns True only for yes."""
    with interruptible():
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def say(text: str = "", style: str = "") -> None:
    """One line of the result."""
    shown = clean(text)
    sys.stdout.write(f"{paint(shown, style) if style else shown}\n")


def say_wrapped(text: str, style: str = "") -> None:
    """One line of the result; on a terminal its words wrap, below the beginning of the line."""
    for line in wrap(text) if is_terminal() else (text,):
        say(line, style)


def wrap(text: str) -> list[str]:
    """A line as lines that fit the terminal. No word is broken."""
    width = shutil.get_terminal_size().columns
    below = " " * (len(text) - len(text.lstrip()) + 4)
    return textwrap.wrap(text, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False) or [""]


def print_lines(text: str) -> None:
    """Print lines of the result that are already cleaned and coloured."""
    sys.stdout.write(f"{text}\n")


def note(text: str, *, dim: bool = False) -> None:
    """One line beside the result."""
    shown = clean(text)
    sys.stderr.write(f"{paint(shown, DIM, sys.stderr) if dim else shown}\n")


BOLD, DIM, RED, GREEN, YELLOW, CYAN, BLUE = "1", "2", "31", "32", "33", "36", "1;34"


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """A text in a style if the stream is a terminal with styles, otherwise the plain text."""
    return f"\x1b[{style}m{text}\x1b[0m" if wants_styles(stream or sys.stdout) else text


def link(text: str, path: Path, line: int = 0) -> str:
    """A text that opens a file when it is clicked (OSC 8), if standard output is a terminal with styles.

    The number of the line is the fragment of the address, as editors and terminals read it.
    """
    if not wants_styles(sys.stdout):
        return text
    address = path.absolute().as_uri() + (f"#{line}" if line else "")
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def wants_styles(stream: TextIO) -> bool:
    """Whether the stream is a terminal, and neither NO_COLOR nor TERM=dumb is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_json(value: Any) -> None:
    """A value as JSON on one line, indented on a terminal."""
    # msgspec is not needed for help
    import msgspec

    encoded = msgspec.json.encode(value)
    if is_terminal():
        encoded = msgspec.json.format(encoded, indent=2)
    sys.stdout.write(clean_json(encoded.decode()) + "\n")


def print_content(value: Any) -> None:
    """A JSON value for reading: indented, coloured on a terminal."""
    import msgspec

    text = clean_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    sys.stdout.write((_TOKEN.sub(_paint_token, text) if wants_styles(sys.stdout) else text) + "\n")


def _paint_token(token: re.Match[str]) -> str:
    text, colon, value = token.groups()
    return paint(value, CYAN) if value else paint(text, BLUE if colon else GREEN) + colon


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    main: int | None = None,
    spare: Sequence[int] = (),
    links: Sequence[tuple[Path, int]] = (),
) -> None:
    """Print a table with a header: on a terminal the columns that fit, otherwise tab-separated lines. Prints nothing if
    there are no rows.

    See `fit` for `main` and `spare`. `links` are the file and line that the first cell of each row opens.
    """
    cells = [[one_line(cell) for cell in row] for row in (columns, *rows)]
    if not rows:
        return
    if not is_terminal():
        for row in cells:
            sys.stdout.write("\t".join(row) + "\n")
        return
    from clew.cli.terminal.table import lay_out  # measures with rich, which is of use on a terminal only

    head, *lines = lay_out(cells, main=main, spare=spare)
    firsts = [row[0] for row in cells[1:]]
    for at, (path, line) in enumerate(links):
        if lines[at].startswith(firsts[at]):
            lines[at] = link(firsts[at], path, line) + lines[at][len(firsts[at]) :]
    sys.stdout.write("\n".join((paint(head, BOLD), *lines)) + "\n")


def show_time(moment: datetime) -> str:
    """Local time for a person, RFC 3339 in UTC for a program."""
    if is_terminal():
        return moment.astimezone().strftime("%Y-%m-%d %H:%M")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def show_day(moment: datetime, now: datetime) -> str:
    """A time for a column of a table. A person sees minutes if it is in this year, otherwise the day."""
    local = moment.astimezone()
    if not is_terminal():
        return show_time(moment)
    return f"{local:%b %d %H:%M}" if local.year == now.astimezone().year else f"{local:%Y-%m-%d}"


def short_ids(ids: Sequence[str]) -> list[str]:
    """For a person, the ends of ids, long enough to distinguish them; for a program, the full ids. Commands accept
    both. The end is used because ids begin with the time, which neighbours share.
    """
    if not is_terminal():
        return list(ids)
    lengths = range(SHORT, max(map(len, ids), default=SHORT) + 1)
    length = next((length for length in lengths if len({id[-length:] for id in ids}) == len(set(ids))), SHORT)
    return [id[-length:] for id in ids]


def count(number: int, noun: str) -> str:
    """`1 breadcrumb`, `1,204 breadcrumbs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
