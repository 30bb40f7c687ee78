"""The values that the analysis of calls follows: functions, classes, one instance a class, modules, containers by where
they are made. Values are numbered; the number of one that is met again is the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from clew.knowledge.code.python_summary import NOTHING, Class, ContainerKind, Function

if TYPE_CHECKING:
    from clew.knowledge.code.python_calls import CallRecord


class FunctionValue:
    """A function at `path`; `base` is added to the numbers of its variables. Gone once its file no longer has it."""

    __slots__ = ("base", "info", "is_gone", "name", "path", "qualname", "visits")

    def __init__(self, path: str, qualname: str) -> None:
        self.path = path
        self.qualname = qualname
        self.name = qualname.rpartition(".")[2]
        self.base = 0
        self.info: Function | None = None
        self.is_gone = False
        self.visits: dict[tuple[int, int], CallRecord] = {}


class ClassValue:
    """A class at `path`, with its bases as far as they are known, and the variables in which its attributes arrive."""

    __slots__ = ("base", "bases", "info", "is_gone", "lookups", "mro", "path", "qualname", "reads", "subclasses")

    def __init__(self, path: str, qualname: str) -> None:
        self.path = path
        self.qualname = qualname
        self.base = 0
        self.info: Class | None = None
        self.is_gone = False
        self.bases: dict[int, list[int]] = {}
        self.mro: tuple[int, ...] | None = None
        self.subclasses: set[int] = set()
        self.lookups: dict[str, int] = {}
        self.reads: dict[str, int] = {}


class InstanceValue:
    """An instance of a class; all instances of a class are one."""

    __slots__ = ("of_class",)

    def __init__(self, of_class: int) -> None:
        self.of_class = of_class


class BoundValue:
    """A method together with its receiver."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: int, receiver: int) -> None:
        self.function = function
        self.receiver = receiver


class SuperValue:
    """What `super()` gives in a method of `of_class` for this receiver."""

    __slots__ = ("of_class", "receiver")

    def __init__(self, of_class: int, receiver: int) -> None:
        self.of_class = of_class
        self.receiver = receiver


class ModuleValue:
    """A module of the project: its file, or the folder of a namespace package with `/` at its end."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class ContainerValue:
    """A list, dictionary or generator: variables by key, and the one into which all of them flow."""

    __slots__ = ("everything", "fields", "kind")

    def __init__(self, kind: ContainerKind) -> None:
        self.kind = kind
        self.fields: dict[int | str | None, int] = {}
        self.everything = 0


class ExternalValue:
    """Something that the project does not define: its dotted name; an instance of it where `is_instance`."""

    __slots__ = ("is_instance", "name")

    def __init__(self, name: str, is_instance: bool) -> None:
        self.name = name
        self.is_instance = is_instance


Value = (
    FunctionValue | ClassValue | InstanceValue | BoundValue | SuperValue | ModuleValue | ContainerValue | ExternalValue
)


class Values(list[Value]):
    """All values by number."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, make: Callable[[], Value]) -> int:
        """The number of the value with this key, which is made where it is new."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self)
            self.append(make())
        return found

    def function(self, path: str, qualname: str, ordinal: int) -> int:
        return self.number(("function", path, qualname, ordinal), lambda: FunctionValue(path, qualname))

    def find_function(self, path: str, qualname: str) -> int:
        """The function of this name that comes first in its file, or nothing."""
        return self._numbers.get(("function", path, qualname, 0), NOTHING)

    def of_class(self, path: str, qualname: str, ordinal: int) -> int:
        return self.number(("class", path, qualname, ordinal), lambda: ClassValue(path, qualname))

    def instance(self, of_class: int) -> int:
        return self.number(("instance", of_class), lambda: InstanceValue(of_class))

    def bound(self, function: int, receiver: int) -> int:
        return self.number(("bound", function, receiver), lambda: BoundValue(function, receiver))

    def above(self, of_class: int, receiver: int) -> int:
        return self.number(("super", of_class, receiver), lambda: SuperValue(of_class, receiver))

    def module(self, path: str) -> int:
        return self.number(("module", path), lambda: ModuleValue(path))

    def container(self, kind: ContainerKind, key: Hashable) -> int:
        return self.number(("container", key), lambda: ContainerValue(kind))

    def external(self, name: str, *, is_instance: bool = False) -> int:
        return self.number(("external", name, is_instance), lambda: ExternalValue(name, is_instance))
