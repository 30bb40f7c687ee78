"""The summary of one Python file: its functions, classes and containers, and how values move between its variables.

A summary depends only on the content of the file. Variables, functions, classes and containers are numbered within it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 4
"""Increase it whenever summaries change: stored summaries of another format are discarded."""

NOTHING = -1
"""The variable of an expression that can hold no value of interest."""

Key = int | str | None
"""A constant key of a container; None for an unknown one."""
FunctionKind = Literal["plain", "static", "class", "property", "setter"]
ContainerKind = Literal["sequence", "mapping", "generator"]


class _Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A compact immutable record."""


class Load(_Record, frozen=True, tag=0):
    """`into = watched.attr`; reading a property is a call by the scope `caller`."""

    into: int
    attr: str
    caller: int
    line: int


class Store(_Record, frozen=True, tag=1):
    """`watched.attr = value`."""

    value: int
    attr: str
    caller: int
    line: int


class Item(_Record, frozen=True, tag=2):
    """`into = watched[key]`."""

    into: int
    key: Key
    caller: int
    line: int


class SetItem(_Record, frozen=True, tag=3):
    """`watched[key] = value`."""

    value: int
    key: Key
    caller: int
    line: int


class Call(_Record, frozen=True, tag=4):
    """The watched value, or its attribute, is called at the site of this number."""

    site: int


class Iterate(_Record, frozen=True, tag=5):
    """`for into in watched`."""

    into: int
    caller: int
    line: int


class Enter(_Record, frozen=True, tag=6):
    """`with watched as into`."""

    into: int
    caller: int
    line: int


class Instance(_Record, frozen=True, tag=7):
    """`into` is an instance of the watched class, by an annotation, an `except` or an `isinstance`."""

    into: int


class Super(_Record, frozen=True, tag=8):
    """`into = super()` in a method of `of_class` whose receiver is the watched variable."""

    into: int
    of_class: int


class Base(_Record, frozen=True, tag=9):
    """The watched value is the base class of `of_class` at this position."""

    of_class: int
    position: int


class Slice(_Record, frozen=True, tag=10):
    """`into = watched[start:stop]`, a container of its own."""

    into: int
    start: int
    stop: int | None
    container: int


class Narrow(_Record, frozen=True, tag=11):
    """`into` has the watched instances of the classes in `classes`; with `is_negated`, all other values."""

    into: int
    classes: int
    is_negated: bool


Use = Load | Store | Item | SetItem | Call | Iterate | Enter | Instance | Super | Base | Slice | Narrow


class Site(_Record, frozen=True):
    """A call in the source. With `attr` the receiver is watched and its method called."""

    attr: str
    args: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...]
    starred: tuple[int, ...]
    double_starred: tuple[int, ...]
    result: int
    caller: int
    line: int
    name: str = ""
    """The method name to guess the target by if the receiver stays unknown; empty if a guess would be wrong."""
    decorates: bool = False
    constant: Key = None
    """The constant that selects the result: the name for `getattr`, the key for `get`."""


class Function(_Record, frozen=True):
    """A function, method or lambda. `scope` is its number among the callers, `of_class` the class around it."""

    qualname: str
    line: int
    scope: int
    kind: FunctionKind
    of_class: int
    parameters: tuple[tuple[str, int], ...]
    keyword_only: tuple[tuple[str, int], ...]
    rest: int
    """The container of `*args`."""
    named_rest: int
    """The container of `**kwargs`."""
    returned: int
    generator: int
    """The container of the yielded values."""


class Class(_Record, frozen=True):
    """A class with the variables of its body by name."""

    qualname: str
    line: int
    attrs: dict[str, int]


class Container(_Record, frozen=True):
    """A list, tuple, set, dictionary or generator, identified by where it is made, with the variables that fill it."""

    kind: ContainerKind
    fields: tuple[tuple[Key, int], ...] = ()


class ModuleImport(_Record, frozen=True):
    """`into` is the module, or its variable `name`, or all its names with `*`. `level` counts the leading dots."""

    module: str
    level: int
    name: str
    into: int
    line: int


class Seed(_Record, frozen=True):
    """The initial value of a variable: a function, class or container by number, or data of a built-in type."""

    into: int
    kind: Literal["function", "class", "container", "str", "list", "dict"]
    number: int


class Summary(_Record, frozen=True):
    """Everything stored of one content. An unreadable file has an `error` and nothing else."""

    scopes: tuple[str, ...] = ()
    """Qualnames of everything that can call: the file itself (empty), functions and class bodies."""
    functions: tuple[Function, ...] = ()
    classes: tuple[Class, ...] = ()
    containers: tuple[Container, ...] = ()
    imports: tuple[ModuleImport, ...] = ()
    names: dict[str, int] = {}
    """The module's variables by name."""
    free: dict[str, int] = {}
    """Variables of names that the file uses and does not bind."""
    seeds: tuple[Seed, ...] = ()
    copies: dict[int, tuple[int, ...]] = {}
    uses: dict[int, tuple[Use, ...]] = {}
    sites: tuple[Site, ...] = ()
    stored: tuple[str, ...] = ()
    """Names of attributes that the file sets or defines."""
    nodes: int = 0
    error: str = ""
