"""Printing: tables and colours on a terminal, plain lines otherwise, and never a control character from a record."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What moves the cursor, changes colours or reverses the text of a terminal; tab and line feed are not among it."""


def clean(text: str) -> str:
    """A text without power over the terminal: each control character is spelled out."""
    return _UNSAFE.sub(lambda found: _spelled(found.group(), "\\x"), text)


def clean_json(text: str) -> str:
    """The same for JSON, which stays the same value: the characters become escapes."""
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


def say(text: str = "") -> None:
    """One line of the result."""
    sys.stdout.write(f"{clean(text)}\n")


def note(text: str) -> None:
    """One line beside the result."""
    sys.stderr.write(f"{clean(text)}\n")


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
    if not is_terminal():
        sys.stdout.write(text + "\n")
        return
    from rich.highlighter import JSONHighlighter
    from rich.text import Text

    coloured = Text(text)
    JSONHighlighter().highlight(coloured)
    open_console().print(coloured, soft_wrap=True)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], *, wide: Mapping[int, int] | None = None) -> None:
    """A table on a terminal, otherwise lines with tabs and without a head. `wide` gives columns a share of the room
    that the others leave."""
    wide = wide or {}
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not is_terminal():
        for row in cells:
            sys.stdout.write("\t".join(row) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=bool(wide))
    for at, column in enumerate(columns):
        needed = max((len(row[at]) for row in cells), default=0)
        table.add_column(
            column,
            no_wrap=True,
            overflow="ellipsis",
            ratio=wide.get(at),
            min_width=None if at in wide else needed,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    open_console().print(table)


def open_console(*, errors: bool = False) -> Console:
    """A rich console; it heeds NO_COLOR and TERM by itself."""
    # rich takes a tenth of a second to import, and is of use on a terminal only
    from rich.console import Console

    return Console(file=sys.stderr if errors else sys.stdout, highlight=False, markup=False, emoji=False)


def show_time(moment: datetime) -> str:
    """Local time for a person, RFC 3339 in UTC for a program."""
    if is_terminal():
        return moment.astimezone().strftime("%Y-%m-%d %H:%M")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def short_id(id: str) -> str:
    """The last part of an id, which commands accept, for a person; all of it for a program."""
    return id.rpartition("-")[2] if is_terminal() else id


def count(number: int, noun: str) -> str:
    """`1 breadcrumb`, `1,204 breadcrumbs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
