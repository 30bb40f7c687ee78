"""The text of a stored record from which its terms are computed."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import InvalidInput
from clew.trail.model.definitions import Definitions
from clew.trail.model.prepare import read_as
from clew.trail.model.readable import ReadableText

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read_text(
    definitions: Definitions, schema_name: str | None, title: str, context: str, llm_hints: str | None
) -> ReadableText:
    """The readable parts of a record. If the hints of its schema cannot be applied to it, only its title is used, so
    that no search fails."""
    hints = _decode(llm_hints) if llm_hints is not None else None
    try:
        return read_as(title, _decode(context), hints, definitions.rules(schema_name).llm_hints)
    except InvalidInput:
        return ReadableText(title, "", "")
