"""Tools over knowledge: built from methods, with nodes as lines of text, and a note below incomplete results."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.knowledge.answering.sources import describe
from clew.knowledge.evidence.trust import citation_of
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.tools import Effects, GuidedContent, Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.base import Knowledge
    from clew.knowledge.code.models import Callers, NamedCall, SymbolLink

WIDTH = 160
READS = Effects(reads_only=True, reaches_out=False)
OpenKnowledge = Callable[[], "Awaitable[Knowledge]"]
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
    """A tool that calls a method or function. Its first argument is the result of `part`, given the knowledge and the
    caller. The first paragraph of the docstring is the description. `ask` finds only tools with a title."""

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


def add_withheld_note(tools: Iterable[Tool], known: OpenKnowledge) -> tuple[Tool, ...]:
    """Return the tools with a note below each result if parts of the trail were left out for lack of consent."""
    return tuple(_with_note(each, known) for each in tools)


def _with_note(noted: Tool, known: OpenKnowledge) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        found = await noted.call(arguments, context)
        lines = await (await known()).consent.withheld()
        return msgspec.structs.replace(found, content="\n\n".join([found.content, *lines])) if lines else found

    return msgspec.structs.replace(noted, call=call)


def symbol_ref(node: Node) -> str:
    """The reference of a node of code: `path#qualname`, or the path of a file."""
    return node.id.removeprefix("code:")


def node_line(node: Node) -> str:
    """A node on one line, with its citation."""
    return f"- {describe(node)} ({citation_of(node)})"


def node_lines(found: Sequence[ScoredNode]) -> str:
    return "\n".join(node_line(each.node) for each in found)


def link_line(link: SymbolLink) -> str:
    """One step along an edge: the node that it leads to, the type of the edge, and its lines."""
    guess = ", by its name alone" if link.is_guess else ""
    step = f", step {link.depth}" if link.depth > 1 else ""
    at = f"lines {', '.join(map(str, link.lines))}" if len(link.lines) > 1 else f"line {link.line}"
    return f"{node_line(link.node)} {link.edge_type} at {at}{step}{guess}"


def caller_lines(found: Callers) -> str:
    """The callers of each symbol that a name may mean, and the calls with an unknown target by likely owner."""
    lines: list[str] = []
    for each in found.symbols:
        head = f"{symbol_ref(each.node)}, {len(each.callers):,} {'caller' if len(each.callers) == 1 else 'callers'}:"
        lines += [inline(head, WIDTH)] if len(found.symbols) > 1 else []
        lines += map(link_line, each.callers)
    if found.untold:
        sure = "" if found.certain else "No call of it is certain. "
        lines.append(f"{sure}{found.untold:,} calls of this name have an unknown target, among them:")
        lines += [
            f"- {inline(f'{call.path}:{call.line} {call.caller}', WIDTH)}, {_owner(call)}" for call in found.places
        ]
    return "\n".join(lines)


def _owner(call: NamedCall) -> str:
    if call.is_likely:
        return "likely"
    return f"likely of {inline(call.owner, WIDTH)}" if call.owner else "by its name alone"
