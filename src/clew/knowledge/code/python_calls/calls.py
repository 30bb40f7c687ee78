"""Attribute access and calls: the effect of calling a value, the binding of arguments, and the resulting call edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from clew.knowledge.code.python_calls.builtins import CONTAINER_METHODS, MODELS
from clew.knowledge.code.python_calls.heap import (
    BoundValue,
    ClassValue,
    ExternalValue,
    FunctionValue,
    Heap,
    InstanceValue,
    ModuleValue,
    SuperValue,
)
from clew.knowledge.code.python_calls.modules import Exports
from clew.knowledge.code.python_calls.summary import NOTHING, Function, Key

MAX_MRO = 64
"""Classes in a method resolution order that are searched."""


class Attributes:
    """Variables of attributes, made on first use."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._stored: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._readers: defaultdict[str, set[int]] = defaultdict(set)

    def stored(self, of_class: int, attr: str) -> int:
        """The target of `instance.attr = value` and `Class.attr = value`."""
        table = self._stored[attr]
        if of_class not in table:
            table[of_class] = self._heap.node()
            for reader in self._readers[attr]:
                if of_class in self.order(reader):
                    self._heap.copy(table[of_class], self._heap.class_of(reader).reads[attr])
        return table[of_class]

    def read(self, of_class: int, attr: str) -> int:
        """The values that were set on a class, its bases, and their instances."""
        reads = self._heap.class_of(of_class).reads
        if attr not in reads:
            reads[attr] = self._heap.node()
            self._readers[attr].add(of_class)
            self._connect_read(of_class, attr)
        return reads[attr]

    def lookup(self, of_class: int, attr: str, after: int = NOTHING) -> int:
        """The value of a name in a class, or in the first base that defines it. With `after`, only classes after that
        one in the resolution order are searched."""
        lookups, key = self._heap.class_of(of_class).lookups, (attr, after)
        if key not in lookups:
            lookups[key] = self._heap.node()
            self._connect(of_class, attr, after)
        return lookups[key]

    def definer(self, of_class: int, attr: str) -> int:
        """The first class whose body defines a name; or NOTHING."""
        for number in self.order(of_class):
            value = self._heap.values[number]
            if isinstance(value, ClassValue) and value.variable(attr) != NOTHING:
                return number
        return NOTHING

    def rebase(self, of_class: int, position: int, base: int) -> None:
        """Record a base of a class and repeat the lookups that it affects."""
        bases = self._heap.class_of(of_class).bases.setdefault(position, [])
        if base in bases or base == of_class:
            return
        bases.append(base)
        above = self._heap.values[base]
        if isinstance(above, ClassValue):
            above.subclasses.add(of_class)
        self.reconnect(of_class)

    def subclasses(self, of_class: int) -> Iterator[int]:
        """A class and all classes below it."""
        waiting, seen = [of_class], {of_class}
        while waiting:
            number = waiting.pop()
            yield number
            below = self._heap.class_of(number).subclasses - seen
            seen |= below
            waiting.extend(below)

    def reconnect(self, of_class: int) -> None:
        """Repeat all lookups in a class and the classes below it."""
        found = [(number, self._heap.class_of(number)) for number in self.subclasses(of_class)]
        for _, value in found:
            value.mro = None
        for number, value in found:
            for attr, after in value.lookups:
                self._connect(number, attr, after)
            for attr in value.reads:
                self._connect_read(number, attr)

    def order(self, of_class: int, depth: int = 0) -> tuple[int, ...]:
        """The method resolution order. As in C3, a base comes after all classes that derive from it."""
        value = self._heap.class_of(of_class)
        if value.mro is None:
            value.mro = (of_class,)  # seen by a cycle of bases
            bases = value.all_bases() if depth < MAX_MRO else ()
            above = [item for base in bases for item in self._order_of_base(base, depth + 1) if item != of_class]
            value.mro = (of_class, *reversed(dict.fromkeys(reversed(above))))[:MAX_MRO]
        return value.mro

    def _order_of_base(self, base: int, depth: int) -> tuple[int, ...]:
        return self.order(base, depth) if isinstance(self._heap.values[base], ClassValue) else (base,)

    def _connect_read(self, of_class: int, attr: str) -> None:
        table = self._stored[attr]
        for number in self.order(of_class) if table else ():
            if number in table:
                self._heap.copy(table[number], self._heap.class_of(of_class).reads[attr])

    def _connect(self, of_class: int, attr: str, after: int) -> None:
        into, order = self._heap.class_of(of_class).lookups[attr, after], self.order(of_class)
        for number in order[order.index(after) + 1 if after in order else 0 :]:
            found = self._heap.class_of(number).variable(attr)
            if found != NOTHING:
                self._heap.copy(found, into)
                return


class CallRecord(msgspec.Struct, eq=False, gc=False):
    """A place of a call, with variables of the whole program. `site` is negative for calls that are not written as
    one: a property, an iterator, a callback."""

    site: int
    module: int
    caller: int
    line: int
    attr: str = ""
    args: tuple[int, ...] = ()
    result: int = NOTHING
    starred: tuple[int, ...] = ()
    keywords: tuple[tuple[str, int], ...] = ()
    constant: Key = None


class CallRules:
    """Applies calls to values.

    `edges` has (caller, target, line) by module; `wrapped` the same for methods that a decorator replaced.
    """

    def __init__(self, heap: Heap, exports: Exports) -> None:
        self.heap = heap
        self.attributes = Attributes(heap)
        self.exports = exports
        self.edges: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
        self.wrapped: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
        self.resolved: set[int] = set()
        self._last_implied = NOTHING

    def implied(self, of: CallRecord, *, args: tuple[int, ...] = (), result: int = NOTHING) -> CallRecord:
        """A call that the language makes because of another call, by the same caller."""
        self._last_implied -= 1
        return CallRecord(self._last_implied, of.module, of.caller, of.line, "", args, result)

    def call(self, number: int, record: CallRecord) -> None:
        """Call a value."""
        value = self.heap.values[number]
        match value:
            case FunctionValue():
                self.enter(number, record, NOTHING)
            case BoundValue():
                self.enter(value.function, record, value.receiver)
            case ClassValue():
                self._instantiate(number, record)
            case InstanceValue():
                self.call_attr(number, "__call__", record)
            case ExternalValue() if value.name in MODELS:
                MODELS[value.name](self, record)

    def call_attr(self, number: int, attr: str, record: CallRecord) -> None:
        """Call an attribute of a value."""
        for node, receiver in self._find(number, attr):
            if receiver == NOTHING:
                self.heap.watch(node, self.call, record)
            else:
                self.heap.watch(node, self._call_member, record, receiver, attr if receiver == number else "")
        if self.heap.is_container(number) and attr in CONTAINER_METHODS:
            CONTAINER_METHODS[attr](self, number, record)

    def call_special(
        self, number: int, attr: str, of: CallRecord, *, args: tuple[int, ...] = (), result: int = NOTHING
    ) -> None:
        """Call a method such as `__enter__` that the language calls, if the class of an instance has it."""
        value = self.heap.values[number]
        if isinstance(value, InstanceValue) and self.attributes.definer(value.of_class, attr) != NOTHING:
            self.call_attr(number, attr, self.implied(of, args=args, result=result))

    def load(self, number: int, attr: str, into: int, record: CallRecord) -> None:
        """`into = value.attr`: methods are bound, properties called."""
        for node, receiver in self._find(number, attr):
            if receiver == NOTHING:
                self.heap.copy(node, into)
            else:
                self.heap.watch(node, self._bind, into, receiver, record)

    def store(self, number: int, attr: str, source: int, record: CallRecord) -> None:
        """`value.attr = source`: setters are called."""
        value = self.heap.values[number]
        match value:
            case InstanceValue():
                self.heap.copy(source, self.attributes.stored(value.of_class, attr))
                if attr in self.exports.property_names:
                    found = self.attributes.lookup(value.of_class, attr)
                    self.heap.watch(found, self._call_setter, source, number, record)
            case ClassValue():
                self.heap.copy(source, self.attributes.stored(number, attr))
            case ModuleValue():
                self.heap.copy(source, self.exports.find(value.path, attr))

    def _find(self, number: int, attr: str) -> Iterator[tuple[int, int]]:
        """Variables with the value of an attribute, each with the receiver to bind functions to, or NOTHING."""
        value, exports = self.heap.values[number], self.exports
        match value:
            case InstanceValue() if attr == "__class__":
                yield self.heap.holding(value.of_class), NOTHING
            case InstanceValue() | ClassValue():
                of_class = self._class_of(number)
                if attr in exports.stored_names:
                    yield self.attributes.read(of_class, attr), NOTHING
                if attr in exports.class_names:
                    yield self.attributes.lookup(of_class, attr), number
            case SuperValue():
                of_class = self._class_of(value.receiver)
                yield self.attributes.lookup(of_class, attr, after=value.of_class), value.receiver
            case ModuleValue():
                yield exports.find(value.path, attr), NOTHING
            case ExternalValue():
                yield self.heap.holding(self.heap.external(f"{value.name}.{attr}")), NOTHING

    def _class_of(self, receiver: int) -> int:
        value = self.heap.values[receiver]
        return value.of_class if isinstance(value, InstanceValue) else receiver

    def _kind(self, number: int) -> str:
        value = self.heap.values[number]
        return value.info.kind if isinstance(value, FunctionValue) else ""

    def _binding(self, function: int, receiver: int) -> int:
        """The first argument of a function that was found in the class of a receiver, or NOTHING."""
        kind = self._kind(function)
        if kind == "class":
            return self._class_of(receiver)
        return receiver if kind == "plain" and not isinstance(self.heap.values[receiver], ClassValue) else NOTHING

    def _bind(self, number: int, into: int, receiver: int, record: CallRecord) -> None:
        kind = self._kind(number)
        if kind == "property":
            self.enter(number, self.implied(record, result=into), receiver)
        elif kind != "setter":
            bound = self._binding(number, receiver)
            self.heap.put(into, number if bound == NOTHING else self.heap.number(BoundValue, number, bound))

    def _call_setter(self, number: int, source: int, receiver: int, record: CallRecord) -> None:
        if self._kind(number) == "setter":
            self.enter(number, self.implied(record, args=(source,)), receiver)

    def _call_member(self, number: int, record: CallRecord, receiver: int, attr: str) -> None:
        """Call a value that the class of a receiver has; `attr` is its name there, empty after `super()`."""
        value = self.heap.values[number]
        if attr and not (isinstance(value, FunctionValue) and value.qualname.endswith(f".{attr}")):
            self._note_wrapped(record, self._class_of(receiver), attr)
        if not isinstance(value, FunctionValue):
            self.call(number, record)
        elif self._kind(number) == "property":
            result = self.heap.node()
            self.enter(number, self.implied(record, result=result), receiver)
            self.heap.watch(result, self.call, record)
        else:
            self.enter(number, record, self._binding(number, receiver))

    def _note_wrapped(self, record: CallRecord, of_class: int, attr: str) -> None:
        """If a class has another value under the name of a method, the method is decorated: record that it is called
        too."""
        definer = self.attributes.definer(of_class, attr)
        if definer != NOTHING:
            above = self.heap.class_of(definer)
            method = self.heap.function(above.path, f"{above.qualname}.{attr}")
            self.wrapped[record.module].update([(record.caller, method, record.line)] if method != NOTHING else ())

    def enter(self, number: int, record: CallRecord, receiver: int) -> None:
        """Call a function: record the edge, bind arguments to parameters, and pass on the result."""
        value, key = self.heap.values[number], (record.site, receiver)
        assert isinstance(value, FunctionValue)
        if value.is_gone or key in value.visits:
            return
        value.visits[key] = record
        self._note(record, number)
        info, is_bound = value.info, receiver != NOTHING and bool(value.info.parameters)
        if is_bound:
            self.heap.put(value.base + info.parameters[0][1], receiver)
        self._bind_arguments(info, value.base, record, info.parameters[is_bound:])
        self.heap.copy(value.base + info.returned, record.result)

    def _note(self, record: CallRecord, target: int) -> None:
        self.resolved.add(record.site)
        self.edges[record.module].add((record.caller, target, record.line))

    def _bind_arguments(
        self, info: Function, base: int, record: CallRecord, parameters: tuple[tuple[str, int], ...]
    ) -> None:
        for position, source in enumerate(record.args):
            if position < len(parameters):
                self.heap.copy(source, base + parameters[position][1])
            elif info.rest != NOTHING:
                self.heap.copy(source, self.heap.field(self._rest(base, info.rest), position - len(parameters)))
        for source in record.starred:
            self.heap.watch(source, self._spread, info, base, parameters[len(record.args) :])
        by_name = dict((*parameters, *info.keyword_only)) if record.keywords else {}
        for name, source in record.keywords:
            if not name:
                self.heap.watch(source, self._spread_names, info, base, by_name)
            elif name in by_name:
                self.heap.copy(source, base + by_name[name])
            elif info.named_rest != NOTHING:
                self.heap.copy(source, self.heap.field(self._rest(base, info.named_rest), name))

    def _rest(self, base: int, container: int) -> int:
        return self.heap.container((base, container))

    def _spread(self, number: int, info: Function, base: int, parameters: tuple[tuple[str, int], ...]) -> None:
        """Bind the elements of `*args` to these parameters."""
        if not self.heap.is_container(number):
            return
        for position, (_, node) in enumerate(parameters):
            self.heap.read_item(number, position, base + node)
        if info.rest != NOTHING:
            self.heap.extend(number, self._rest(base, info.rest))

    def _spread_names(self, number: int, info: Function, base: int, by_name: dict[str, int]) -> None:
        """Bind the values of `**kwargs`."""
        if not self.heap.is_container(number):
            return
        for name, node in by_name.items():
            self.heap.read_item(number, name, base + node)
        if info.named_rest != NOTHING:
            self.heap.extend(number, self._rest(base, info.named_rest))

    def _instantiate(self, number: int, record: CallRecord) -> None:
        self._note(record, number)
        instance = self.heap.instance(number)
        self.heap.put(record.result, instance)
        self.heap.watch(self.attributes.lookup(number, "__init__"), self._construct, record, instance)
        if self.attributes.definer(number, "__new__") != NOTHING:
            self.heap.watch(self.attributes.lookup(number, "__new__"), self._construct, record, number)

    def _construct(self, number: int, record: CallRecord, receiver: int) -> None:
        if isinstance(self.heap.values[number], FunctionValue):
            self.enter(number, record, receiver)
