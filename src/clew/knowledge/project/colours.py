"""Colours by value: what is written in different ways and looks the same is the same."""

from __future__ import annotations

import colorsys
import re
from typing import NamedTuple

_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_CALL = re.compile(r"(rgb|hsl)a?\(([^()]{1,100})\)", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?(?:\d{1,6}(?:\.\d{0,10})?|\.\d{1,10}))(%|deg)?")
_TRIPLE = re.compile(r"\d{1,3}(?:\.\d+)?(?:deg)?\s+\d{1,3}(?:\.\d+)?%\s+\d{1,3}(?:\.\d+)?%")
_BASIC = {
    "white": "#ffffff",
    "black": "#000000",
    "red": "#ff0000",
    "green": "#008000",
    "blue": "#0000ff",
    "yellow": "#ffff00",
    "orange": "#ffa500",
    "purple": "#800080",
    "gray": "#808080",
    "grey": "#808080",
    "silver": "#c0c0c0",
    "maroon": "#800000",
    "navy": "#000080",
    "teal": "#008080",
    "olive": "#808000",
    "lime": "#00ff00",
    "aqua": "#00ffff",
    "cyan": "#00ffff",
    "magenta": "#ff00ff",
    "fuchsia": "#ff00ff",
    "transparent": "#00000000",
}


class Colour(NamedTuple):
    """Red, green, blue and opacity, each from 0 to 255."""

    red: int
    green: int
    blue: int
    opacity: int = 255

    def distance(self, other: Colour) -> int:
        return sum((mine - theirs) ** 2 for mine, theirs in zip(self, other, strict=True))


def read_colour(value: str) -> Colour | None:
    """The colour that a value of CSS is: `#rgb`, `#rrggbb`, with opacity or without, `rgb()`, `hsl()`, the three bare
    parts of `hsl()`, or a basic name; None for anything else."""
    text = value.strip().lower()[:120]
    text = _BASIC.get(text, text)
    if found := _HEX.fullmatch(text):
        return _from_hex(found[1])
    if found := _CALL.fullmatch(text):
        return _from_call(found[1], found[2])
    return _from_call("hsl", text) if _TRIPLE.fullmatch(text) else None


def _from_hex(digits: str) -> Colour:
    if len(digits) < 6:
        digits = "".join(digit * 2 for digit in digits)
    return Colour(*(int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)))


def _from_call(kind: str, inner: str) -> Colour | None:
    parts = [_NUMBER.fullmatch(part) for part in re.split(r"[\s,/]+", inner.strip())]
    if len(parts) not in (3, 4) or None in parts:
        return None
    numbers = [(float(part[1]), part[2] or "") for part in parts if part is not None]
    opacity = _scaled(*numbers[3], 1.0) if len(numbers) == 4 else 1.0
    if kind == "rgb":
        shares = [_scaled(number, unit, 255.0) for number, unit in numbers[:3]]
    else:
        hue, saturation, light = (number for number, _ in numbers[:3])
        shares = list(colorsys.hls_to_rgb(hue % 360 / 360, _clamp(light / 100), _clamp(saturation / 100)))
    return Colour(*(round(255 * _clamp(share)) for share in (*shares, opacity)))


def _scaled(number: float, unit: str, whole: float) -> float:
    return number / 100 if unit == "%" else number / whole


def _clamp(share: float) -> float:
    return min(1.0, max(0.0, share))
