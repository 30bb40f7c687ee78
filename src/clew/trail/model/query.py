"""A search request, with text or vector or both, filters, field weights and a limit, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from clew.errors import InvalidInput, TooLarge
from clew.trail.model.breadcrumb import MAX_DIMENSION, Breadcrumb
from clew.trail.model.selector import EVERYTHING, Selector, check_selector

MAX_QUERY = 20_000
MAX_LIMIT = 1_000
FIELDS = ("title", "description", "content")

Ranking = Literal["default", "rcrt", "rrf", "text", "vector"]
"""`default` is the ranking that wins on the benchmark sets. `rcrt` is 0.6 vector + 0.4 keywords. `rrf` is plain rank
fusion. `text` and `vector` rank by one arm alone."""


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search. `keywords` feed the `rcrt` ranking (default: the words of the text). `weights` change how much the
    fields `title`, `description` and `content` count. `exclude` leaves breadcrumbs out by id."""

    text: str = ""
    vector: Sequence[float] | None = None
    selector: Selector = EVERYTHING
    limit: int = 10
    ranking: Ranking = "default"
    keywords: Sequence[str] = ()
    weights: Mapping[str, float] = {}
    exclude: Sequence[str] = ()


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A breadcrumb with its score under the requested ranking, and the results of the single arms. Scores order the
    hits of one answer; `relevance` says how close a hit is to the question, and can be compared between questions."""

    breadcrumb: Breadcrumb
    score: float
    text_score: float | None = None
    vector_score: float | None = None
    exact: bool = False
    relevance: float = 0.0


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Hits, best first; equal scores in order of creation. `ranking` is the ranking that was used."""

    hits: tuple[Hit, ...]
    ranking: Ranking


def check_request(request: SearchRequest) -> SearchRequest:
    """Refuse a request that asks for nothing, for too much, or with unknown fields."""
    if not request.text.strip() and request.vector is None:
        raise InvalidInput("text", "is empty", hint="Give a text, a vector, or both")
    if len(request.text) > MAX_QUERY:
        raise TooLarge("text", len(request.text), MAX_QUERY, "characters")
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT:,}")
    if request.vector is not None and not 1 <= len(request.vector) <= MAX_DIMENSION:
        raise InvalidInput("vector", f"must have 1 to {MAX_DIMENSION:,} numbers")
    if request.vector is not None and not all(-1e30 < number < 1e30 for number in request.vector):
        raise InvalidInput("vector", "must hold finite numbers")
    for field, entries in (("exclude", request.exclude), ("keywords", request.keywords)):
        if len(entries) > MAX_LIMIT:
            raise TooLarge(field, len(entries), MAX_LIMIT, "entries")
    for field, weight in request.weights.items():
        if field not in FIELDS:
            raise InvalidInput(f"weights.{field}", "is not a field", hint=f"Fields are {', '.join(FIELDS)}")
        if not 0.0 <= weight <= 100.0:
            raise InvalidInput(f"weights.{field}", "must be between 0 and 100")
    check_selector(request.selector)
    return request
