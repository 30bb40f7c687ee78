"""Converts the arguments of a tool call for the catalog, and answers of the catalog to results of the call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from mcp_types import CallToolResult, TextContent
from msgspec import Meta

from clew.catalog.operations.answers import (
    DEFAULT_PER_DOMAIN,
    MAX_ITEMS,
    MAX_PER_DOMAIN,
    MAX_QUESTION,
    CatalogAnswer,
    GivenItem,
    Question,
    Results,
    choose_per_domain,
)
from clew.decode_errors import in_plain_words
from clew.errors import ClewError, InvalidInput

MAX_HANDLE = 1_000

Report = Callable[[float, float | None, str], Awaitable[None]]

_Handle = Annotated[str, Meta(max_length=MAX_HANDLE)] | None
_PerDomain = Annotated[int, Meta(ge=1, le=MAX_PER_DOMAIN)]


class AskArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `ask`."""

    query: Annotated[str, Meta(max_length=MAX_QUESTION)]
    domain: str | None = None
    per_domain: _PerDomain = DEFAULT_PER_DOMAIN
    other_per_domain: _PerDomain | None = msgspec.field(default=None, name="perDomain")
    handle: _Handle = None


class GetArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `get`."""

    routes: Annotated[list[GivenItem], Meta(min_length=1, max_length=MAX_ITEMS)]
    handle: _Handle = None


_Arguments = TypeVar("_Arguments", AskArguments, GetArguments)

_EXAMPLES: dict[type[msgspec.Struct], str] = {
    AskArguments: 'For example {"query": "why do payments fail?"}',
    GetArguments: 'For example {"routes": [{"route": "warehouse://tools/analyst", "params": {}}]}',
}


def read_arguments(given: Mapping[str, Any] | None, model: type[_Arguments]) -> _Arguments:
    """Parse the arguments of a call. Numbers may be text, as models often write them. Raises InvalidInput with the name
    of the argument."""
    try:
        return msgspec.convert(given or {}, model, strict=False)
    except msgspec.ValidationError as error:
        problem = in_plain_words(error, model, "arguments", called="parameter")
        problem.hint = ". ".join(filter(None, (problem.hint, _EXAMPLES[model])))
        raise problem from None


def read_question(given: Mapping[str, Any] | None) -> Question:
    """Return the question of a call of `ask`. Raises InvalidInput."""
    found = read_arguments(given, AskArguments)
    if not found.query.strip():
        raise InvalidInput("query", "is empty", hint="Describe what you want to do or know")
    per_domain = choose_per_domain(found.per_domain, found.other_per_domain)
    return Question(query=found.query, domain=found.domain, per_domain=per_domain, handle=found.handle)


def ask_result(answer: CatalogAnswer, rules: str = "") -> CallToolResult:
    """Convert an answer to markdown and an object, with the rules that the caller does not have yet."""
    found = msgspec.to_builtins(answer)
    return _result(answer.markdown, {key: value for key, value in found.items() if key != "markdown"}, rules)


def get_result(results: Results, rules: str = "") -> CallToolResult:
    """Convert results to markdown and an object with `results`, `summary` and `handle`, with rules as above."""
    found = msgspec.to_builtins(results)
    return _result(results.markdown, {key: found[key] for key in ("results", "summary", "handle")}, rules)


def error_result(error: ClewError) -> CallToolResult:
    """Convert an error to a result for the model: one line with the problem and the next step."""
    return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


def increasing(report: Report) -> Report:
    """Wrap a report so that progress only grows, because the protocol forbids decreasing values."""
    last = float("-inf")

    async def tell(done: float, total: float | None = None, message: str = "") -> None:
        nonlocal last
        if done > last:
            last = done
            await report(done, total, message)

    return tell


def _result(markdown: str, structured: dict[str, Any], rules: str) -> CallToolResult:
    text = f"{rules}\n\n{markdown}" if rules else markdown
    full = {**structured, "rules": rules} if rules else structured
    return CallToolResult(content=[TextContent(text=text)], structured_content=full)
