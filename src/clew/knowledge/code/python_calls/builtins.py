"""Models of built-in functions and container methods, as far as they pass on or call callables.

Functions whose first parameter is `number` watch a variable and handle one value at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from clew.knowledge.code.python_calls.heap import InstanceValue
from clew.knowledge.code.python_calls.summary import NOTHING

if TYPE_CHECKING:
    from clew.knowledge.code.python_calls.calls import CallRecord, CallRules

Model = Callable[["CallRules", "CallRecord"], None]
ContainerMethod = Callable[["CallRules", int, "CallRecord"], None]


def iterate(number: int, calls: CallRules, into: int, record: CallRecord) -> None:
    """Put the elements of a value into a variable, through `__iter__` and `__next__` of an instance."""
    if calls.heap.is_container(number):
        calls.heap.read_elements(number, into)
    elif isinstance(calls.heap.values[number], InstanceValue):
        iterator = calls.heap.node()
        calls.heap.watch(iterator, _advance, calls, into, record)
        for attr in ("__iter__", "__aiter__"):
            calls.call_special(number, attr, record, result=iterator)


def _advance(number: int, calls: CallRules, into: int, record: CallRecord) -> None:
    if calls.heap.is_container(number):
        calls.heap.read_elements(number, into)
    for attr in ("__next__", "__anext__"):
        calls.call_special(number, attr, record, result=into)


def _elements(calls: CallRules, record: CallRecord, sources: Iterable[int]) -> int:
    """A variable with the elements of all sources."""
    into = calls.heap.node()
    for source in sources:
        calls.heap.watch(source, iterate, calls, into, record)
    return into


def _call_each(
    calls: CallRules, record: CallRecord, sources: Iterable[int], args: tuple[int, ...], result: int
) -> None:
    """Call the values of all sources with these arguments."""
    inner = calls.implied(record, args=args, result=result)
    for source in sources:
        calls.heap.watch(source, calls.call, inner)


def _return_sequence(calls: CallRules, record: CallRecord, field: int) -> None:
    """Return a sequence with the values of a variable, as soon as the variable has a value."""
    made = calls.heap.container((record.site, "sequence"))
    calls.heap.copy(field, calls.heap.field(made, None))
    calls.heap.watch(field, _put, calls, record.result, made)


def _put(number: int, calls: CallRules, into: int, made: int) -> None:
    calls.heap.put(into, made)


def _return_tuples(calls: CallRules, record: CallRecord, parts: dict[int, int]) -> None:
    """Return a sequence of tuples with these variables by position, once one of them has a value."""
    made, tuples = calls.heap.container((record.site, "tuple")), calls.heap.node()
    for position, node in parts.items():
        calls.heap.copy(node, calls.heap.field(made, position))
        calls.heap.watch(node, _put, calls, tuples, made)
    _return_sequence(calls, record, tuples)


def _map(calls: CallRules, record: CallRecord) -> None:
    result, elements = calls.heap.node(), _elements(calls, record, record.args)
    _call_each(calls, record, record.args, (elements,), result)
    _return_sequence(calls, record, result)


def _filter(calls: CallRules, record: CallRecord) -> None:
    elements = _elements(calls, record, record.args)
    _call_each(calls, record, record.args, (elements,), NOTHING)
    _return_sequence(calls, record, elements)


def _elements_by_key(calls: CallRules, record: CallRecord) -> int:
    elements = _elements(calls, record, record.args)
    keys = (source for name, source in record.keywords if name == "key")
    _call_each(calls, record, keys, (elements,), NOTHING)
    return elements


def _collect(calls: CallRules, record: CallRecord) -> None:
    if record.args:
        _return_sequence(calls, record, _elements_by_key(calls, record))
    else:  # may be filled later
        calls.heap.put(record.result, calls.heap.container((record.site, "sequence")))


def _pick(calls: CallRules, record: CallRecord) -> None:
    calls.heap.copy(_elements_by_key(calls, record), record.result)
    for source in record.args if len(record.args) > 1 else ():
        calls.heap.copy(source, record.result)


def _dict(calls: CallRules, record: CallRecord) -> None:
    made = calls.heap.container((record.site, "dict"), is_mapping=True)
    _extend(calls, made, record)
    calls.heap.put(record.result, made)


def _zip(calls: CallRules, record: CallRecord, first: int = 0) -> None:
    parts = {at: _elements(calls, record, (source,)) for at, source in enumerate(record.args, start=first)}
    _return_tuples(calls, record, parts)


def _next(calls: CallRules, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _advance, calls, record.result, record)


def _getattr(calls: CallRules, record: CallRecord) -> None:
    if isinstance(record.constant, str) and record.args:
        calls.heap.watch(record.args[0], calls.load, record.constant, record.result, record)


def _return_argument(calls: CallRules, record: CallRecord, position: int = 0) -> None:
    for source in record.args[position : position + 1]:
        calls.heap.copy(source, record.result)


def _type(calls: CallRules, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, calls.load, "__class__", record.result, record)


def _append(calls: CallRules, container: int, record: CallRecord) -> None:
    for source in record.args[-1:]:
        calls.heap.copy(source, calls.heap.field(container, None))


def _extend(calls: CallRules, container: int, record: CallRecord) -> None:
    for source in record.args:
        calls.heap.watch(source, _extend_by, calls, container)
    for name, source in record.keywords:
        if name:
            calls.heap.copy(source, calls.heap.field(container, name))
        else:
            calls.heap.watch(source, _extend_by, calls, container)


def _extend_by(number: int, calls: CallRules, container: int) -> None:
    if calls.heap.is_container(number):
        calls.heap.extend(number, container)


def _get(calls: CallRules, container: int, record: CallRecord) -> None:
    calls.heap.read_item(container, record.constant, record.result)
    for source in record.args[1:]:
        calls.heap.copy(source, record.result)


def _set_default(calls: CallRules, container: int, record: CallRecord) -> None:
    _get(calls, container, record)
    _append(calls, container, record)


def _values(calls: CallRules, container: int, record: CallRecord) -> None:
    _return_sequence(calls, record, calls.heap.everything(container))


def _items(calls: CallRules, container: int, record: CallRecord) -> None:
    _return_tuples(calls, record, {1: calls.heap.everything(container)})


def _same(calls: CallRules, container: int, record: CallRecord) -> None:
    calls.heap.put(record.result, container)


MODELS: dict[str, Model] = {
    "map": _map,
    "filter": _filter,
    **dict.fromkeys(("min", "max"), _pick),
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "reversed", "sorted", "iter"), _collect),
    "dict": _dict,
    "enumerate": partial(_zip, first=1),
    "zip": _zip,
    "next": _next,
    "getattr": _getattr,
    **dict.fromkeys(("functools.partial", "copy.copy", "copy.deepcopy"), _return_argument),
    "typing.cast": partial(_return_argument, position=1),
    "type": _type,
}
"""Functions outside the project by dotted name."""

CONTAINER_METHODS: dict[str, ContainerMethod] = {
    **dict.fromkeys(("append", "appendleft", "add", "insert"), _append),
    **dict.fromkeys(("extend", "update"), _extend),
    **dict.fromkeys(("get", "pop", "popitem", "popleft", "__next__", "send"), _get),
    "setdefault": _set_default,
    "values": _values,
    "items": _items,
    **dict.fromkeys(("copy", "__iter__"), _same),
}
