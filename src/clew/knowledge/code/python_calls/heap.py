"""Values, and the variables that may hold them.

Values are numbered. Equal values share a number. The heap spreads values between variables until nothing changes.
Containers have variables for their keys. The key `None` means an unknown key.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.knowledge.code.python_calls.summary import NOTHING, Class, Function, Key

if TYPE_CHECKING:
    from clew.knowledge.code.python_calls.calls import CallRecord

MAX_VALUES = 64
MAX_OBJECTS = 12
"""The most values of one variable, in total and of those that are not callable. A variable with nearly any value
carries no information and slows the analysis down. The limit for callables is higher, because tables of callables are
long."""
MAX_KEYS = 64
"""Keys of one container with a variable of their own."""

Watcher = tuple[Callable[..., None], tuple[Any, ...]]


@dataclass(slots=True, eq=False)
class FunctionValue:
    """A function; `base` is the offset of its file's variables. Gone once its file no longer defines it."""

    path: str
    qualname: str
    base: int
    info: Function
    is_gone: bool = False
    visits: dict[tuple[int, int], CallRecord] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class ClassValue:
    """A class, its known bases by position, and the variables in which its attributes arrive."""

    path: str
    qualname: str
    base: int
    info: Class
    is_gone: bool = False
    bases: dict[int, list[int]] = field(default_factory=dict)
    mro: tuple[int, ...] | None = None
    subclasses: set[int] = field(default_factory=set)
    lookups: dict[tuple[str, int], int] = field(default_factory=dict)
    """Methods by name and the class after which `super()` looks, or NOTHING."""
    reads: dict[str, int] = field(default_factory=dict)

    def all_bases(self) -> list[int]:
        return [base for position in sorted(self.bases) for base in self.bases[position]]

    def variable(self, attr: str) -> int:
        """The variable of a name that the body defines, or NOTHING."""
        return self.base + self.info.attrs[attr] if attr in self.info.attrs else NOTHING


class InstanceValue(NamedTuple):
    """The instances of a class, as one value."""

    of_class: int


class BoundValue(NamedTuple):
    """A method with its receiver."""

    function: int
    receiver: int


class SuperValue(NamedTuple):
    """`super()` in a method of `of_class` for this receiver."""

    of_class: int
    receiver: int


class ModuleValue(NamedTuple):
    """A module of the project: its file, or the folder of a namespace package with a trailing `/`."""

    path: str


@dataclass(slots=True, eq=False)
class ContainerValue:
    """A list, dictionary or generator: variables by key, and one that collects all of them."""

    is_mapping: bool
    fields: dict[Key, int] = field(default_factory=dict)
    everything: int = 0


class ExternalValue(NamedTuple):
    """An object outside the project, by its dotted name, or an instance of such a class."""

    name: str


Value = (
    FunctionValue | ClassValue | InstanceValue | BoundValue | SuperValue | ModuleValue | ContainerValue | ExternalValue
)
CALLABLES = (FunctionValue, BoundValue, ExternalValue)
_NONE = frozenset[int]()


def _ignore(node: int, values: frozenset[int]) -> None:
    """The `settle` of a heap that has been closed."""


class Heap:
    """Values and variables. Variables of files count up from 0, temporary ones down from -2.

    Values are only ever added to variables; `settle` and watchers see each new value of a variable once.
    """

    def __init__(self, settle: Callable[[int, frozenset[int]], None], blocked: Set[int] = frozenset()) -> None:
        self.values: list[Value] = []
        self.overfull: set[int] = set(blocked)
        self.held: dict[int, frozenset[int]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._settle = settle
        self._alone: list[frozenset[int]] = []
        """A set for each value. Most variables hold one value, so sharing these saves most of the memory."""
        self._pending: dict[int, frozenset[int]] = {}
        self._queue: deque[int] = deque()  # first in, first out, so that new values of a variable are handled together
        self._copies: defaultdict[int, list[int]] = defaultdict(list)
        self._watchers: defaultdict[int, list[Watcher]] = defaultdict(list)
        self._last = NOTHING

    def number(self, kind: type[Value], *fields: Any, key: Hashable = None) -> int:
        """The number of a value with these fields, or with this key."""
        identity = (kind, fields if key is None else key)
        found = self._numbers.get(identity)
        if found is None:
            found = self._numbers[identity] = len(self.values)
            self.values.append(kind(*fields))
            self._alone.append(frozenset((found,)))
        return found

    def function(self, path: str, qualname: str) -> int:
        """The first function of this name in a file, or NOTHING."""
        return self._numbers.get((FunctionValue, (path, qualname, 0)), NOTHING)

    def instance(self, of_class: int) -> int:
        return self.number(InstanceValue, of_class)

    def container(self, key: Hashable, *, is_mapping: bool = False) -> int:
        return self.number(ContainerValue, is_mapping, key=key)

    def external(self, name: str) -> int:
        return self.number(ExternalValue, name)

    def class_of(self, number: int) -> ClassValue:
        value = self.values[number]
        assert isinstance(value, ClassValue)
        return value

    def node(self) -> int:
        """A new temporary variable."""
        self._last -= 1
        return self._last

    def holding(self, value: int) -> int:
        """A new temporary variable with a value."""
        node = self.node()
        self.put(node, value)
        return node

    def of(self, node: int) -> frozenset[int]:
        return self.held.get(node, _NONE)

    def put(self, node: int, value: int) -> None:
        self.add(node, self._alone[value])

    def seed(self, node: int, value: int) -> None:
        """As `put`, for an overfull variable too."""
        if node in self.overfull:
            self.held[node] = held = self.of(node) | self._alone[value]
            self._wait(node, held)
        else:
            self.put(node, value)

    def add(self, node: int, values: frozenset[int]) -> None:
        """Add values to a variable. A variable over the limit accepts no further values."""
        if node == NOTHING or node in self.overfull:
            return
        held = self.held.get(node)
        if held is None:
            new = whole = values
        elif values <= held:
            return
        else:
            new = values if len(values) == 1 else values - held
            whole = held | new
        if len(whole) > MAX_OBJECTS and self._is_too_much(whole):
            self.overfull.add(node)
            self._pending.pop(node, None)
        else:
            self.held[node] = whole
            self._wait(node, new)

    def _is_too_much(self, values: Set[int]) -> bool:
        objects = sum(not isinstance(self.values[value], CALLABLES) for value in values)
        return len(values) > MAX_VALUES or objects > MAX_OBJECTS

    def _wait(self, node: int, values: frozenset[int]) -> None:
        pending = self._pending.get(node)
        if pending is None:
            self._pending[node] = values
            self._queue.append(node)
        else:
            self._pending[node] = pending | values

    def copy(self, source: int, into: int) -> None:
        """Copy the present and future values of a variable into another."""
        if NOTHING in (source, into) or source == into:
            return
        self._copies[source].append(into)
        held = self.held.get(source)
        if held:
            self.add(into, held)

    def watch(self, node: int, handler: Callable[..., None], *data: Any) -> None:
        """Call `handler(value, *data)` for each present and future value of a variable."""
        if node == NOTHING:
            return
        self._watchers[node].append((handler, data))
        for value in self.of(node):
            handler(value, *data)

    def run(self) -> None:
        """Spread values until nothing changes."""
        queue, pending, copies, watchers = self._queue, self._pending, self._copies, self._watchers
        add, settle = self.add, self._settle
        while queue:
            node = queue.popleft()
            new = pending.pop(node, None)
            if new is None:
                continue
            if node in copies:
                for into in copies[node]:
                    add(into, new)
            if node in watchers:
                for handler, data in tuple(watchers[node]):
                    for value in new:
                        handler(value, *data)
            if node >= 0:
                settle(node, new)

    def clear(self) -> None:
        """Release all memory; the heap is unusable afterwards."""
        for table in (self.held, self._pending, self._copies, self._watchers):
            table.clear()
        self.values.clear()
        self._settle = _ignore  # a reference cycle: the owner of `settle` holds this heap

    def is_container(self, number: int) -> bool:
        return isinstance(self.values[number], ContainerValue)

    def field(self, container: int, key: Key) -> int:
        """The variable of one key of a container."""
        value = self._contained(container)
        if key not in value.fields and len(value.fields) >= MAX_KEYS:
            key = None
        if key not in value.fields:
            value.fields[key] = self.node()
            if value.everything:
                self.copy(value.fields[key], value.everything)
        return value.fields[key]

    def everything(self, container: int) -> int:
        """The variable with the values of all keys."""
        value = self._contained(container)
        if not value.everything:
            value.everything = self.node()
            for node in value.fields.values():
                self.copy(node, value.everything)
        return value.everything

    def read_item(self, container: int, key: Key, into: int) -> None:
        if key is None:
            self.copy(self.everything(container), into)
        elif into != NOTHING:
            self.copy(self.field(container, key), into)
            self.copy(self.field(container, None), into)

    def read_elements(self, container: int, into: int) -> None:
        """Iterate; the keys of a dictionary are never callable here."""
        if not self._contained(container).is_mapping:
            self.copy(self.everything(container), into)

    def extend(self, source: int, into: int) -> None:
        """Copy the fields of one container into another; elements of a sequence get unknown positions."""
        value = self._contained(source)
        if source == into:
            return
        if not value.is_mapping:
            self.copy(self.everything(source), self.field(into, None))
            return
        for key in (*value.fields, None):
            self.copy(self.field(source, key), self.field(into, key))

    def _contained(self, container: int) -> ContainerValue:
        value = self.values[container]
        assert isinstance(value, ContainerValue)
        return value
