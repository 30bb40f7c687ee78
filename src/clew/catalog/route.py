"""A route: the one address of a tool or resource, `domain://tools/path` or `domain://resources/path`.

Routes are ASCII; anything else in a name is percent-encoded, so that no route looks like another.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from clew.errors import InvalidInput
from clew.lazy_pattern import lazy_pattern

Kind = Literal["tools", "resources"]

MAX_ROUTE = 1_000
HIDDEN = "hidden/"
_DOMAIN = lazy_pattern(r"[a-z][a-z0-9-]{0,62}")
_ROUTE = lazy_pattern(r"([a-z][a-z0-9-]{0,62})://(tools|resources)/((?:[A-Za-z0-9._~%@+-]+)(?:/[A-Za-z0-9._~%@+-]+)*)")
_EXAMPLE = "For example warehouse://tools/analyst"


class CatalogRoute(msgspec.Struct, frozen=True, order=True):
    """A parsed route; `str` gives its text again."""

    domain: str
    kind: Kind
    path: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.kind}/{self.path}"

    @property
    def is_hidden(self) -> bool:
        """Whether it is shown by guidance only."""
        return self.kind == "tools" and self.path.startswith(HIDDEN)


def parse_route(text: str) -> CatalogRoute:
    """Parse a route. Raises InvalidInput with the reason if it is malformed."""
    found = _ROUTE.fullmatch(text) if len(text) <= MAX_ROUTE else None
    if found is not None and ".." not in found.group(3).split("/") and "." not in found.group(3).split("/"):
        return CatalogRoute(found.group(1), "tools" if found.group(2) == "tools" else "resources", found.group(3))
    odd = next((character for character in text if not character.isascii()), None)
    if odd is not None:
        raise InvalidInput("route", f"holds {odd!r} (U+{ord(odd):04X}); routes are plain ASCII", hint=_EXAMPLE)
    if len(text) > MAX_ROUTE:
        raise InvalidInput("route", f"is over {MAX_ROUTE:,} characters")
    raise InvalidInput("route", f"{text[:100]!r} is not domain://tools/path or domain://resources/path", hint=_EXAMPLE)


def check_domain_name(name: str) -> str:
    if not _DOMAIN.fullmatch(name):
        hint = "For example warehouse"
        raise InvalidInput("domain", f"{name[:100]!r} must be lower-case letters, digits and -, 1 to 63", hint=hint)
    return name


def join_path(*parts: str) -> str:
    """One path from parts that are paths themselves; empty ones are left out."""
    return "/".join(part.strip("/") for part in parts if part.strip("/"))
