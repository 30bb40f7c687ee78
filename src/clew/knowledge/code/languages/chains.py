"""The names that chains of members and calls stand for: `f(x).b` is `f().b`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.nodes import named_at

if TYPE_CHECKING:
    from tree_sitter import Node

    from clew.knowledge.code.languages.walker import Walk

MAX_CHAIN = 8
"""Links of `a().b().c()` that are followed."""


def chain_of(walk: Walk, node: Node) -> bytes:
    """The dotted name; with a dot before it where the object has none, empty where nothing has one."""
    members, calls, wrappers, *_ = walk.shape
    parts: list[bytes] = []
    called = b""
    at: Node | None = node
    for _ in range(MAX_CHAIN):
        if at is None:
            break
        kind = at.type
        if kind in members:
            inner, field = members[kind]
            name = at.child_by_field_name(field)
            parts.append((_leaf_of(walk, name) if name is not None else b"") + called)
            if kind in calls:
                parts[-1] = parts[-1] if parts[-1].endswith(b"()") or at == node else parts[-1] + b"()"
            called = b""
            at = at.child_by_field_name(inner)
            if at is None and kind in calls:
                return b".".join(reversed(parts))
        elif kind in calls:
            called = b"()"
            at = at.child_by_field_name(calls[kind])
        elif kind in wrappers:
            at = _inside(at, wrappers[kind])
        else:
            pure = walk.pure_target(at)
            return b".".join(reversed([*parts, pure + called])) if pure else _dotted_tail(parts)
    return _dotted_tail(parts)


def _leaf_of(walk: Walk, node: Node) -> bytes:
    """The name at the end of a chain, without type arguments."""
    for _ in range(MAX_CHAIN):
        if node.type not in walk.shape.wrappers:
            break
        below = _inside(node, walk.shape.wrappers[node.type])
        if below is None:
            break
        node = below
    return walk.pure_target(node)


def _inside(wrapper: Node, field: str) -> Node | None:
    return wrapper.child_by_field_name(field) if field else named_at(wrapper)


def _dotted_tail(parts: list[bytes]) -> bytes:
    return b"." + b".".join(reversed(parts)) if parts and parts[0] else b""
