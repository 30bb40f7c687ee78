"""A domain: one branch of knowledge with its tools, its resources and the client that they share."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import msgspec

from clew.catalog.resource import Pipeline, Resource, ResourceNode
from clew.catalog.route import HIDDEN, CatalogRoute, check_domain_name
from clew.errors import InvalidInput
from clew.tools import Tool
from clew.trail.model.breadcrumb import encode_canonical
from clew.trail.model.selector import MAX_TERMS

Field = Literal["description", "name", "content"]
FIELDS: tuple[Field, ...] = ("description", "name", "content")
MAX_DESCRIPTION = 1_000
MAX_WEIGHT = 100


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the search results with its own limit: resources of these types, or with one of these first path
    segments."""

    name: str
    types: Sequence[str] = ()
    path_segments: Sequence[str] = ()
    limit: int = 10
    priority: int = 1
    """Lower comes first."""

    def __post_init__(self) -> None:
        _check_texts("Segment.name", [self.name])
        for field in ("types", "path_segments"):
            _check_texts(f"Segment.{field}", getattr(self, field))
        if not _is_number(self.limit, int) or self.limit < 1:
            raise InvalidInput("Segment.limit", f"of {self.name} must be a whole number from 1 on")
        if not _is_number(self.priority, int):
            raise InvalidInput("Segment.priority", f"of {self.name} must be a whole number")


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How `ask` searches the resources of a domain.

    Only the fields in `query_by` are searched. `weights` gives each of them a weight from 0 to 100; without it, the
    trail's default weights apply. Raises InvalidInput if a value cannot be used.
    """

    query_by: Sequence[Field] = FIELDS
    weights: Sequence[float] = ()
    segments: Sequence[Segment] = ()

    def __post_init__(self) -> None:
        _check_texts("SearchConfig.query_by", self.query_by)
        for field in self.query_by:
            if field not in FIELDS:
                hint = f"Fields are {', '.join(FIELDS)}"
                raise InvalidInput("SearchConfig.query_by", f"{field!r} is not a field", hint=hint)
        if not self.query_by or len(set(self.query_by)) < len(self.query_by):
            raise InvalidInput("SearchConfig.query_by", "must name at least one field, each once")
        self._check_weights()
        if not all(isinstance(each, Segment) for each in self.segments):
            raise InvalidInput("SearchConfig.segments", "must be a list of Segment")

    def _check_weights(self) -> None:
        if isinstance(self.weights, str):
            raise InvalidInput("SearchConfig.weights", "must be a list of numbers", hint="For example [4, 2, 1]")
        if self.weights and len(self.weights) != len(self.query_by):
            counts = f"has {len(self.weights)} numbers for {len(self.query_by)} fields"
            raise InvalidInput("SearchConfig.weights", counts)
        if not all(_is_number(each, int | float) and 0 <= each <= MAX_WEIGHT for each in self.weights):
            raise InvalidInput("SearchConfig.weights", f"must be numbers between 0 and {MAX_WEIGHT}")
        if self.weights and not any(self.weights):
            raise InvalidInput("SearchConfig.weights", "are all 0, so nothing would be found")


def _check_texts(field: str, given: object) -> None:
    """Raise InvalidInput unless this is a list of texts that a search can filter by."""
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise InvalidInput(field, "must be a list of texts", hint=f"For example {list(FIELDS[:2])}")
    if len(given) > MAX_TERMS:
        raise InvalidInput(field, f"has over {MAX_TERMS} entries")
    encode_canonical(list(given), field)


def _is_number(given: object, kind: Any) -> bool:
    return isinstance(given, kind) and not isinstance(given, bool)


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """A plain object. Adding it to a catalog registers all its routes. Its tools get `client` as `context.client`."""

    name: str
    description: str
    tools: Sequence[Tool] = ()
    resources: Sequence[Resource] = ()
    extractors: Sequence[Pipeline] = ()
    search: SearchConfig = SearchConfig()
    scopes: frozenset[str] = frozenset()
    client: Any = None
    find_file: Callable[[str], Awaitable[ResourceNode | None]] | None = None
    """Reads a resource by its path that is not indexed; None if there is none."""
    is_foreign: bool = False
    """Whether the domain's texts are untrusted. Untrusted texts are quoted as data."""
    is_builtin: bool = False
    """Whether it comes with Clew, so that its tools need no check."""

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
        if not isinstance(self.search, SearchConfig):
            raise InvalidInput("search", f"of domain {self.name} must be a SearchConfig")
        if len(self.description) > MAX_DESCRIPTION:
            raise InvalidInput("description", f"of domain {self.name} is over {MAX_DESCRIPTION:,} characters")
        sources = [pipeline.source.id for pipeline in self.extractors]
        for id in sources:
            if sources.count(id) > 1:
                hint = "Give one pipeline the formats of both"
                raise InvalidInput(f"domain {self.name}", f"has the source {id} twice", hint=hint)

    def route_of(self, tool: Tool) -> CatalogRoute:
        return CatalogRoute(self.name, "tools", tool.name if tool.searchable else f"{HIDDEN}{tool.name}")


def without_duplicates(domain: Domain) -> tuple[Domain, list[str]]:
    """The domain with the first tool and resource of each route, and a line for each one that was left out."""
    tools: dict[str, Tool] = {}
    resources: dict[str, Resource] = {}
    problems: list[str] = []
    for tool in domain.tools:
        route = str(domain.route_of(tool))
        if route in tools:
            problems.append(_duplicate(route, tools[route].call, tool.call))
        tools.setdefault(route, tool)
    for each in domain.resources:
        if each.path in resources:
            route = f"{domain.name}://resources/{each.path}"
            problems.append(_duplicate(route, resources[each.path].fetch, each.fetch))
        resources.setdefault(each.path, each)
    if not problems:
        return domain, []
    kept_only = msgspec.structs.replace(domain, tools=tuple(tools.values()), resources=tuple(resources.values()))
    return kept_only, problems


def _duplicate(route: str, first: Callable[..., Any], second: Callable[..., Any]) -> str:
    places = f"at {_defined_at(first)} and at {_defined_at(second)}"
    return f"{route} is defined twice, {places}: the first is used. Rename or remove one"


def _defined_at(call: Callable[..., Any]) -> str:
    """The place where the function behind a call is defined, as `module:line`."""
    function = inspect.unwrap(call)
    for cell in getattr(function, "__closure__", None) or ():
        if inspect.iscoroutinefunction(cell.cell_contents):  # `@tool` wraps the function that the author wrote
            function = inspect.unwrap(cell.cell_contents)
    code = getattr(function, "__code__", None)
    line = f":{code.co_firstlineno}" if code is not None else ""
    return f"{getattr(function, '__module__', type(function).__name__)}{line}"
