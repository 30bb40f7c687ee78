"""Gives definitions unique names. A duplicate gets the name of a folder above it as a prefix."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from typing import TypeVar

import msgspec

from clew.skills.checks.problems import Problem
from clew.skills.formats.file_kinds import qualifiers
from clew.skills.formats.source import MAX_NAME, to_name
from clew.skills.manifest import AgentSpec, Skill

Named = TypeVar("Named", Skill, AgentSpec)


def name_all(found: list[tuple[Named, str]], what: str) -> tuple[list[Named], list[tuple[str, str]], list[Problem]]:
    """Give each definition a unique name, in order of precedence. Return the definitions, the exact copies that were
    left out (path, path of the first), and the problems."""
    kept: dict[str, Named] = {}
    copies: list[tuple[str, str]] = []
    problems: list[Problem] = []
    numbers: dict[str, int] = {}
    for thing, folder in found:
        first = kept.get(thing.name)
        if first is not None and thing.digest and first.digest == thing.digest:
            copies.append((thing.path, first.path))
            continue
        name = next((each for each in _candidates(thing.name, folder) if each not in kept), "")
        name = name or _numbered(thing.name, kept, numbers)
        if first is not None:
            problems.append(_duplicate(what, thing.name, name, thing.path, first.path))
        kept[name] = msgspec.structs.replace(thing, name=name)
    return [kept[name] for name in sorted(kept)], copies, problems


def _duplicate(what: str, wanted: str, name: str, path: str, first: str) -> Problem:
    message = f"{first} defines the {what} {wanted} already: Clew calls this one {name}"
    return Problem(kind="build", severity="warning", path=path, message=message, hint="Rename one of them")


def _candidates(name: str, folder: str) -> Iterator[str]:
    """Yield the name itself, then the name with a folder as prefix."""
    yield name
    before = (to_name(each) for each in qualifiers(folder))
    yield from (f"{each}-{name}" for each in before if each and len(each) + len(name) < MAX_NAME)


def _numbered(name: str, taken: Container[str], numbers: dict[str, int]) -> str:
    """Append the first free number to a name. `numbers` has the next number to try for each name."""
    base = name[: MAX_NAME - 7]
    number = next(each for each in itertools.count(numbers.get(base, 2)) if f"{base}-{each}" not in taken)
    numbers[base] = number + 1
    return f"{base}-{number}"
