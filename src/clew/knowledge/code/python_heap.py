"""What every variable of a program may hold, and how values spread from one to the next until nothing changes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Set
from typing import Any

from clew.knowledge.code.python_summary import NOTHING
from clew.knowledge.code.python_values import BoundValue, ExternalValue, FunctionValue, Values

MOST_VALUES = 64
MOST_OBJECTS = 12
"""What one variable may hold: a variable that may be nearly anything says nothing, and would slow everything down.
Tables of functions are longer than the list of what else one variable is meant for."""
MADE_HOLD_TIMES = 4
CALLED = (FunctionValue, BoundValue, ExternalValue)

Watcher = tuple[Callable[..., None], tuple[Any, ...]]


class Heap:
    """Variables and their values. Variables of files are numbers from 0; those made here count down from -2. Values
    are only ever added, so that what watches a variable is told of each value once."""

    def __init__(self, settle: Callable[[int, Set[int]], None], blocked: Set[int] = frozenset()) -> None:
        self.values = Values()
        self.overfull: set[int] = set(blocked)
        self.held: dict[int, set[int]] = {}
        self._settle = settle
        self._pending: dict[int, set[int]] = {}
        self._queue: deque[int] = deque()  # first in, first out: what is new to a variable gathers while it waits
        self._copies: defaultdict[int, list[int]] = defaultdict(list)
        self._watchers: defaultdict[int, list[Watcher]] = defaultdict(list)
        self._last = NOTHING

    def node(self) -> int:
        self._last -= 1
        return self._last

    def of(self, node: int) -> Set[int]:
        return self.held.get(node, frozenset())

    def add(self, node: int, values: Set[int]) -> None:
        """A variable that would hold too much takes nothing more."""
        if node == NOTHING or node in self.overfull:
            return
        held = self.held.get(node)
        new = values if held is None else values - held
        if not new:
            return
        if len(new) + len(held or ()) > MOST_OBJECTS and self._is_too_much(node, new if held is None else held | new):
            self.overfull.add(node)
            self._pending.pop(node, None)
        elif held is None:
            self._set(node, set(new))
        else:
            held |= new
            self._wait(node, new)

    def seed(self, node: int, value: int) -> None:
        """As `put`, whether or not the variable holds too much."""
        if node in self.overfull:
            self._set(node, {*self.held.get(node, ()), value})
        else:
            self.put(node, value)

    def _set(self, node: int, values: set[int]) -> None:
        self.held[node] = values
        self._wait(node, values)

    def _wait(self, node: int, values: Set[int]) -> None:
        pending = self._pending.get(node)
        if pending is None:
            self._pending[node] = set(values)
            self._queue.append(node)
        else:
            pending |= values

    def _is_too_much(self, node: int, values: Set[int]) -> bool:
        """Variables made here hold more, so that those of files that take it from them are seen to be overfull."""
        times = 1 if node >= 0 else MADE_HOLD_TIMES
        if len(values) > MOST_VALUES * times:
            return True
        return sum(not isinstance(self.values[value], CALLED) for value in values) > MOST_OBJECTS * times

    def put(self, node: int, value: int) -> None:
        if value not in self.held.get(node, ()):
            self.add(node, {value})

    def copy(self, source: int, into: int) -> None:
        if source in (NOTHING, into) or into == NOTHING:
            return
        self._copies[source].append(into)
        held = self.held.get(source)
        if held:
            self.add(into, held)

    def watch(self, node: int, handler: Callable[..., None], *data: Any) -> None:
        """Tell the handler of the values that the variable has and will have: `handler(values, *data)`."""
        if node == NOTHING:
            return
        self._watchers[node].append((handler, data))
        held = self.held.get(node)
        if held:
            handler(frozenset(held), *data)

    def run(self) -> None:
        """Spread values until nothing changes."""
        queue, pending, copies, watchers = self._queue, self._pending, self._copies, self._watchers
        while queue:
            node = queue.popleft()
            new = pending.pop(node, None)
            if new is None:
                continue
            if node in copies:
                for into in copies[node]:
                    self.add(into, new)
            if node in watchers:
                for handler, data in tuple(watchers[node]):
                    handler(new, *data)
            if node >= 0:
                self._settle(node, new)

    def clear(self) -> None:
        """Let go of everything; nothing may be asked afterwards."""
        for table in (self.held, self._pending, self._copies, self._watchers):
            table.clear()
        self.values.clear()

    def forget(self, nodes: Iterable[int]) -> None:
        """Drop these variables."""
        for node in nodes:
            for table in (self.held, self._pending, self._copies, self._watchers):
                table.pop(node, None)
