"""Values of any kind as tags: encoded if a tag cannot hold them, hashed if they are too long."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from clew.trail.model.breadcrumb import MAX_TAG


def path_part(name: str) -> str:
    """Return a name as one part of a path. It is percent-encoded, and never empty or made of dots only."""
    encoded = quote(name.strip(), safe="@+~", errors="replace")
    return encoded if encoded.strip(".") else f"%2E{encoded[1:]}" if encoded else "_"


def tag_of(namespace: str, value: str) -> str:
    """Return a tag for a value of any length: percent-encoded, or a digest if that is too long for a tag."""
    tag = f"{namespace}:{path_part(value)}"
    return tag if len(tag) <= MAX_TAG else f"{namespace}:{digest(value)}"


def digest(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def first_after(prefix: str) -> str | None:
    """Return the smallest text that is greater than every text with this prefix, or None if there is none. Texts are
    ordered by code point, which is also the order of UTF-8."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = 0xE000 if stem[-1] == "\ud7ff" else ord(stem[-1]) + 1
    return stem[:-1] + chr(following)
