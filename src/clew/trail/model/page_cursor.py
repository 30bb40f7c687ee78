"""The cursor of a listing: the place after which its next page begins, as a text."""

from __future__ import annotations

import base64
import binascii

from clew.errors import InvalidInput

MAX_PAGE = 1_000


def pack_cursor(rid: int) -> str:
    return base64.urlsafe_b64encode(rid.to_bytes(8, "big")).decode().rstrip("=")


def unpack_cursor(cursor: str) -> int:
    """Raises InvalidInput for a text that no listing returned."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        if len(packed) == 8 and packed[0] < 128:
            return int.from_bytes(packed, "big")
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput("cursor", "is not the cursor of a listing")


def check_page(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput("limit", f"must be between 1 and {MAX_PAGE:,}")
