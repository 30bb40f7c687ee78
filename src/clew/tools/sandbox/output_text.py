"""Converts the output of a program to safe text: no terminal control codes, no secrets."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from clew.secrecy import MASK

SHORTEST_SECRET = 4
"""Shorter values are not masked, because they occur in ordinary text."""

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|\Z)"  # titles, links, clipboard
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean_text(raw: bytes) -> str:
    """Remove escape sequences, control characters and bidirectional marks."""
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


class Mask:
    """Masks secret values, including their base 64, hexadecimal and URL encodings."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = {spelled for secret in secrets if len(secret) >= SHORTEST_SECRET for spelled in _spellings(secret)}
        longest_first = sorted(values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._pattern else text

    def value(self, value: Any) -> Any:
        """Mask every text in a JSON value, including keys."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        return MASK if self.text(str(value)) != str(value) else value


def _spellings(secret: str) -> Iterable[str]:
    raw = secret.encode()
    yield secret
    yield quote(secret, safe="")
    yield raw.hex()
    yield raw.hex().upper()
    for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        yield encoded.decode()
        yield encoded.decode().rstrip("=")
