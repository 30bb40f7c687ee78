"""A domain: one branch of knowledge with its tools, its resources and the client that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from clew.catalog.resource import Pipeline, Resource
from clew.catalog.route import HIDDEN, Route, check_domain_name
from clew.errors import InvalidInput
from clew.tools import Tool

Field = Literal["description", "name", "content"]
FIELDS: tuple[Field, ...] = ("description", "name", "content")
MAX_DESCRIPTION = 1_000


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the results with a limit of its own: resources of these types, or below these first path parts."""

    name: str
    types: Sequence[str] = ()
    path_segments: Sequence[str] = ()
    limit: int = 10
    priority: int = 1
    """Lower comes first."""


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a domain's resources are searched: fields in order, what each counts, and segments."""

    query_by: Sequence[Field] = FIELDS
    weights: Sequence[float] = ()
    """One for each field of `query_by`; without any, the trail's own weights hold."""
    segments: Sequence[Segment] = ()

    def __post_init__(self) -> None:
        for field in self.query_by:
            if field not in FIELDS:
                raise InvalidInput("query_by", f"{field!r} is not a field", hint=f"Fields are {', '.join(FIELDS)}")
        if self.weights and len(self.weights) != len(self.query_by):
            raise InvalidInput("weights", f"has {len(self.weights)} numbers for {len(self.query_by)} fields")


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """A plain object: loading it registers all its routes. `client` is what its tools reach the outside with; they get
    it as `context.client`."""

    name: str
    description: str
    tools: Sequence[Tool] = ()
    resources: Sequence[Resource] = ()
    extractors: Sequence[Pipeline] = ()
    search: SearchConfig = SearchConfig()
    scopes: frozenset[str] = frozenset()
    client: Any = None
    is_foreign: bool = False
    """Whether its texts were written by somebody whom the user did not choose to trust with instructions."""

    def __post_init__(self) -> None:
        check_domain_name(self.name)
        if not self.description.strip():
            raise InvalidInput(
                "description", f"of domain {self.name} is empty", hint="Say what it is about in a sentence"
            )
        for each in self.tools:
            if not isinstance(each, Tool):
                name = getattr(each, "__name__", repr(each)[:60])
                raise InvalidInput("tools", f"of domain {self.name}: {name} is not a tool", hint="Write @tool above it")
        if len(self.description) > MAX_DESCRIPTION:
            raise InvalidInput("description", f"of domain {self.name} is over {MAX_DESCRIPTION:,} characters")
        sources = [pipeline.source.id for pipeline in self.extractors]
        for id in sources:
            if sources.count(id) > 1:
                hint = "Give one pipeline the formats of both"
                raise InvalidInput(f"domain {self.name}", f"has the source {id} twice", hint=hint)

    def route_of(self, tool: Tool) -> Route:
        return Route(self.name, "tools", tool.name if tool.searchable else f"{HIDDEN}{tool.name}")
