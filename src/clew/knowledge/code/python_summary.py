"""What the analysis of calls keeps of one Python file: its functions, classes and containers, and how values move
between its variables. Everything is numbered within the file, so that a summary holds for a content wherever it is."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 3
"""Changes whenever summaries do: those of another number are made anew."""

NOTHING = -1
"""Stands for a variable where no value is of interest."""

Key = int | str | None
FunctionKind = Literal["plain", "static", "class", "property", "setter"]
ContainerKind = Literal["sequence", "mapping", "generator"]


class Load(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=0):
    """`into = watched.attr`; the scope `caller` runs what a property does."""

    into: int
    attr: str
    caller: int
    line: int


class Store(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """`watched.attr = value`."""

    value: int
    attr: str
    caller: int
    line: int


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """`into = watched[key]`; no key stands for one that is not known."""

    into: int
    key: Key
    caller: int
    line: int


class SetItem(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """`watched[key] = value`."""

    value: int
    key: Key
    caller: int
    line: int


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """The watched value, or its attribute, is called at the site of this number."""

    site: int


class Iterate(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """`for into in watched`."""

    into: int
    caller: int
    line: int


class Enter(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """`with watched as into`."""

    into: int
    caller: int
    line: int


class Instance(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=7):
    """`into` is an instance of the watched class: an annotation, or what an `except` catches."""

    into: int


class Super(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """`into = super()` in a method of this class, of which the watched variable is the receiver."""

    into: int
    of_class: int


class Base(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=9):
    """The watched value is the base class of `of_class` at this position."""

    of_class: int
    position: int


class Slice(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=10):
    """`into = watched[start:stop]`, a container of its own."""

    into: int
    start: int
    stop: int | None
    container: int


Use = Load | Store | Item | SetItem | Call | Iterate | Enter | Instance | Super | Base | Slice


class Site(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A place where something is called. `attr` is the method's name where the receiver is watched; `name` is what may
    be guessed from where nothing else is known, and is empty where guessing would be wrong."""

    attr: str
    args: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...]
    starred: tuple[int, ...]
    double_starred: tuple[int, ...]
    result: int
    caller: int
    line: int
    name: str = ""
    decorates: bool = False
    constant: Key = None
    """The argument that says what is meant, where it is a constant: the name for `getattr`, the key for `get`."""


class Function(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A function, method or lambda. `scope` is its number among the callers, `of_class` that of the class around it."""

    qualname: str
    line: int
    scope: int
    kind: FunctionKind
    of_class: int
    parameters: tuple[tuple[str, int], ...]
    keyword_only: tuple[tuple[str, int], ...]
    rest: int
    """The container of further arguments (`*args`), and of further named ones (`**kwargs`)."""
    named_rest: int
    returned: int
    generator: int
    """The container of what it yields."""


class Class(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A class with the variables of its body by name."""

    qualname: str
    line: int
    attrs: dict[str, int]


class Container(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A list, tuple, set, dictionary or generator, known by where it is made, with the variables that fill it."""

    kind: ContainerKind
    fields: tuple[tuple[Key, int], ...] = ()


class ModuleImport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`into` is the module, or its variable `name`; `*` brings all its names in. `module` has no leading dots: they are
    counted in `level`."""

    module: str
    level: int
    name: str
    into: int
    line: int


class Seed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value that a variable has from the start: a function, class or container by its number, or data of a type."""

    into: int
    kind: Literal["function", "class", "container", "str", "list", "dict"]
    number: int


class Summary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All that is kept of one content. Where `error` says why it could not be read there is nothing else in it."""

    scopes: tuple[str, ...] = ()
    """Qualnames of what can call: the file itself (empty), functions and class bodies."""
    functions: tuple[Function, ...] = ()
    classes: tuple[Class, ...] = ()
    containers: tuple[Container, ...] = ()
    imports: tuple[ModuleImport, ...] = ()
    names: dict[str, int] = {}
    """Variables of the file by name; `free` has those that it uses and does not bind."""
    free: dict[str, int] = {}
    seeds: tuple[Seed, ...] = ()
    copies: dict[int, tuple[int, ...]] = {}
    uses: dict[int, tuple[Use, ...]] = {}
    sites: tuple[Site, ...] = ()
    stored: tuple[str, ...] = ()
    """Names of attributes that the file sets or defines."""
    nodes: int = 0
    error: str = ""
