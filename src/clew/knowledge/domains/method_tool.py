"""Tools from methods: the signature of a method is the schema of its tool, its docstring the description."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from clew.access import Principal
from clew.knowledge.domains.node_lines import READS
from clew.tools import Effects, Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.base import Knowledge
    from clew.knowledge.domains.code import OpenKnowledge

Found = TypeVar("Found")


def method_tool(
    known: OpenKnowledge,
    part: Callable[[Knowledge, Principal], Any],
    method: Callable[..., Awaitable[Found]],
    render: Callable[[Found], Any],
    *,
    name: str = "",
    title: str = "",
    effects: Effects = READS,
) -> Tool:
    """The tool that calls a method, or a function, with `part` of what is known as its first argument. The first
    paragraph of the docstring is the description. Only a tool with a title is found by `ask`."""

    async def call(ctx: ToolContext, **arguments: Any) -> Any:
        return render(await method(part(await known(), ctx.by), **arguments))

    _, *own = inspect.signature(method).parameters.values()
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY)
    given = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    call.__signature__ = inspect.Signature([context, *given])  # type: ignore[attr-defined]  # functions may have one
    call.__wrapped__ = method  # type: ignore[attr-defined]  # names of types are looked up in the method's module
    call.__annotations__ = {"ctx": ToolContext, **{each.name: each.annotation for each in own}}
    call.__name__ = name or method.__name__
    description = inspect.cleandoc(method.__doc__ or "").partition("\n\n")[0]
    made = tool(name=call.__name__, title=title, description=description, effects=effects, searchable=bool(title))
    return made(call)
