"""Calls and attribute access: the effect of calling a value, the binding of arguments, and the resulting call edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.knowledge.code.python_calls.attributes import Attributes
from clew.knowledge.code.python_calls.builtins import CONTAINER_METHODS, MODELS, TYPE_NAMES
from clew.knowledge.code.python_calls.heap import (
    BoundValue,
    ClassValue,
    ContainerValue,
    ExternalValue,
    FunctionValue,
    Heap,
    InstanceValue,
    ModuleValue,
    SuperValue,
)
from clew.knowledge.code.python_calls.modules import Exports
from clew.knowledge.code.python_calls.summary import NOTHING, Function, Key

MAX_STARRED = 24
"""Parameters that `*args` is spread over."""


@dataclass(slots=True, eq=False)
class CallRecord:
    """A place of a call, with variables of the whole program. `site` is negative for calls that are not written as
    one: a property, an iterator, a callback."""

    site: int
    module: int
    caller: int
    line: int
    attr: str = ""
    args: tuple[int, ...] = ()
    result: int = NOTHING
    keywords: tuple[tuple[str, int], ...] = ()
    starred: tuple[int, ...] = ()
    double_starred: tuple[int, ...] = ()
    constant: Key = None


class Calls:
    """Applies calls to values.

    `edges` has (caller, target, line) by module; `wrapped` the same for methods that a decorator replaced.
    """

    def __init__(self, heap: Heap, attributes: Attributes, exports: Exports, *, has_externals: bool) -> None:
        self.heap = heap
        self.values = heap.values
        self.containers = heap.containers
        self.attributes = attributes
        self.exports = exports
        self.has_externals = has_externals
        self.edges: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
        self.wrapped: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
        self.records: dict[int, CallRecord] = {}
        self.resolved: set[int] = set()
        self._last_implied = NOTHING

    def implied(
        self, of: CallRecord, *, attr: str = "", args: tuple[int, ...] = (), result: int = NOTHING
    ) -> CallRecord:
        """A call that another one implies, by the same caller."""
        self._last_implied -= 1
        return CallRecord(self._last_implied, of.module, of.caller, of.line, attr, args, result)

    def call(self, number: int, record: CallRecord) -> None:
        """Call a value."""
        value = self.values[number]
        match value:
            case FunctionValue():
                self.enter(number, record, None)
            case BoundValue():
                self.enter(value.function, record, value.receiver)
            case ClassValue():
                self._instantiate(number, record)
            case InstanceValue():
                self.call_attr(number, "__call__", record)
            case ExternalValue():
                self._call_external(value.name, record)

    def call_attr(self, number: int, attr: str, record: CallRecord) -> None:
        """Call an attribute of a value."""
        for node, receiver, after in self._find(number, attr):
            if receiver is None:
                self.heap.watch(node, self.call, record)
            else:
                self.heap.watch(node, self._call_member, record, receiver, attr, after)
        value = self.values[number]
        if isinstance(value, ContainerValue):
            self._call_container(number, value, attr, record)
        elif isinstance(value, ExternalValue):
            self._call_external(f"{value.name}.{attr}", record)
        elif isinstance(value, InstanceValue) and attr == "__class__":
            self.call(value.of_class, record)
        elif isinstance(value, (FunctionValue, BoundValue)) and attr == "__call__":
            self.call(number, record)

    def call_special(
        self, number: int, attr: str, of: CallRecord, *, args: tuple[int, ...] = (), result: int = NOTHING
    ) -> None:
        """Call a method such as `__enter__` that the language calls, if the class of an instance has it."""
        value = self.values[number]
        if isinstance(value, InstanceValue) and self.attributes.definer(value.of_class, attr) != NOTHING:
            self.call_attr(number, attr, self.implied(of, attr=attr, args=args, result=result))

    def load(self, number: int, attr: str, into: int, record: CallRecord) -> None:
        """`into = value.attr`: methods are bound, properties called."""
        for node, receiver, _ in self._find(number, attr):
            if receiver is None:
                self.heap.copy(node, into)
            else:
                self.heap.watch(node, self._bind, into, receiver, record)
        value = self.values[number]
        if isinstance(value, ExternalValue):
            self.heap.put(into, self.values.external(f"{value.name}.{attr}"))
        elif isinstance(value, InstanceValue) and attr == "__class__":
            self.heap.put(into, value.of_class)

    def store(self, number: int, attr: str, source: int, record: CallRecord) -> None:
        """`value.attr = source`: setters are called."""
        value = self.values[number]
        match value:
            case InstanceValue():
                if source != NOTHING:
                    self.heap.copy(source, self.attributes.stored(value.of_class, attr))
                if attr in self.exports.property_names:
                    found = self.attributes.lookup(value.of_class, attr)
                    self.heap.watch(found, self._call_setter, source, number, record)
            case ClassValue():
                self.heap.copy(source, self.attributes.stored_on_class(number, attr))
            case ModuleValue():
                self.heap.copy(source, self.exports.find(value.path, attr))
            case FunctionValue():
                self.heap.copy(source, self.attributes.slot(number, attr))

    def _find(self, number: int, attr: str) -> Iterator[tuple[int, int | None, int]]:
        """Variables with the value of an attribute: each with the receiver to bind functions to, or None, and the class
        after which `super()` looks."""
        value, exports = self.values[number], self.exports
        match value:
            case InstanceValue():
                if attr in exports.stored_names:
                    yield self.attributes.read(value.of_class, attr), None, NOTHING
                if self.has_externals or attr in exports.class_names:
                    yield self.attributes.lookup(value.of_class, attr), number, NOTHING
            case ClassValue():
                yield self.attributes.lookup(number, attr), number, NOTHING
            case SuperValue():
                found = self.attributes.lookup_after(value.of_class, self._class_of(value.receiver), attr)
                yield found, value.receiver, value.of_class
            case ModuleValue():
                yield exports.find(value.path, attr), None, NOTHING
            case FunctionValue():
                if attr in exports.stored_names:
                    yield self.attributes.slot(number, attr), None, NOTHING

    def _class_of(self, receiver: int) -> int:
        value = self.values[receiver]
        return value.of_class if isinstance(value, InstanceValue) else receiver

    def _kind(self, number: int) -> str:
        value = self.values[number]
        return value.info.kind if isinstance(value, FunctionValue) and value.info is not None else ""

    def _binding(self, function: int, receiver: int) -> int | None:
        """The first argument of a function that was found in the class of a receiver."""
        kind = self._kind(function)
        if kind == "class":
            return self._class_of(receiver)
        return receiver if kind == "plain" and not isinstance(self.values[receiver], ClassValue) else None

    def _bind(self, number: int, into: int, receiver: int, record: CallRecord) -> None:
        kind = self._kind(number)
        if kind == "property":
            self.enter(number, self.implied(record, result=into), receiver)
        elif kind != "setter":
            bound = self._binding(number, receiver)
            self.heap.put(into, number if bound is None else self.values.number(BoundValue, number, bound))

    def _call_setter(self, number: int, source: int, receiver: int, record: CallRecord) -> None:
        if self._kind(number) == "setter":
            self.enter(number, self.implied(record, args=(source,)), receiver)

    def _call_member(self, number: int, record: CallRecord, receiver: int, attr: str, after: int) -> None:
        value = self.values[number]
        if not isinstance(value, FunctionValue) or value.name != attr:
            self._note_wrapped(record, self._class_of(receiver), attr, after)
        if not isinstance(value, FunctionValue):
            self.call(number, record)
        elif self._kind(number) == "property":
            result = self.heap.node()
            self.enter(number, self.implied(record, result=result), receiver)
            self.heap.watch(result, self.call, record)
        else:
            self.enter(number, record, self._binding(number, receiver))

    def _note_wrapped(self, record: CallRecord, of_class: int, attr: str, after: int) -> None:
        """A class that holds something else under the name of a method has a decorator on it: the method is called."""
        definer = self.attributes.definer(of_class, attr, after)
        above = self.values[definer] if definer != NOTHING else None
        if isinstance(above, ClassValue):
            method = self.values.find_function(above.path, f"{above.qualname}.{attr}")
            if method != NOTHING:
                self.wrapped[record.module].add((record.caller, method, record.line))

    def enter(self, number: int, record: CallRecord, receiver: int | None) -> None:
        """Call a function: record the edge, bind arguments to parameters, and pass on the result."""
        value = self.values[number]
        assert isinstance(value, FunctionValue)
        key = (record.site, NOTHING if receiver is None else receiver)
        if value.is_gone or value.info is None or key in value.visits:
            return
        value.visits[key] = record
        self._note(record, number)
        offset, info = 0, value.info
        if receiver is not None and info.parameters:
            offset = 1
            self.heap.put(value.base + info.parameters[0][1], receiver)
        self._bind_arguments(info, value.base, record, offset)
        if record.result != NOTHING and info.generator == NOTHING:
            self.heap.copy(value.base + info.returned, record.result)
        elif record.result != NOTHING:
            self.heap.put(record.result, self.values.container("generator", (value.base, info.generator)))

    def _note(self, record: CallRecord, target: int) -> None:
        if not isinstance(self.values[target], ExternalValue):
            self.resolved.add(record.site)
        self.edges[record.module].add((record.caller, target, record.line))

    def _bind_arguments(self, info: Function, base: int, record: CallRecord, offset: int) -> None:
        parameters = info.parameters[offset:]
        for position, source in enumerate(record.args):
            if position < len(parameters):
                self.heap.copy(source, base + parameters[position][1])
            elif info.rest != NOTHING:
                self.heap.copy(source, self.containers.field(self._rest(base, info.rest), position - len(parameters)))
        for source in record.starred:
            self.heap.watch(source, self._spread, info, base, len(record.args), offset)
        if not record.keywords and not record.double_starred:
            return
        by_name = dict((*parameters, *info.keyword_only))
        for name, source in record.keywords:
            if name in by_name:
                self.heap.copy(source, base + by_name[name])
            elif info.named_rest != NOTHING:
                self.heap.copy(source, self.containers.field(self._rest(base, info.named_rest), name))
        for source in record.double_starred:
            self.heap.watch(source, self._spread_names, info, base, by_name)

    def _rest(self, base: int, container: int) -> int:
        return self.values.container("sequence", (base, container))

    def _spread(self, number: int, info: Function, base: int, start: int, offset: int) -> None:
        """Bind the elements of `*args`, from the position `start`."""
        if not isinstance(self.values[number], ContainerValue):
            return
        parameters = info.parameters[offset:]
        for position in range(start, min(len(parameters), start + MAX_STARRED)):
            self.containers.read(number, position - start, base + parameters[position][1])
        rest = self._rest(base, info.rest) if info.rest != NOTHING else number
        if start >= len(parameters):
            self.containers.merge(number, rest, start - len(parameters))
        elif rest != number:
            self.heap.copy(self.containers.everything(number), self.containers.field(rest, None))

    def _spread_names(self, number: int, info: Function, base: int, by_name: dict[str, int]) -> None:
        if not isinstance(self.values[number], ContainerValue):
            return
        for name, node in by_name.items():
            self.containers.read(number, name, base + node)
        if info.named_rest != NOTHING:
            self.containers.merge(number, self._rest(base, info.named_rest))

    def _instantiate(self, number: int, record: CallRecord) -> None:
        self._note(record, number)
        instance = self.values.instance(number)
        if record.result != NOTHING:
            self.heap.put(record.result, instance)
        self.heap.watch(self.attributes.lookup(number, "__init__"), self._construct, self._quiet(record), instance)
        if self.attributes.definer(number, "__new__") != NOTHING:
            self.heap.watch(self.attributes.lookup(number, "__new__"), self._construct, record, number)

    def _construct(self, number: int, record: CallRecord, receiver: int) -> None:
        if isinstance(self.values[number], FunctionValue):
            self.enter(number, record, receiver)
        elif self.has_externals:
            self.call(number, record)

    def _quiet(self, record: CallRecord) -> CallRecord:
        """The same call without its result."""
        if record.result == NOTHING:
            return record
        self._last_implied -= 1
        return replace(record, site=self._last_implied, result=NOTHING, constant=None)

    def _call_external(self, name: str, record: CallRecord) -> None:
        if self.has_externals:
            self._note(record, self.values.external(name))
            if name.rpartition(".")[2][:1].isupper():
                self.heap.put(record.result, self.values.external(name, is_instance=True))
        model = MODELS.get(name)
        if model is not None:
            model(self, record)

    def _call_container(self, number: int, value: ContainerValue, attr: str, record: CallRecord) -> None:
        if self.has_externals:
            self._note(record, self.values.external(f"{TYPE_NAMES[value.kind]}.{attr}"))
        method = CONTAINER_METHODS.get(attr)
        if method is not None:
            method(self, number, record)
