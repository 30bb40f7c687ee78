"""Calls: what each value does when it is called, how arguments reach parameters, and who called whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set

from clew.knowledge.code.python_attributes import Attributes
from clew.knowledge.code.python_builtins import CONTAINER_METHODS, MODELS, TYPE_NAMES
from clew.knowledge.code.python_containers import Containers
from clew.knowledge.code.python_exports import Exports
from clew.knowledge.code.python_heap import Heap
from clew.knowledge.code.python_summary import NOTHING, Function, Key
from clew.knowledge.code.python_values import (
    BoundValue,
    ClassValue,
    ContainerValue,
    ExternalValue,
    FunctionValue,
    InstanceValue,
    ModuleValue,
    SuperValue,
)

MOST_STARRED = 24
"""Parameters that arguments given as `*args` are spread over."""


class CallRecord:
    """One place of a call, its variables numbered over the whole program. `site` is negative where nothing was written
    there: the call of a property, an iterator, a callback."""

    __slots__ = (
        "args", "attr", "caller", "constant", "double_starred", "keywords", "line", "module", "result", "site",
        "starred",
    )  # fmt: skip

    def __init__(
        self, site: int, module: int, caller: int, line: int, *, attr: str = "", args: tuple[int, ...] = (),
        result: int = NOTHING,
    ) -> None:  # fmt: skip
        self.site = site
        self.module = module
        self.caller = caller
        self.line = line
        self.attr = attr
        self.args = args
        self.result = result
        self.keywords: tuple[tuple[str, int], ...] = ()
        self.starred: tuple[int, ...] = ()
        self.double_starred: tuple[int, ...] = ()
        self.constant: Key = None


class Calls:
    """Applies calls to values. `edges` has, by module, who called what in which line; `wrapped` the same for methods
    that a decorator replaced by something that calls them."""

    def __init__(
        self, heap: Heap, attributes: Attributes, containers: Containers, exports: Exports, *, has_externals: bool
    ) -> None:
        self.heap = heap
        self.values = heap.values
        self.attributes = attributes
        self.containers = containers
        self.exports = exports
        self.has_externals = has_externals
        self.edges: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
        self.wrapped: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
        self.records: dict[int, CallRecord] = {}
        self.resolved: set[int] = set()
        self._last_made = NOTHING

    def made(self, of: CallRecord, *, attr: str = "", args: tuple[int, ...] = (), result: int = NOTHING) -> CallRecord:
        """A call that happens within another, by the same caller."""
        self._last_made -= 1
        return CallRecord(self._last_made, of.module, of.caller, of.line, attr=attr, args=args, result=result)

    def call_special(
        self, number: int, attr: str, of: CallRecord, *, args: tuple[int, ...] = (), result: int = NOTHING
    ) -> None:
        """Call a method that the language calls, such as `__enter__`, where the class of an instance has it."""
        value = self.values[number]
        if isinstance(value, InstanceValue) and self.attributes.has(value.of_class, attr):
            self.call_attr(number, attr, self.made(of, attr=attr, args=args, result=result))

    def call_all(self, values: Set[int], record: CallRecord) -> None:
        for number in values:
            self.call(number, record)

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
                self._call_external(value, record)

    def call_attr(self, number: int, attr: str, record: CallRecord) -> None:
        """Call an attribute of a value: a method where it is an instance."""
        value = self.values[number]
        match value:
            case InstanceValue():
                if attr in self.exports.stored_names:
                    self.heap.watch(self.attributes.read(value.of_class, attr), self.call_all, record)
                if self.has_externals or attr in self.exports.class_names:
                    found = self.attributes.lookup(value.of_class, attr)
                    self.heap.watch(found, self._call_found, record, number, attr)
            case ClassValue():
                self.heap.watch(self.attributes.lookup(number, attr), self._call_found, record, number, attr)
            case SuperValue():
                found = self.attributes.lookup_after(value.of_class, self.class_of(value.receiver), attr)
                self.heap.watch(found, self._call_found, record, value.receiver, attr, value.of_class)
            case ModuleValue():
                self.heap.watch(self.exports.find(value.path, attr), self.call_all, record)
            case ContainerValue():
                self._call_container(number, value, attr, record)
            case ExternalValue():
                self._call_external(ExternalValue(f"{value.name}.{attr}", is_instance=False), record)
            case FunctionValue() | BoundValue():
                if attr == "__call__":
                    self.call(number, record)
                elif attr in self.exports.stored_names:
                    self.heap.watch(self.attributes.slot(number, attr), self.call_all, record)

    def class_of(self, receiver: int) -> int:
        value = self.values[receiver]
        return value.of_class if isinstance(value, InstanceValue) else receiver

    def bound_to(self, function: int, receiver: int) -> int | None:
        """What a function that was found in a class is bound to when it is taken from this receiver."""
        value = self.values[function]
        kind = value.info.kind if isinstance(value, FunctionValue) and value.info is not None else "static"
        if kind == "class":
            return self.class_of(receiver)
        return receiver if kind == "plain" and not isinstance(self.values[receiver], ClassValue) else None

    def _call_found(self, values: Set[int], record: CallRecord, receiver: int, attr: str, after: int = NOTHING) -> None:
        self._note_wrapped(values, record, self.class_of(receiver), attr, after)
        for number in values:
            value = self.values[number]
            if not isinstance(value, FunctionValue):
                self.call(number, record)
            elif value.info is not None and value.info.kind == "property":
                result = self.heap.node()
                self.enter(number, self.made(record, result=result), receiver)
                self.heap.watch(result, self.call_all, record)
            else:
                self.enter(number, record, self.bound_to(number, receiver))

    def _note_wrapped(self, values: Set[int], record: CallRecord, of_class: int, attr: str, after: int) -> None:
        """Where a class holds something else under the name of a method that it defines, a decorator put it there."""
        for number in values:
            value = self.values[number]
            if isinstance(value, FunctionValue) and value.name == attr:
                return
        definer = self.attributes.definer(of_class, attr, after)
        above = self.values[definer] if definer != NOTHING else None
        if isinstance(above, ClassValue):
            method = self.values.find_function(above.path, f"{above.qualname}.{attr}")
            if method != NOTHING:
                self.wrapped[record.module].add((record.caller, method, record.line))

    def enter(self, number: int, record: CallRecord, receiver: int | None) -> None:
        """Call a function: note who did, and tie arguments to parameters and the result to what is returned."""
        value = self.values[number]
        assert isinstance(value, FunctionValue)
        key = (record.site, -1 if receiver is None else receiver)
        if value.is_gone or value.info is None or key in value.visits:
            return
        value.visits[key] = record
        self.note(record, number)
        offset = 0
        if receiver is not None and value.info.parameters:
            offset = 1
            self.heap.put(value.base + value.info.parameters[0][1], receiver)
        self._tie(value.info, value.base, record, offset)
        if record.result != NOTHING:
            self._give_back(number, value.info, value.base, record.result)

    def note(self, record: CallRecord, target: int) -> None:
        if not isinstance(self.values[target], ExternalValue):
            self.resolved.add(record.site)
        self.edges[record.module].add((record.caller, target, record.line))

    def _tie(self, info: Function, base: int, record: CallRecord, offset: int) -> None:
        parameters = info.parameters[offset:]
        for position, source in enumerate(record.args):
            if position < len(parameters):
                self.heap.copy(source, base + parameters[position][1])
            elif info.rest != NOTHING:
                self.heap.copy(source, self.containers.field(self._rest(base, info.rest), position - len(parameters)))
        for source in record.starred:
            self.heap.watch(source, self._spread, info, base, len(record.args), offset)
        if record.keywords or record.double_starred:
            self._tie_names(info, base, record, dict((*parameters, *info.keyword_only)))

    def _tie_names(self, info: Function, base: int, record: CallRecord, by_name: dict[str, int]) -> None:
        for name, source in record.keywords:
            if name in by_name:
                self.heap.copy(source, base + by_name[name])
            elif info.named_rest != NOTHING:
                self.heap.copy(source, self.containers.field(self._rest(base, info.named_rest), name))
        for source in record.double_starred:
            self.heap.watch(source, self._spread_names, info, base, by_name)

    def _rest(self, base: int, container: int) -> int:
        return self.containers.made("sequence", (base, container))

    def _spread(self, values: Set[int], info: Function, base: int, start: int, offset: int) -> None:
        parameters = info.parameters[offset:]
        for number in values:
            if not isinstance(self.values[number], ContainerValue):
                continue
            for position in range(start, min(len(parameters), start + MOST_STARRED)):
                self.containers.read(number, position - start, base + parameters[position][1])
            if info.rest != NOTHING:
                rest = self._rest(base, info.rest)
                if start >= len(parameters) and rest != number:
                    self._pass_on(number, rest, start - len(parameters))
                elif rest != number:
                    self.heap.copy(self.containers.everything(number), self.containers.field(rest, None))

    def _pass_on(self, source: int, rest: int, shift: int) -> None:
        """Hand all that is in one container on to another, each at its place."""
        value = self.values[source]
        assert isinstance(value, ContainerValue)
        for key, node in tuple(value.fields.items()):
            self.heap.copy(node, self.containers.field(rest, key + shift if isinstance(key, int) else key))
        self.heap.copy(self.containers.field(source, None), self.containers.field(rest, None))

    def _spread_names(self, values: Set[int], info: Function, base: int, by_name: dict[str, int]) -> None:
        for number in values:
            if not isinstance(self.values[number], ContainerValue):
                continue
            for name, node in by_name.items():
                self.containers.read(number, name, base + node)
            if info.named_rest != NOTHING and self._rest(base, info.named_rest) != number:
                self._pass_on(number, self._rest(base, info.named_rest), 0)

    def _give_back(self, number: int, info: Function, base: int, result: int) -> None:
        if info.generator == NOTHING:
            self.heap.copy(base + info.returned, result)
        else:
            self.heap.put(result, self.containers.made("generator", (base, info.generator)))

    def _instantiate(self, number: int, record: CallRecord) -> None:
        self.note(record, number)
        instance = self.values.instance(number)
        if record.result != NOTHING:
            self.heap.put(record.result, instance)
        quiet = self._without_result(record)
        for attr, receiver, used in (("__init__", instance, quiet), ("__new__", number, record)):
            if attr == "__init__" or self.attributes.has(number, attr):
                self.heap.watch(self.attributes.lookup(number, attr), self._call_maker, used, receiver)

    def _call_maker(self, values: Set[int], record: CallRecord, receiver: int) -> None:
        for number in values:
            if isinstance(self.values[number], FunctionValue):
                self.enter(number, record, receiver)
            elif self.has_externals:
                self.call(number, record)

    def _without_result(self, record: CallRecord) -> CallRecord:
        if record.result == NOTHING:
            return record
        made = self.made(record, attr=record.attr, args=record.args)
        made.keywords, made.starred, made.double_starred = record.keywords, record.starred, record.double_starred
        return made

    def _call_external(self, value: ExternalValue, record: CallRecord) -> None:
        if self.has_externals:
            self.note(record, self.values.external(value.name))
            if value.name.rpartition(".")[2][:1].isupper():
                self.heap.put(record.result, self.values.external(value.name, is_instance=True))
        model = MODELS.get(value.name)
        if model is not None:
            model(self, record)

    def _call_container(self, number: int, value: ContainerValue, attr: str, record: CallRecord) -> None:
        if self.has_externals:
            self.note(record, self.values.external(f"{TYPE_NAMES[value.kind]}.{attr}"))
        method = CONTAINER_METHODS.get(attr)
        if method is not None:
            method(self, number, record)
