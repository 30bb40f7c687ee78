"""Options that many commands share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from clew.cli.arguments.values import parse_past
from clew.cli.folder_access import FolderAccess
from clew.errors import InvalidInput
from clew.trail.model.selector import ContextMatch, Selector

Json = Annotated[bool, Parameter(help="Print JSON.")]
System = Annotated[bool, Parameter(help="Show Clew's own breadcrumbs as well: definitions, policies, reports.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Here(FolderAccess):
    """The options for the trail that a command works on, and the identity that it uses."""

    folder: Annotated[
        Path | None, Parameter(help="The folder .clew, or CLEW_FOLDER. [default: that of the repository]")
    ] = None
    owner: Annotated[str | None, Parameter(help="The owner to act for, or CLEW_OWNER. [default: local]")] = None
    scopes: Annotated[str, Parameter(help="The scopes that you hold, separated by commas.")] = ""


HERE = Here()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Filters of breadcrumbs; all that are given must match."""

    schema: Annotated[tuple[str, ...], Parameter(help="A schema name; when repeated, any of them.")] = ()
    tag: Annotated[tuple[str, ...], Parameter(help="A tag that must be there; may be repeated.")] = ()
    any_tag: Annotated[
        tuple[str, ...], Parameter(help="At least one of these tags must be there; may be repeated.")
    ] = ()
    prefix: Annotated[str | None, Parameter(help="The beginning of some tag, such as session:")] = None
    session: Annotated[str | None, Parameter(help="The id in the session: tag.")] = None
    since: Annotated[
        str | None, Parameter(help="Created after this time, such as 2026-01-31T12:00:00Z, or 1h for an hour ago.")
    ] = None
    until: Annotated[str | None, Parameter(help="Created before this time, written as for --since.")] = None
    path: Annotated[str | None, Parameter(help="A glob over context.path; ** crosses folders.")] = None
    where: Annotated[
        tuple[str, ...], Parameter(help="A value of the context, as dotted.path=value; may be repeated.")
    ] = ()

    def selector(self, now: datetime) -> Selector:
        """The selector that the options spell; periods count back from `now`. Raises InvalidInput."""
        since, until = _moment(self.since, now, "--since"), _moment(self.until, now, "--until")
        if since is not None and until is not None and since >= until:
            raise InvalidInput("--since", f"{self.since!r} is not before --until {self.until!r}")
        return Selector(
            schema_names=self.schema,
            any_tags=self.any_tag,
            all_tags=self.tag,
            tag_prefix=self.prefix,
            session=self.session,
            created_after=since,
            created_before=until,
            path=self.path,
            context_match=tuple(_condition(text) for text in self.where),
        )


EVERY = FilterOptions()


def _moment(text: str | None, now: datetime, option: str) -> datetime | None:
    return None if text is None else parse_past(text, now, option)


def _condition(text: str) -> ContextMatch:
    path, value = split_assignment(text, "--where")
    return ContextMatch(path=path, op="eq", value=value)


def split_assignment(text: str, option: str) -> tuple[str, Any]:
    """Split `key=value`. The value is parsed as JSON if it is valid JSON, otherwise it is text. Raises InvalidInput."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidInput(option, f"{text!r} is not key=value", hint="For example status=open")
    try:
        return key, msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return key, value
