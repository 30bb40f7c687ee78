"""Reading and setting attributes of values: methods are bound to their receiver, properties and setters are called."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from clew.knowledge.code.python_summary import NOTHING
from clew.knowledge.code.python_values import (
    ClassValue,
    ExternalValue,
    FunctionValue,
    InstanceValue,
    ModuleValue,
    SuperValue,
)

if TYPE_CHECKING:
    from clew.knowledge.code.python_calls import CallRecord, Calls


def load_all(values: Set[int], calls: Calls, attr: str, into: int, record: CallRecord) -> None:
    """`into = value.attr` for each value; who reads it, and thereby calls a property, is in the record."""
    for number in values:
        load(calls, number, attr, into, record)


def load(calls: Calls, number: int, attr: str, into: int, record: CallRecord) -> None:
    value = calls.values[number]
    names = calls.exports
    match value:
        case InstanceValue():
            if attr == "__class__":
                calls.heap.put(into, value.of_class)
            if attr in names.stored_names:
                calls.heap.copy(calls.attributes.read(value.of_class, attr), into)
            if calls.has_externals or attr in names.class_names:
                calls.heap.watch(calls.attributes.lookup(value.of_class, attr), _bind, calls, into, number, record)
        case ClassValue():
            calls.heap.watch(calls.attributes.lookup(number, attr), _bind, calls, into, number, record)
        case SuperValue():
            found = calls.attributes.lookup_after(value.of_class, calls.class_of(value.receiver), attr)
            calls.heap.watch(found, _bind, calls, into, value.receiver, record)
        case ModuleValue():
            calls.heap.copy(names.find(value.path, attr), into)
        case ExternalValue():
            calls.heap.put(into, calls.values.external(f"{value.name}.{attr}"))
        case FunctionValue():
            if attr in names.stored_names:
                calls.heap.copy(calls.attributes.slot(number, attr), into)


def _bind(values: Set[int], calls: Calls, into: int, receiver: int, record: CallRecord) -> None:
    for number in values:
        value = calls.values[number]
        if not isinstance(value, FunctionValue) or value.info is None:
            calls.heap.put(into, number)
        elif value.info.kind == "property":
            calls.enter(number, calls.made(record, result=into), receiver)
        elif value.info.kind != "setter":
            bound = calls.bound_to(number, receiver)
            calls.heap.put(into, number if bound is None else calls.values.bound(number, bound))


def store_all(values: Set[int], calls: Calls, attr: str, source: int, record: CallRecord) -> None:
    """`value.attr = source` for each value."""
    for number in values:
        value = calls.values[number]
        match value:
            case InstanceValue():
                if source != NOTHING:
                    calls.heap.copy(source, calls.attributes.stored(value.of_class, attr))
                if attr in calls.exports.property_names:
                    found = calls.attributes.lookup(value.of_class, attr)
                    calls.heap.watch(found, _set, calls, source, number, record)
            case ClassValue():
                calls.heap.copy(source, calls.attributes.stored_on_class(number, attr))
            case ModuleValue():
                calls.heap.copy(source, calls.exports.find(value.path, attr))
            case FunctionValue():
                calls.heap.copy(source, calls.attributes.slot(number, attr))


def _set(values: Set[int], calls: Calls, source: int, receiver: int, record: CallRecord) -> None:
    for number in values:
        value = calls.values[number]
        if isinstance(value, FunctionValue) and value.info is not None and value.info.kind == "setter":
            calls.enter(number, calls.made(record, args=(source,)), receiver)
