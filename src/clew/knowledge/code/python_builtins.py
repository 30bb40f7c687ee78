"""Built-in functions and methods of containers, as far as functions pass through them or are called by them."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from clew.knowledge.code.python_accesses import load_all, store_all
from clew.knowledge.code.python_summary import NOTHING, ContainerKind
from clew.knowledge.code.python_values import ContainerValue, InstanceValue

if TYPE_CHECKING:
    from clew.knowledge.code.python_calls import CallRecord, Calls

TYPE_NAMES: dict[ContainerKind, str] = {"sequence": "list", "mapping": "dict", "generator": "generator"}


def iterate(calls: Calls, values: Set[int], into: int, record: CallRecord) -> None:
    """What iterating over values gives; an object of the project is asked for its iterator, and that for the next."""
    for number in values:
        value = calls.values[number]
        if isinstance(value, ContainerValue):
            calls.containers.elements(number, into)
        elif isinstance(value, InstanceValue):
            result = calls.heap.node()
            calls.heap.watch(result, _follow, calls, into, record)
            for attr in ("__iter__", "__aiter__"):
                calls.call_special(number, attr, record, result=result)


def _follow(values: Set[int], calls: Calls, into: int, record: CallRecord) -> None:
    for number in values:
        if isinstance(calls.values[number], ContainerValue):
            calls.containers.elements(number, into)
        for attr in ("__next__", "__anext__"):
            calls.call_special(number, attr, record, result=into)


def _each(values: Set[int], calls: Calls, into: int, record: CallRecord) -> None:
    iterate(calls, values, into, record)


def _elements(calls: Calls, record: CallRecord, sources: tuple[int, ...]) -> int:
    """A variable with what iterating over these gives."""
    into = calls.heap.node()
    for source in sources:
        calls.heap.watch(source, _each, calls, into, record)
    return into


def _give(calls: Calls, record: CallRecord, role: str, field: int) -> None:
    """Give back a container with `field` under an unknown key, once there is something in it."""
    made = calls.containers.made("sequence", (record.site, role))
    calls.heap.copy(field, calls.containers.field(made, None))
    calls.heap.watch(field, _hand_out, calls, record.result, made)


def _hand_out(values: Set[int], calls: Calls, into: int, made: int) -> None:
    calls.heap.put(into, made)


def _map(calls: Calls, record: CallRecord) -> None:
    """`map` and `filter`: what can be called among the arguments is, with what is in the others."""
    elements, result = _elements(calls, record, record.args), calls.heap.node()
    inner = calls.made(record, args=(elements,), result=result)
    for source in record.args:
        calls.heap.watch(source, calls.call_all, inner)
    _give(calls, record, "map", result)


def _filter(calls: Calls, record: CallRecord) -> None:
    elements = _elements(calls, record, record.args)
    inner = calls.made(record, args=(elements,), result=NOTHING)
    for source in record.args:
        calls.heap.watch(source, calls.call_all, inner)
    _give(calls, record, "filter", elements)


def _reduce(calls: Calls, record: CallRecord) -> None:
    elements = _elements(calls, record, record.args[1:])
    inner = calls.made(record, args=(record.result, elements), result=record.result)
    calls.heap.copy(elements, record.result)
    for source in record.args[:1]:
        calls.heap.watch(source, calls.call_all, inner)


def _by_key(calls: Calls, record: CallRecord) -> int:
    """The elements of what is sorted or compared, with the function that is given as its key called on each."""
    elements = _elements(calls, record, record.args)
    inner = calls.made(record, args=(elements,))
    for name, source in record.keywords:
        if name == "key":
            calls.heap.watch(source, calls.call_all, inner)
    return elements


def _sorted(calls: Calls, record: CallRecord) -> None:
    _give(calls, record, "sorted", _by_key(calls, record))


def _extreme(calls: Calls, record: CallRecord) -> None:
    calls.heap.copy(_by_key(calls, record), record.result)
    for source in record.args[1:] and record.args:
        calls.heap.copy(source, record.result)


def _collect(calls: Calls, record: CallRecord) -> None:
    """`list`, `tuple`, `set`, `reversed`: an empty one may be filled later."""
    if not record.args:
        calls.heap.put(record.result, calls.containers.made("sequence", (record.site, "list")))
    else:
        _give(calls, record, "list", _elements(calls, record, record.args[:1]))


def _dict(calls: Calls, record: CallRecord) -> None:
    made = calls.containers.made("mapping", (record.site, "dict"))
    for name, source in record.keywords:
        calls.heap.copy(source, calls.containers.field(made, name))
    for source in (*record.args[:1], *record.double_starred):
        calls.heap.watch(source, _merge, calls, made)
    calls.heap.put(record.result, made)


def _merge(values: Set[int], calls: Calls, made: int) -> None:
    for number in values:
        value = calls.values[number]
        if isinstance(value, ContainerValue) and number != made:
            for key, node in tuple(value.fields.items()):
                calls.heap.copy(node, calls.containers.field(made, key))
            calls.heap.copy(calls.containers.field(number, None), calls.containers.field(made, None))


def _enumerate(calls: Calls, record: CallRecord) -> None:
    _give_pairs(calls, record, {1: _elements(calls, record, record.args[:1])})


def _zip(calls: Calls, record: CallRecord) -> None:
    parts = {position: _elements(calls, record, (source,)) for position, source in enumerate(record.args)}
    _give_pairs(calls, record, parts)


def _give_pairs(calls: Calls, record: CallRecord, parts: dict[int, int]) -> None:
    """Give back a container of tuples with these variables in them, once one of them holds something."""
    pair, pairs = calls.containers.made("sequence", (record.site, "pair")), calls.heap.node()
    for position, node in parts.items():
        calls.heap.copy(node, calls.containers.field(pair, position))
        calls.heap.watch(node, _hand_out, calls, pairs, pair)
    _give(calls, record, "pairs", pairs)


def _next(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _follow, calls, record.result, record)


def _iter(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _ask_iterator, calls, record)


def _ask_iterator(values: Set[int], calls: Calls, record: CallRecord) -> None:
    for number in values:
        if isinstance(calls.values[number], ContainerValue):
            calls.heap.put(record.result, number)
        else:
            calls.call_special(number, "__iter__", record, result=record.result)


def _getattr(calls: Calls, record: CallRecord) -> None:
    """The name is the second argument: `getattr(thing, "name")` is known where it is written out."""
    if isinstance(record.constant, str):
        for source in record.args[:1]:
            calls.heap.watch(source, load_all, calls, record.constant, record.result, record)


def _setattr(calls: Calls, record: CallRecord) -> None:
    if isinstance(record.constant, str) and len(record.args) > 2:
        calls.heap.watch(record.args[0], store_all, calls, record.constant, record.args[2], record)


def _first_argument(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.copy(source, record.result)


def _type(calls: Calls, record: CallRecord) -> None:
    for source in record.args[:1]:
        calls.heap.watch(source, _class_of, calls, record.result)


def _class_of(values: Set[int], calls: Calls, into: int) -> None:
    for number in values:
        value = calls.values[number]
        if isinstance(value, InstanceValue):
            calls.heap.put(into, value.of_class)


def _append(calls: Calls, container: int, record: CallRecord) -> None:
    for source in record.args[-1:]:
        calls.heap.copy(source, calls.containers.field(container, None))


def _extend(calls: Calls, container: int, record: CallRecord) -> None:
    for source in record.args:
        calls.heap.watch(source, _merge_unordered, calls, container)
    for name, source in record.keywords:
        calls.heap.copy(source, calls.containers.field(container, name))


def _merge_unordered(values: Set[int], calls: Calls, container: int) -> None:
    for number in values:
        value = calls.values[number]
        if isinstance(value, ContainerValue) and number != container:
            is_mapping = value.kind == "mapping"
            if is_mapping:
                _merge({number}, calls, container)
            else:
                calls.heap.copy(calls.containers.everything(number), calls.containers.field(container, None))


def _get(calls: Calls, container: int, record: CallRecord) -> None:
    calls.containers.read(container, record.constant, record.result)
    for source in record.args[1:]:
        calls.heap.copy(source, record.result)


def _set_default(calls: Calls, container: int, record: CallRecord) -> None:
    _get(calls, container, record)
    for source in record.args[1:]:
        calls.heap.copy(source, calls.containers.field(container, record.constant))


def _everything(calls: Calls, container: int, record: CallRecord) -> None:
    _give(calls, record, "values", calls.containers.everything(container))


def _items(calls: Calls, container: int, record: CallRecord) -> None:
    _give_pairs(calls, record, {1: calls.containers.everything(container)})


def _any_of(calls: Calls, container: int, record: CallRecord) -> None:
    calls.containers.read(container, None, record.result)


def _same(calls: Calls, container: int, record: CallRecord) -> None:
    calls.heap.put(record.result, container)


MODELS: dict[str, Callable[[Calls, CallRecord], None]] = {
    "map": _map,
    "filter": _filter,
    "functools.reduce": _reduce,
    "sorted": _sorted,
    "min": _extreme,
    "max": _extreme,
    "list": _collect,
    "tuple": _collect,
    "set": _collect,
    "frozenset": _collect,
    "reversed": _collect,
    "dict": _dict,
    "enumerate": _enumerate,
    "zip": _zip,
    "next": _next,
    "iter": _iter,
    "getattr": _getattr,
    "setattr": _setattr,
    "functools.partial": _first_argument,
    "type": _type,
}
"""What is known of functions that the project does not define."""

CONTAINER_METHODS: dict[str, Callable[[Calls, int, CallRecord], None]] = {
    "append": _append,
    "appendleft": _append,
    "add": _append,
    "insert": _append,
    "extend": _extend,
    "update": _extend,
    "get": _get,
    "pop": _get,
    "setdefault": _set_default,
    "values": _everything,
    "items": _items,
    "popitem": _any_of,
    "popleft": _any_of,
    "__next__": _any_of,
    "send": _any_of,
    "copy": _same,
    "__iter__": _same,
}
