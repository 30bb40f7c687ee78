"""Requests and answers of `ask` and `get`: the same records for every interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.tools import GuidedContent

MAX_QUESTION = 4_000
MAX_PER_DOMAIN = 50
MAX_ITEMS = 50
DEFAULT_PER_DOMAIN = 10
DEFAULT_BUDGET = 2_000
MAX_SHOWN_ROUTE = 200
NOTHING_AT_ALL = "There is nothing here for you yet: no domain is open to your scopes."
MORE = "more not shown. Name a folder or a file to see those."
"""The end of the note that counts further citations."""
ITEM_EXAMPLE = 'For example {"route": "warehouse://tools/analyst", "params": {}}'

Code = Literal["INVALID_ROUTE", "NOT_FOUND", "ACCESS_DENIED", "NOT_REVEALED", "INVALID_PARAMS", "EXECUTION_ERROR"]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question. `handle` continues an exposure set; `budget` is the token limit of the answer."""

    query: str
    domain: str | None = None
    per_domain: int = DEFAULT_PER_DOMAIN
    handle: str | None = None
    budget: int = DEFAULT_BUDGET


class AskBody(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question as a client sends it. `perDomain` is another spelling of `per_domain`."""

    other_per_domain: int | None = msgspec.field(default=None, name="perDomain")

    def to_question(self) -> Question:
        """Raises InvalidInput if the two spellings disagree."""
        per_domain = choose_per_domain(self.per_domain, self.other_per_domain)
        return Question(
            query=self.query, domain=self.domain, per_domain=per_domain, handle=self.handle, budget=self.budget
        )


def choose_per_domain(per_domain: int, other: int | None) -> int:
    """The number that `per_domain` or `perDomain` gives. Raises InvalidInput if they disagree."""
    if other is not None and per_domain not in (DEFAULT_PER_DOMAIN, other):
        raise InvalidInput("perDomain", "is another spelling of per_domain", hint="Give one of them")
    return per_domain if other is None else other


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool or resource as discovery shows it. `description` is one line without markup; `params` says name (type) of
    each argument. A `score` of 1 means that the entry is just relevant enough to the question. `reads_only` says that a
    tool changes nothing."""

    route: str
    description: str
    params: str = ""
    score: float = 0.0
    reads_only: bool = False


class Section(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One domain of an answer: entry points first, then resources. A folded domain only names its entry points. `more`
    counts the parts that did not fit."""

    domain: str
    description: str
    tools: Sequence[CatalogEntry] = ()
    resources: Sequence[CatalogEntry] = ()
    is_folded: bool = False
    folded: Sequence[str] = ()
    more: int = 0


class Cited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage, commit or note that answers a question. `path`, `start`, `end` and `blob` identify lines of one
    version of a file, `commit` a commit, `id` a note. `text` is the citation's text on one line, `owner` the enclosing
    class or headings, and `place` the full address in short form. `score` is from 0 to 1."""

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
    """Knowledge that answers a question: citations, notes about them, and the text of a model if one is used.
    `more` counts citations that had no room."""

    items: Sequence[Cited] = ()
    notes: Sequence[str] = ()
    text: str = ""
    more: int = 0


class CatalogAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `ask`. `is_relevant` is False if nothing is close enough to the question. `hint` is the next step.
    `cut` describes the parts that did not fit the budget. `known` are citations that answer the question already,
    `notes` are sentences about them, and `text` is the answer of a model if one is used."""

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


ITEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "route": {"type": "string"},
        "params": {"type": "object", "description": "Arguments of a tool route"},
    },
    "required": ["route"],
    "additionalProperties": False,
}
GivenItem = Annotated[Any, Meta(extra_json_schema=ITEM_SCHEMA)]
"""One entry of a `get` as a client sends it; `read_items` checks each by itself."""


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of a `get`. `params: null` means the same as no `params`."""

    route: str
    params: dict[str, Any] | None = None


class EntryFailure(msgspec.Struct, frozen=True, kw_only=True):
    code: Code
    message: str


class MalformedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a `get` that cannot be read. Its result is the failure, and the other entries run."""

    route: str
    failure: EntryFailure


def read_items(given: Sequence[Any]) -> list[Item | MalformedItem]:
    """The entries of a `get`, each checked by itself."""
    return [_read_item(entry, at) for at, entry in enumerate(given)]


def _read_item(entry: Any, at: int) -> Item | MalformedItem:
    try:
        return msgspec.convert(entry, Item, strict=False)
    except msgspec.ValidationError as error:
        problem = in_plain_words(error, Item, "entry", called="parameter")
    route = entry.get("route") if isinstance(entry, dict) else entry
    named = route[:MAX_SHOWN_ROUTE] if isinstance(route, str) else ""
    code: Code = "INVALID_PARAMS" if named and isinstance(entry, dict) else "INVALID_ROUTE"
    problem.hint = ". ".join(filter(None, (problem.hint, ITEM_EXAMPLE)))
    return MalformedItem(
        route=named or f"routes[{at}]",
        failure=EntryFailure(code=code, message=str(problem)),
    )


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one entry: data or an error."""

    route: str
    success: bool
    data: GuidedContent | None = None
    error: EntryFailure | None = None


class GetSummary(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    success: int
    failed: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The results of `get` in the order of its entries, and the handle that includes the guided routes."""

    results: Sequence[Result]
    summary: GetSummary
    handle: str
    markdown: str = ""
