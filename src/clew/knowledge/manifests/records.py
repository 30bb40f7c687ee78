"""What is read from a manifest: the packages that it declares, and what is wrong with it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Ecosystem = Literal["npm", "python", "go", "rust", "ruby", "java"]
PackageType = Literal["runtime", "dev", "peer"]

_DEV = re.compile(r"dev|test|lint|docs?|typing|types|check|ci\b|format", re.IGNORECASE)


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A package as a manifest names it. `source` is the line of that, `path:line`; what only others need is not
    direct."""

    ecosystem: Ecosystem
    name: str
    version: str
    type: PackageType
    source: str
    is_direct: bool = True


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One manifest as it was read. `problem` says why it declares nothing, or not all; empty where all is well."""

    path: str
    packages: tuple[Declared, ...] = ()
    problem: str = ""


def normal_name(name: str) -> str:
    """The one spelling of all that mean the same package of Python."""
    return re.sub(r"[-_.]+", "-", name).lower()


def type_of_group(name: str) -> PackageType:
    """What a group of packages is for, by what it is called."""
    return "dev" if _DEV.search(name) else "runtime"
