"""Which kind of design token a name and a value make, and what it is called within that kind."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from clew.knowledge.project.colours import read_colour

Category = Literal["colors", "spacing", "typography", "shadows", "radii", "other"]

_BY_NAME: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("shadows", re.compile(r"(?:box-|drop-)?shadows?|elevations?")),
    ("radii", re.compile(r"(?:border-)?radius|radii|rounded|corners?|corner-radius")),
    ("colors", re.compile(r"colou?rs?|clr|palette")),
    ("spacing", re.compile(r"spac(?:ing|es?)|gaps?|sizes?|sizing|margins?|paddings?|gutters?|insets?")),
    (
        "typography",
        re.compile(
            r"typography|fonts?(?:-(?:size|family|weight)s?)?|text|line-heights?|letter-spacing|leading|tracking|font-families"
        ),
    ),
)
_BY_TYPE: dict[str, Category] = {
    "color": "colors",
    "dimension": "spacing",
    "spacing": "spacing",
    "sizing": "spacing",
    "shadow": "shadows",
    "boxshadow": "shadows",
    "borderradius": "radii",
    "typography": "typography",
    "fontfamily": "typography",
    "fontfamilies": "typography",
    "fontsize": "typography",
    "fontsizes": "typography",
    "fontweight": "typography",
    "fontweights": "typography",
    "lineheight": "typography",
    "lineheights": "typography",
}
_TELLS = ("font", "line", "leading", "tracking", "text", "letter")
_LENGTH = re.compile(r"-?(?:\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})(?:px|rem|em|pt)")
_SHADOW = re.compile(r"(?:inset\s+)?-?[\d.]+(?:px|rem)?\s+-?[\d.]+(?:px|rem)?\s.*(?:#|rgb|hsl)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class DesignToken(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the design has a name for. `value` is what it comes to, `written` what the file says where that
    refers to another token. `source` is `path:line`."""

    category: Category
    name: str
    value: str
    source: str
    written: str = ""

    @property
    def path(self) -> str:
        """As code would name it: `colors.primary`."""
        return f"{self.category}.{self.name}"


def classify(name: str, value: str, type: str = "") -> tuple[Category, str]:
    """The category of a token and its name within it: the word for the category is not said twice."""
    parts = [part for part in re.split(r"[-_./\s]+", _HUMP.sub("-", name)) if part]
    lower = [part.lower() for part in parts]
    category = _category(lower, value, re.sub(r"[^a-z]", "", type.lower()))
    used = _used(lower, category)
    rest = lower[used:] if 0 < used < len(lower) else lower
    return category, "-".join(rest) or name


def _category(parts: list[str], value: str, type: str) -> Category:
    is_colour = read_colour(value) is not None
    if type in _BY_TYPE and _BY_TYPE[type] != "spacing":
        return _BY_TYPE[type]
    for size in (2, 1):
        for at in range(max(1, len(parts) - size + 1)):
            found = _named("-".join(parts[at : at + size]))
            if found and not (found == "typography" and is_colour) and not (found == "colors" and not is_colour and at):
                return found
    if type in _BY_TYPE:
        return _BY_TYPE[type]
    if is_colour:
        return "colors"
    if _SHADOW.match(value[:300]):
        return "shadows"
    return "spacing" if _LENGTH.fullmatch(value) and not any(part in _TELLS for part in parts) else "other"


def _named(word: str) -> Category | None:
    return next((category for category, shape in _BY_NAME if shape.fullmatch(word)), None)


def _used(parts: list[str], category: Category) -> int:
    """How many parts at the beginning say nothing but the category."""
    if category == "typography":
        return 1 if parts and parts[0] == "typography" else 0
    for size in (2, 1):
        if _named("-".join(parts[:size])) == category:
            return size
    return 0
