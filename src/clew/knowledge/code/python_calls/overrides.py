"""Overrides: methods of subclasses that a base class calls through `self`."""

from __future__ import annotations

from collections.abc import Iterator

from clew.knowledge.code.python_calls.heap import ClassValue, FunctionValue
from clew.knowledge.code.python_calls.solver import LoadedFile, Solver
from clew.knowledge.code.python_calls.summary import NOTHING, Function, Summary


def find_overrides(solver: Solver, file: LoadedFile) -> Iterator[tuple[int, int, int]]:
    """The calls of overrides in the methods of a file: caller, override and line."""
    for function in file.summary.functions:
        if function.of_class == NOTHING or function.kind == "static" or not function.parameters:
            continue
        uses, of_class = list(_receiver_uses(file.summary, function)), file.classes[function.of_class]
        for below in _heirs(solver, of_class, function) if uses else ():
            for attr, is_call, caller, line in uses:
                override = _inherited(solver, below, attr, of_class)
                if override is not None and (is_call or _is_property(solver, override)):
                    yield caller, override, line


def _receiver_uses(summary: Summary, function: Function) -> Iterator[tuple[str, bool, int, int]]:
    """The attributes of a method's receiver that are called or read: name, whether called, caller and line."""
    for use in summary.uses.get(function.parameters[0][1], ()):
        if use.op == "load":
            yield str(use.key), False, use.caller, use.line
        elif use.op == "call" and (site := summary.sites[use.node]).attr:
            yield site.attr, True, site.caller, site.line


def _heirs(solver: Solver, of_class: int, function: Function) -> Iterator[int]:
    """The subclasses whose instances run a method of the class: inherited, or through `super()`."""
    name, attributes = function.qualname.rpartition(".")[2], solver.attributes
    for below in attributes.subclasses(of_class):
        definer = attributes.definer(below, name)
        while below != of_class and definer not in (of_class, NOTHING):
            above = attributes.definer(below, name, after=definer)
            is_passed_on = above != NOTHING and _calls(
                solver, _method(solver, definer, name), _method(solver, above, name)
            )
            definer = above if is_passed_on else NOTHING
        if below != of_class and definer == of_class:
            yield below


def _inherited(solver: Solver, below: int, name: str, of_class: int) -> int | None:
    """The method of a subclass, its own or that of another base, which is not one of the class itself."""
    definer = solver.attributes.definer(below, name)
    is_other = definer != NOTHING and definer not in solver.attributes.order(of_class)
    return _method(solver, definer, name) if is_other else None


def _method(solver: Solver, of_class: int, name: str) -> int | None:
    """The function that the body of a class defines under a name."""
    value = solver.heap.values[of_class]
    if not isinstance(value, ClassValue) or value.is_gone or not value.defines(name):
        return None
    found = solver.heap.values.find_function(value.path, f"{value.qualname}.{name}")
    return found if found != NOTHING else None


def _is_property(solver: Solver, function: int) -> bool:
    value = solver.heap.values[function]
    return isinstance(value, FunctionValue) and value.info is not None and value.info.kind == "property"


def _calls(solver: Solver, caller: int | None, target: int | None) -> bool:
    if caller is None or target is None:
        return False
    one, other = solver.heap.values[caller], solver.heap.values[target]
    if not isinstance(one, FunctionValue) or not isinstance(other, FunctionValue) or one.info is None:
        return False
    file = solver.files.get(one.path)
    place = (file.number if file is not None else NOTHING, one.info.scope)
    return any((record.module, record.caller) == place for record in other.visits.values())
