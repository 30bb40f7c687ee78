"""The summary of one Python file: its functions, classes and containers, and how values move between its variables.

A summary depends only on the content of the file. Variables, functions, classes and containers are numbered within it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 5
"""Increase it whenever summaries change: stored summaries of another format are discarded."""

NOTHING = -1
"""The variable of an expression that can hold no value of interest."""

Key = int | str | None
"""A constant key of a container; None for an unknown one."""
Operation = Literal[
    "load", "store", "item", "set_item", "iterate", "enter", "super", "call", "base", "instance", "narrow", "exclude"
]  # fmt: skip
FunctionKind = Literal["plain", "static", "class", "property", "setter"]


class _FlowRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A compact immutable record."""


class ValueUse(_FlowRecord, frozen=True):
    """An operation on the values of a watched variable, by the scope `caller`.

    | load | `node = watched.key` | store | `watched.key = node` |
    | item | `node = watched[key]` | set_item | `watched[key] = node` |
    | iterate | `for node in watched` | enter | `with watched as node` |
    | call | the site of number `node` | super | `node = super()` in a method of class `key` |
    | base | watched is base `key` of class `node` | instance | `node` is an instance of the watched class |
    | narrow, exclude | `node` has the watched instances of the classes in variable `key`, or all other values |
    """

    op: Operation
    node: int
    key: Key = None
    caller: int = 0
    line: int = 0


class Site(_FlowRecord, frozen=True):
    """A call in the source. With `attr` the receiver is watched and its method called."""

    attr: str
    args: tuple[int, ...]
    starred: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...]
    """Named arguments; `**mapping` has an empty name."""
    result: int
    caller: int
    line: int
    name: str = ""
    """The method name to guess the target by if the receiver stays unknown; empty if a guess would be wrong."""
    decorates: bool = False
    constant: Key = None
    """The constant that selects the result: the name for `getattr`, the key for `get`."""


class Function(_FlowRecord, frozen=True):
    """A function, method or lambda. `of_class` is the class around it."""

    node: int
    """The variable that holds the function."""
    qualname: str
    line: int
    kind: FunctionKind
    of_class: int
    parameters: tuple[tuple[str, int], ...]
    keyword_only: tuple[tuple[str, int], ...]
    rest: int
    """The container of `*args`."""
    named_rest: int
    """The container of `**kwargs`."""
    returned: int

    @property
    def receiver(self) -> int:
        """The variable of `self` or `cls`; NOTHING for a function that is not bound."""
        is_bound = self.of_class != NOTHING and self.kind != "static" and self.parameters
        return self.parameters[0][1] if is_bound else NOTHING


class Class(_FlowRecord, frozen=True):
    """A class with the variables of its body by name; `node` holds the class."""

    node: int
    qualname: str
    line: int
    attrs: dict[str, int]


class Container(_FlowRecord, frozen=True):
    """A list, tuple, set, dictionary or generator, identified by the place where it is made, with the variables that
    fill it."""

    node: int
    """The variable that holds the container."""
    is_mapping: bool
    fields: tuple[tuple[Key, int], ...] = ()


class ModuleImport(_FlowRecord, frozen=True):
    """`into` is the module, or its variable `name`, or all its names with `*`. `level` counts the leading dots."""

    module: str
    level: int
    name: str
    into: int


class FlowSummary(_FlowRecord, frozen=True):
    """The stored facts of one content. An unreadable file has an `error` and nothing else."""

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
    copies: dict[int, tuple[int, ...]] = {}
    uses: dict[int, tuple[ValueUse, ...]] = {}
    sites: tuple[Site, ...] = ()
    stored: tuple[str, ...] = ()
    """Names of attributes that the file sets or defines."""
    nodes: int = 0
    error: str = ""
