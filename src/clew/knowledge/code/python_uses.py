"""What happens to the values of a variable, by how it is used: attributes are read and set, items, bases and the like.
A use is followed once for each value that comes."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any

from clew.knowledge.code.python_accesses import load_all, store_all
from clew.knowledge.code.python_builtins import iterate
from clew.knowledge.code.python_calls import CallRecord
from clew.knowledge.code.python_program import SHIFT
from clew.knowledge.code.python_summary import (
    NOTHING,
    Base,
    Call,
    Enter,
    Instance,
    Item,
    Iterate,
    Load,
    SetItem,
    Slice,
    Store,
    Super,
    Use,
)
from clew.knowledge.code.python_values import ClassValue, ContainerValue, ExternalValue, InstanceValue

if TYPE_CHECKING:
    from clew.knowledge.code.python_solver import Solver


def _call(solver: Solver, use: Call, number: int, values: Set[int]) -> None:
    solver.call(use, number, values)


def _load(solver: Solver, use: Load, number: int, values: Set[int]) -> None:
    if use.into == NOTHING and use.attr not in solver.exports.property_names:
        return
    into = (number << SHIFT) + use.into if use.into != NOTHING else NOTHING
    load_all(values, solver.calls, use.attr, into, _place(number, use))


def _store(solver: Solver, use: Store, number: int, values: Set[int]) -> None:
    source = (number << SHIFT) + use.value if use.value != NOTHING else NOTHING
    store_all(values, solver.calls, use.attr, source, _place(number, use))


def _item(solver: Solver, use: Item, number: int, values: Set[int]) -> None:
    into = (number << SHIFT) + use.into
    for value in values:
        known = solver.heap.values[value]
        if isinstance(known, ContainerValue):
            solver.containers.read(value, use.key, into)
        elif isinstance(known, InstanceValue):
            solver.calls.call_special(value, "__getitem__", _place(number, use), result=into)


def _set_item(solver: Solver, use: SetItem, number: int, values: Set[int]) -> None:
    source = (number << SHIFT) + use.value if use.value != NOTHING else NOTHING
    for value in values:
        known = solver.heap.values[value]
        if isinstance(known, ContainerValue):
            solver.heap.copy(source, solver.containers.field(value, use.key))
        elif isinstance(known, InstanceValue):
            solver.calls.call_special(value, "__setitem__", _place(number, use), args=(NOTHING, source))


def _iterate(solver: Solver, use: Iterate, number: int, values: Set[int]) -> None:
    iterate(solver.calls, values, (number << SHIFT) + use.into, _place(number, use))


def _enter_with(solver: Solver, use: Enter, number: int, values: Set[int]) -> None:
    into = (number << SHIFT) + use.into
    for value in values:
        known = solver.heap.values[value]
        if isinstance(known, ContainerValue):
            solver.containers.elements(value, into)
        elif isinstance(known, InstanceValue):
            _ask_to_enter(solver, value, known.of_class, into, _place(number, use))


def _ask_to_enter(solver: Solver, value: int, of_class: int, into: int, record: CallRecord) -> None:
    if not any(solver.attributes.has(of_class, name) for name in ("__enter__", "__aenter__")):
        solver.heap.put(into, value)
    for attr in ("__enter__", "__aenter__", "__exit__", "__aexit__"):
        solver.calls.call_special(value, attr, record, result=into if "enter" in attr else NOTHING)


def _instance(solver: Solver, use: Instance, number: int, values: Set[int]) -> None:
    into = (number << SHIFT) + use.into
    for value in values:
        known = solver.heap.values[value]
        if isinstance(known, ClassValue):
            solver.heap.put(into, solver.heap.values.instance(value))
        elif isinstance(known, ExternalValue) and solver.calls.has_externals:
            solver.heap.put(into, solver.heap.values.external(known.name, is_instance=True))


def _super(solver: Solver, use: Super, number: int, values: Set[int]) -> None:
    of_class = solver.by_number[number].classes[use.of_class]
    for value in values:
        if isinstance(solver.heap.values[value], (InstanceValue, ClassValue)):
            solver.heap.put((number << SHIFT) + use.into, solver.heap.values.above(of_class, value))


def _base(solver: Solver, use: Base, number: int, values: Set[int]) -> None:
    of_class = solver.by_number[number].classes[use.of_class]
    for value in values:
        if isinstance(solver.heap.values[value], (ClassValue, ExternalValue)):
            solver.attributes.rebase(of_class, use.position, value)


def _slice(solver: Solver, use: Slice, number: int, values: Set[int]) -> None:
    base = number << SHIFT
    for value in values:
        if isinstance(solver.heap.values[value], ContainerValue):
            made = solver.containers.made("sequence", (base, use.container, value))
            solver.containers.slice(value, use.start, use.stop, made)
            solver.heap.put(base + use.into, made)


def _place(number: int, use: Load | Store | Item | SetItem | Iterate | Enter) -> CallRecord:
    """Where something happens that may call."""
    return CallRecord(NOTHING, number, use.caller, use.line)


HANDLERS: dict[type[Use], Callable[[Solver, Any, int, Set[int]], None]] = {
    Load: _load,
    Store: _store,
    Item: _item,
    SetItem: _set_item,
    Call: _call,
    Iterate: _iterate,
    Enter: _enter_with,
    Instance: _instance,
    Super: _super,
    Base: _base,
    Slice: _slice,
}
"""Follow values through a use in the file with a number."""
