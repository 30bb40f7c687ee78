"""A selector spelt as query parameters, the same for listing, searching and following events."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.trail.model.selector import ContextMatch, Selector

Texts = tuple[str, ...]
_match = msgspec.json.Decoder(ContextMatch).decode


class SelectorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A filter for breadcrumbs; all given parameters must match."""

    tag: Annotated[Texts, Meta(description="A tag that must be there; may be repeated")] = ()
    all_tags: Annotated[Texts, Meta(description="Another spelling of `tag`")] = ()
    any_tags: Annotated[Texts, Meta(description="At least one of these tags must be there; may be repeated")] = ()
    tag_prefix: Annotated[str | None, Meta(description="The beginning of some tag, such as `session:`")] = None
    schema_name: Annotated[Texts, Meta(description="A schema name; when repeated, any of them")] = ()
    session: Annotated[str | None, Meta(description="The id in the `session:` tag")] = None
    created_after: Annotated[datetime | None, Meta(description="RFC 3339 with a time zone")] = None
    created_before: Annotated[datetime | None, Meta(description="RFC 3339 with a time zone")] = None
    path: Annotated[str | None, Meta(description="A glob over `context.path`; `**` crosses folders")] = None
    context_match: Annotated[
        Texts, Meta(description='A condition as JSON: {"path": "input.model", "op": "eq", "value": "x"}')
    ] = ()

    def selector(self) -> Selector:
        """The selector that the parameters spell."""
        return Selector(
            schema_names=self.schema_name,
            any_tags=self.any_tags,
            all_tags=self.tag + self.all_tags,
            tag_prefix=self.tag_prefix,
            session=self.session,
            created_after=self.created_after,
            created_before=self.created_before,
            path=self.path,
            context_match=tuple(_condition(text, at) for at, text in enumerate(self.context_match)),
        )


def _condition(text: str, at: int) -> ContextMatch:
    field = f"context_match[{at}]"
    try:
        return _match(text)
    except msgspec.ValidationError as error:
        inner = in_plain_words(error, ContextMatch, "")
        name = f"{field}.{inner.field}" if inner.field else field
        raise InvalidInput(name, inner.reason, hint=inner.hint) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidInput(field, "is not JSON", hint='For example {"path": "a.b", "op": "eq", "value": 1}') from None
