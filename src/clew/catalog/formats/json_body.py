"""JSON bodies as records, and the people in them; errors say what was expected."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from clew.catalog.formats.tree import check_size
from clew.catalog.resource import RawContent
from clew.decode_errors import in_plain_words
from clew.errors import FormatError

T = TypeVar("T")


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody, in the words of the service."""

    login: str | None = None
    username: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        return self.login or self.username or self.name or "somebody"


def decode_body(content: RawContent, type: type[T], expected: str) -> T:
    """The body as a record. Raises FormatError if the body is not JSON, or not the `expected` object."""
    check_size(content)
    try:
        return msgspec.json.decode(content.text, type=type)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, type, "the whole")
        raise FormatError(content.id, f"is not {expected}: {wrong}") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise FormatError(content.id, f"is not JSON, which {expected} has to be") from error
