"""The class of all tools: arguments, effects, scopes and limits.

`@tool` builds one from an async function: the signature is the schema, the docstring the description.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput
from clew.lazy_pattern import lazy_pattern
from clew.tools.content import GuidedContent, as_content
from clew.tools.signature import Params, read_signature

if TYPE_CHECKING:
    from clew.tools.permissions.policy import Policy  # only for agents

Source = Literal["local", "mcp", "skill"]
SOURCES: tuple[Source, ...] = ("local", "mcp", "skill")

MAX_DESCRIPTION = 4_000
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,7}")


class ToolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a tool: the time of a call, the length of its result, and the number of concurrent calls."""

    seconds: float = 60.0
    characters: int = 100_000
    at_once: int = 16

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.characters > 0 and self.at_once > 0):
            raise InvalidInput("limits", "seconds, characters and at_once must be more than 0")


class Effects(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The effects of a call, on which permissions depend."""

    reads_only: bool = False
    destroys: bool = False
    repeats_safely: bool = False
    reaches_out: bool = True
    keyed: bool = False
    """Whether a repeated call with the same `ToolContext.key` has no further effect."""


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a call: the principal, the client of its domain, and the handle of the exposure set that showed
    the tool to the caller."""

    by: Principal
    client: Any = None
    route: str = ""
    handle: str = ""
    key: str = ""
    """The idempotency key: the same for every attempt at one call."""
    run: str = ""
    """The id of the agent's answer that the call belongs to; empty if there is none."""
    root: str = ""
    """The first run of the chain of runs that led to the call."""
    lineage: tuple[str, ...] = ()
    """The tags for all records that the call writes: its session, its run, and the origin of the run."""
    permitted: bool = False
    """Whether the user has allowed this very call, now or before."""
    policy: Policy | None = None
    """The policy of the calling agent; None if no agent calls, or if its policy adds nothing to that of the folder."""
    report: Callable[[float, float | None, str], Awaitable[None]] | None = None
    """Reports progress: amount, total, and a message."""


Call = Callable[[dict[str, Any], ToolContext], Awaitable[GuidedContent]]
Check = Callable[[Mapping[str, Any]], dict[str, Any]]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `name` is its path within a domain. If it is not `searchable`, only guidance shows it.

    `check` validates and converts arguments for `call`, or raises InvalidInput.
    """

    name: str
    description: str
    call: Call
    check: Check
    schema: dict[str, Any]
    title: str = ""
    searchable: bool = True
    output_schema: dict[str, Any] | None = None
    scopes: frozenset[str] = frozenset()
    limits: ToolLimits = ToolLimits()
    effects: Effects = Effects()
    examples: tuple[dict[str, Any], ...] = ()
    category: str = ""
    see_also: tuple[str, ...] = ()
    source: Source = "local"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name.startswith("hidden/"):
            raise InvalidInput("name", f"{self.name!r} is not a valid tool name", hint="For example user-investigation")
        if not self.description.strip():
            raise InvalidInput(
                "description", f"of {self.name} is empty", hint="Describe what the tool does and when to use it"
            )
        if len(self.description) > MAX_DESCRIPTION:
            raise InvalidInput("description", f"of {self.name} is over {MAX_DESCRIPTION:,} characters")
        if self.source not in SOURCES:
            raise InvalidInput("source", f"{self.source!r} is not valid", hint=f"Sources are {', '.join(SOURCES)}")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    searchable: bool = True,
    scopes: Iterable[str] = (),
    limits: ToolLimits = ...,
    effects: Effects = ...,
    examples: Iterable[dict[str, Any]] = (),
    category: str = "",
    see_also: Iterable[str] = (),
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **given: Any) -> Any:
    """Build a tool from an async function. A parameter of type ToolContext receives the context, and is not an
    argument.

    Raises InvalidInput if the function is not async, has no docstring, or has a parameter without a type.
    """
    return _build(function, {}) if function is not None else lambda function: _build(function, given)


def _build(function: Callable[..., Any], given: dict[str, Any]) -> Tool:
    if not inspect.iscoroutinefunction(function):
        hint = "Write `async def`, and run blocking code with `await asyncio.to_thread(...)`"
        raise InvalidInput(function.__name__, "must be an async function", hint=hint)
    params = read_signature(function, ToolContext)
    known = {key: given[key] for key in ("searchable", "limits", "effects") if key in given}
    return Tool(
        name=given.get("name") or function.__name__.replace("_", "-"),
        title=given.get("title") or function.__name__.replace("_", " ").capitalize(),
        description=given.get("description") or inspect.cleandoc(function.__doc__ or ""),
        call=_caller(function, params),
        check=params.check,
        schema=params.schema,
        scopes=frozenset(given.get("scopes", ())),
        examples=tuple(given.get("examples", ())),
        category=given.get("category", ""),
        see_also=tuple(given.get("see_also", ())),
        **known,
    )


def _caller(function: Callable[..., Any], params: Params) -> Call:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        extra = {params.context: context} if params.context else {}
        return as_content(await function(**arguments, **extra))

    return call
