"""Tables in markdown."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence


def tell(text: str) -> None:
    """A line about the progress, beside the results."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    shown = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown)


def with_best(values: Sequence[float | None]) -> list[str]:
    """Numbers with three digits, the best of them bold; nothing for one that is missing."""
    best = max((value for value in values if value is not None), default=0.0)
    return ["" if value is None else f"**{value:.3f}**" if value == best else f"{value:.3f}" for value in values]


def average(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
