"""Colours of CSS by value: different notations of one colour are equal."""

from __future__ import annotations

import colorsys
import re
from typing import NamedTuple

_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_CALL = re.compile(r"(rgb|hsl)a?\(([^()]{1,100})\)", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?(?:\d{1,6}(?:\.\d{0,10})?|\.\d{1,10}))(%|deg)?")
_TRIPLE = re.compile(r"\d{1,3}(?:\.\d+)?(?:deg)?\s+\d{1,3}(?:\.\d+)?%\s+\d{1,3}(?:\.\d+)?%")
_NAMES = {
    "white": "#fff", "black": "#000", "red": "#f00", "green": "#008000", "blue": "#00f", "yellow": "#ff0",
    "orange": "#ffa500", "purple": "#800080", "gray": "#808080", "grey": "#808080", "silver": "#c0c0c0",
    "maroon": "#800000", "navy": "#000080", "teal": "#008080", "olive": "#808000", "lime": "#0f0", "aqua": "#0ff",
    "cyan": "#0ff", "magenta": "#f0f", "fuchsia": "#f0f", "transparent": "#0000",
}  # fmt: skip


class Colour(NamedTuple):
    """Red, green, blue and opacity, each from 0 to 255."""

    red: int
    green: int
    blue: int
    opacity: int = 255

    def distance(self, other: Colour) -> int:
        return sum((mine - theirs) ** 2 for mine, theirs in zip(self, other, strict=True))


def read_colour(value: str) -> Colour | None:
    """The colour of `#rgb`, `#rrggbb`, with or without opacity, `rgb()`, `hsl()`, the three bare parts of `hsl()`, or a
    basic name; None for anything else."""
    text = value.strip().lower()[:120]
    text = _NAMES.get(text, text)
    if found := _HEX.fullmatch(text):
        digits = found[1] if len(found[1]) >= 6 else "".join(digit * 2 for digit in found[1])
        return Colour(*(int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)))
    if found := _CALL.fullmatch(text):
        return _from_parts(found[1], found[2])
    return _from_parts("hsl", text) if _TRIPLE.fullmatch(text) else None


def _from_parts(kind: str, inner: str) -> Colour | None:
    parts = [_NUMBER.fullmatch(part) for part in re.split(r"[\s,/]+", inner.strip())]
    numbers = [(float(part[1]), part[2] or "") for part in parts if part is not None]
    if len(parts) not in (3, 4) or len(numbers) != len(parts):
        return None
    opacity = _share(*numbers[3], 1.0) if len(numbers) == 4 else 1.0
    if kind == "rgb":
        shares = [_share(number, unit, 255.0) for number, unit in numbers[:3]]
    else:
        hue, saturation, light = (number for number, _ in numbers[:3])
        shares = list(colorsys.hls_to_rgb(hue % 360 / 360, _share(light, "%", 1), _share(saturation, "%", 1)))
    return Colour(*(round(255 * share) for share in (*shares, opacity)))


def _share(number: float, unit: str, whole: float) -> float:
    return min(1.0, max(0.0, number / 100 if unit == "%" else number / whole))
