"""Models of built-in functions and container methods, as far as callables pass through them or are called by them.

Functions whose first parameter is `number` watch a variable and handle one value at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from clew.knowledge.code.python_calls.heap import ContainerValue, InstanceValue
from clew.knowledge.code.python_calls.summary import NOTHING, ContainerKind

if TYPE_CHECKING:
    from clew.knowledge.code.python_calls.calls import CallRecord, Calls

Model = Callable[["Calls", "CallRecord"], None]
ContainerMethod = Callable[["Calls", int, "CallRecord"], None]
TYPE_NAMES: dict[ContainerKind, str] = {"sequence": "list", "mapping": "dict", "generator": "generator"}


def iterate(number: int, calls: Calls, into: int, record: CallRecord) -> None:
    """Put the elements of a value into a variable, through `__iter__` and `__next__` of an instance."""
    value = calls.values[number]
    if isinstance(value, ContainerValue):
        calls.containers.elements(number, into)
    elif isinstance(value, InstanceValue):
        iterator = calls.heap.node()
        calls.heap.watch(iterator, _advance, calls, into, record)
        for attr in ("__iter__", "__aiter__"):
            calls.call_special(number, attr, record, result=iterator)


def _advance(number: int, calls: Calls, into: int, record: CallRecord) -> None:
    if isinstance(calls.values[number], ContainerValue):
        calls.containers.elements(number, into)
    for attr in ("__next__", "__anext__"):
        calls.call_special(number, attr, record, result=into)


def _elements(calls: Calls, record: CallRecord, sources: Iterable[int]) -> int:
    """A variable with the elements of all sources."""
    into = calls.heap.node()
    for source in sources:
        calls.heap.watch(source, iterate, calls, into, record)
    return into


def _call_each(calls: Calls, record: CallRecord, sources: Iterable[int], args: tuple[int, ...], result: int) -> None:
    """Call the values of all sources with these arguments."""
    inner = calls.implied(record, args=args, result=result)
    for source in sources:
        calls.heap.watch(source, calls.call, inner)


def _return_sequence(calls: Calls, record: CallRecord, role: str, field: int) -> None:
    """Return a sequence with the values of a variable, once it has any."""
    made = calls.values.container("sequence", (record.site, role))
    calls.heap.copy(field, calls.containers.field(made, None))
    calls.heap.watch(field, _put, calls, record.result, made)


def _put(number: int, calls: Calls, into: int, made: int) -> None:
    calls.heap.put(into, made)


def _return_tuples(calls: Calls, record: CallRecord, parts: dict[int, int]) -> None:
    """Return a sequence of tuples with these variables by position, once one of them has a value."""
    pair, pairs = calls.values.container("sequence", (record.site, "pair")), calls.heap.node()
    for position, node in parts.items():
        calls.heap.copy(node, calls.containers.field(pair, position))
        calls.heap.watch(node, _put, calls, pairs, pair)
    _return_sequence(calls, record, "pairs", pairs)


def _map(calls: Calls, record: CallRecord) -> None:
    result = calls.heap.node()
    _call_each(calls, record, record.args, (_elements(calls, record, record.args),), result)
    _return_sequence(calls, record, "map", result)


def _filter(calls: Calls, record: CallRecord) -> None:
    elements = _elements(calls, record, record.args)
    _call_each(calls, record, record.args, (elements,), NOTHING)
    _return_sequence(calls, record, "filter", elements)


def _reduce(calls: Calls, record: CallRecord) -> None:
    elements = _elements(calls, record, record.args[1:])
    calls.heap.copy(elements, record.result)
    _call_each(calls, record, record.args[:1], (record.result, elements), record.result)


def _elements_by_key(calls: Calls, record: CallRecord) -> int:
    elements = _elements(calls, record, record.args)
    keys = (source for name, source in record.keywords if name == "key")
    _call_each(calls, record, keys, (elements,), NOTHING)
    return elements


def _extreme(calls: Calls, record: CallRecord) -> None:
    calls.heap.copy(_elements_by_key(calls, record), record.result)
    for source in record.args if len(record.args) > 1 else ():
        calls.heap.copy(source, record.result)


def _collect(calls: Calls, record: CallRecord) -> None:
    if record.args:
        _return_sequence(calls, record, "list", _elements(calls, record, record.args[:1]))
    else:  # may be filled later
        calls.heap.put(record.result, calls.values.container("sequence", (record.site, "list")))


def _dict(calls: Calls, record: CallRecord) -> None:
    made = calls.values.container("mapping", (record.site, "dict"))
    for name, source in record.keywords:
        calls.heap.copy(source, calls.containers.field(made, name))
    for source in (*record.args[:1], *record.double_starred):
        calls.heap.watch(source, _merge, calls, made)
    calls.heap.put(record.result, made)


def _merge(number: int, calls: Calls, into: int) -> None:
    if isinstance(calls.values[number], ContainerValue):
        calls.containers.merge(number, into)


def _zip(calls: Calls, record: CallRecord) -> None:
    parts = {position: _elements(calls, record, (source,)) for position, source in enumerate(record.args)}
    _return_tuples(calls, record, parts)


def _next(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _advance, calls, record.result, record)


def _iter(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _get_iterator, calls, record)


def _get_iterator(number: int, calls: Calls, record: CallRecord) -> None:
    if isinstance(calls.values[number], ContainerValue):
        calls.heap.put(record.result, number)
    else:
        calls.call_special(number, "__iter__", record, result=record.result)


def _getattr(calls: Calls, record: CallRecord) -> None:
    if isinstance(record.constant, str):
        for source in record.args[:1]:
            calls.heap.watch(source, calls.load, record.constant, record.result, record)


def _setattr(calls: Calls, record: CallRecord) -> None:
    if isinstance(record.constant, str) and len(record.args) > 2:
        calls.heap.watch(record.args[0], calls.store, record.constant, record.args[2], record)


def _return_argument(position: int) -> Model:
    def copy_argument(calls: Calls, record: CallRecord) -> None:
        for source in record.args[position : position + 1]:
            calls.heap.copy(source, record.result)

    return copy_argument


def _type(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _class_of, calls, record.result)


def _class_of(number: int, calls: Calls, into: int) -> None:
    value = calls.values[number]
    if isinstance(value, InstanceValue):
        calls.heap.put(into, value.of_class)


def _append(calls: Calls, container: int, record: CallRecord) -> None:
    for source in record.args[-1:]:
        calls.heap.copy(source, calls.containers.field(container, None))


def _extend(calls: Calls, container: int, record: CallRecord) -> None:
    for source in record.args:
        calls.heap.watch(source, _extend_by, calls, container)
    for name, source in record.keywords:
        calls.heap.copy(source, calls.containers.field(container, name))


def _extend_by(number: int, calls: Calls, container: int) -> None:
    value = calls.values[number]
    if isinstance(value, ContainerValue) and value.kind == "mapping":
        calls.containers.merge(number, container)
    elif isinstance(value, ContainerValue) and number != container:
        calls.heap.copy(calls.containers.everything(number), calls.containers.field(container, None))


def _get(calls: Calls, container: int, record: CallRecord) -> None:
    calls.containers.read(container, record.constant, record.result)
    for source in record.args[1:]:
        calls.heap.copy(source, record.result)


def _set_default(calls: Calls, container: int, record: CallRecord) -> None:
    _get(calls, container, record)
    for source in record.args[1:]:
        calls.heap.copy(source, calls.containers.field(container, record.constant))


def _values(calls: Calls, container: int, record: CallRecord) -> None:
    _return_sequence(calls, record, "values", calls.containers.everything(container))


def _items(calls: Calls, container: int, record: CallRecord) -> None:
    _return_tuples(calls, record, {1: calls.containers.everything(container)})


def _any_element(calls: Calls, container: int, record: CallRecord) -> None:
    calls.containers.read(container, None, record.result)


def _same(calls: Calls, container: int, record: CallRecord) -> None:
    calls.heap.put(record.result, container)


MODELS: dict[str, Model] = {
    "map": _map,
    "filter": _filter,
    "functools.reduce": _reduce,
    "sorted": lambda calls, record: _return_sequence(calls, record, "sorted", _elements_by_key(calls, record)),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "reversed"), _collect),
    "dict": _dict,
    "enumerate": lambda calls, record: _return_tuples(calls, record, {1: _elements(calls, record, record.args[:1])}),
    "zip": _zip,
    "next": _next,
    "iter": _iter,
    "getattr": _getattr,
    "setattr": _setattr,
    **dict.fromkeys(("functools.partial", "copy.copy", "copy.deepcopy"), _return_argument(0)),
    "typing.cast": _return_argument(1),
    "type": _type,
}
"""Functions outside the project by dotted name."""

CONTAINER_METHODS: dict[str, ContainerMethod] = {
    **dict.fromkeys(("append", "appendleft", "add", "insert"), _append),
    **dict.fromkeys(("extend", "update"), _extend),
    **dict.fromkeys(("get", "pop"), _get),
    "setdefault": _set_default,
    "values": _values,
    "items": _items,
    **dict.fromkeys(("popitem", "popleft", "__next__", "send"), _any_element),
    **dict.fromkeys(("copy", "__iter__"), _same),
}
