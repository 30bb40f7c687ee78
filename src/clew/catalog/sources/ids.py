"""Builds ids of sources from the settings that select their documents, and checks ids of documents before they are put
into a URL."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from clew.errors import SourceError


def source_id(head: str, options: Mapping[str, str]) -> str:
    """`head`, and behind a question mark the options that are not empty, in their order."""
    given = {name: value for name, value in options.items() if value}
    return f"{head}?{urlencode(given, safe='/:,*')}" if given else head


def check_document_id(source: str, id: str, pattern: re.Pattern[str], example: str) -> None:
    """Raises SourceError for an id that does not have the form of the source's ids, so that it cannot change the
    address of a request."""
    if not pattern.fullmatch(id):
        raise SourceError(source, f"{id[:80]!r} is not the id of a document", hint=f"An id looks like {example}")


def digest_of(value: Any) -> str:
    """The version of a document without a date: a digest of its JSON that does not depend on the order of keys."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]
