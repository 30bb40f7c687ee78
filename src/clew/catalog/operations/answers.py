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


class Cited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage, commit or note that answers a question. `path`, `start`, `end` and `blob` lead to lines of a file at a
    content, `commit` to a commit, `id` to a note. `text` is what it says on one line, `owner` the class or headings
    around it, `place` all of its address in a few characters. `score` is from 0 to 1."""

    number: int
    id: str
    text: str
    kind: str
    path: str = ""
    start: int = 0
    end: int = 0
    blob: str = ""
    commit: str = ""
    owner: str = ""
    score: float = 0.0
    place: str = ""
    trust: str = ""
    warning: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What answers a question: citations, sentences about them (`notes`), and the words of a model where one is used.
    `more` counts citations that had no room."""

    items: Sequence[Cited] = ()
    notes: Sequence[str] = ()
    text: str = ""
    more: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `ask` found. `is_relevant` is False when nothing is close enough to the question; `hint` says what to do;
    `cut` says what was left out for the budget; `known` are the citations that answer the question already, `notes`
    sentences about them, and `text` the words of a model, if one is used."""

    handle: str
    sections: Sequence[Section]
    is_relevant: bool
    known: Sequence[Cited] = ()
    notes: Sequence[str] = ()
    text: str = ""
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
