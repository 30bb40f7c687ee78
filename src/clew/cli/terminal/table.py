"""Tables on a terminal: which columns fit, and how wide each is."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

GAP = 2
NARROWEST = 12
"""A column that is wider may be cut down to this before it is left out."""


def lay_out(rows: Sequence[Sequence[str]], *, main: int | None, spare: Sequence[int]) -> list[str]:
    """Format rows as lines that fit the terminal. The first row is the head."""
    natural = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths = fit(natural, shutil.get_terminal_size().columns, main=main, spare=spare)
    gap = " " * GAP
    return [gap.join(_cut(row[at], width) for at, width in widths.items()).rstrip() for row in rows]


def fit(natural: Sequence[int], total: int, *, main: int | None, spare: Sequence[int]) -> dict[int, int]:
    """The columns to show, in order, each with its width. The `main` column gets the width that it needs, up to half of
    the terminal or 40 if that is more. The `spare` columns are narrowed or dropped, in that order, until it fits.
    Without a main column, each column has its natural width.
    """
    widths = dict(enumerate(natural))
    if main is None:
        return widths
    wanted = min(natural[main], max(40, total // 2))
    for column in spare:
        lacking = wanted - _room(widths, total, main)
        if lacking <= 0:
            break
        if widths[column] - lacking >= NARROWEST:
            widths[column] -= lacking
        else:
            del widths[column]
    widths[main] = max(min(natural[main], _room(widths, total, main)), 1)
    return widths


def _room(widths: dict[int, int], total: int, main: int) -> int:
    """The width that the other columns leave to the main one."""
    return total - sum(width for column, width in widths.items() if column != main) - GAP * (len(widths) - 1)


def _cut(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
