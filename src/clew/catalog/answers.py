"""What `ask` and `get` take and give: the same records behind every door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from clew.tools import GuidedContent

MAX_QUESTION = 4_000
MAX_PER_DOMAIN = 50
MAX_ITEMS = 50
DEFAULT_PER_DOMAIN = 5
DEFAULT_BUDGET = 2_000

Code = Literal["INVALID_ROUTE", "NOT_FOUND", "ACCESS_DENIED", "NOT_REVEALED", "INVALID_PARAMS", "EXECUTION_ERROR"]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for. `handle` continues an exposure set; `budget` is the most tokens that the answer may take."""

    query: str
    domain: str | None = None
    per_domain: int = DEFAULT_PER_DOMAIN
    handle: str | None = None
    budget: int = DEFAULT_BUDGET


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool or resource as discovery shows it. `description` is one line without markup; `params` says name (type) of
    each argument."""

    route: str
    description: str
    params: str = ""
    score: float = 0.0


class Section(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One domain of an answer: entry points first, then resources. A folded one only names its entry points; `more`
    counts what had no room."""

    domain: str
    description: str
    tools: Sequence[Entry] = ()
    resources: Sequence[Entry] = ()
    is_folded: bool = False
    folded: Sequence[str] = ()
    more: int = 0


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an answer rests on: where it is, what it is, how far it is believed, and what a reader should know. The
    answer calls it by its number, in brackets."""

    number: int
    id: str
    place: str
    name: str
    trust: str
    warning: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known that answers a question, a line each with its source, and these sources."""

    lines: Sequence[str] = ()
    sources: Sequence[Source] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `ask` found. `is_relevant` is False when nothing is close enough to the question; `hint` says what to do;
    `cut` says what was left out for the budget; `known` is what answers the question already, each line with its
    source, and `sources` are these."""

    handle: str
    sections: Sequence[Section]
    is_relevant: bool
    known: Sequence[str] = ()
    sources: Sequence[Source] = ()
    is_repeated: bool = False
    hint: str = ""
    cut: str = ""
    tokens: int = 0
    markdown: str = ""


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of a `get`."""

    route: str
    params: dict[str, Any] = {}


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    code: Code
    message: str


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one entry gave: data or an error."""

    route: str
    success: bool
    data: GuidedContent | None = None
    error: Failure | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    success: int
    failed: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What `get` gave, in the order of its entries, and the handle that now knows the guided routes."""

    results: Sequence[Result]
    summary: Summary
    handle: str
    markdown: str = ""
