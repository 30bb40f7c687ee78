"""HTTP on the wire, with the limits that the parser lacks: the size of headers, and how long a request may take to
arrive. A caller that is too slow or sends too much gets an ordinary error, and its connection is closed."""

from __future__ import annotations

from typing import Any, NamedTuple

MAX_HEADERS = 65_536


class ArrivalLimits(NamedTuple):
    """Seconds that a request may take to arrive: its headers, then its body."""

    headers: float = 20.0
    body: float = 120.0


def build_protocol(patience: ArrivalLimits) -> Any:
    """The protocol class for uvicorn: the fast parser if it is installed, otherwise h11, which has its own limit on
    headers."""
    try:
        from clew.adapters.rest.guard import GuardedProtocol  # its parser is not installed on Windows
    except ImportError:
        return "h11"
    return type("PatientProtocol", (GuardedProtocol,), {"patience": patience})
