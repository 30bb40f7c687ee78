"""Domains of other packages: offered as entry points of the group `clew.domains`, or named as `module:name`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from clew.catalog.domain import Domain
from clew.errors import ConfigError

GROUP = "clew.domains"


def offered_domains() -> dict[str, EntryPoint]:
    """What installed packages offer, by name."""
    return {each.name: each for each in entry_points(group=GROUP)}


def target_of(name: str, offered: Mapping[str, EntryPoint]) -> str:
    """The `module:name` that a name of the settings stands for. Nothing is imported. Raises ConfigError where no
    package offers it."""
    if name in offered:
        return offered[name].value
    if ":" in name:
        return name
    close = difflib.get_close_matches(name, offered, 1)
    known = f"Did you mean {close[0]}?" if close else f"Offered are: {', '.join(sorted(offered)) or 'none'}"
    error = ConfigError(f"catalog.domains: no installed package offers a domain {name!r}")
    error.hint = f"{known}. One of your own is written as module:name"
    raise error


def load_domains(names: Iterable[str]) -> list[Domain]:
    """The domains of these names, in their order. Raises ConfigError for one that is not there or cannot be loaded."""
    offered = offered_domains()
    return [domain for name in names for domain in _load(name, offered)]


def _load(name: str, offered: Mapping[str, EntryPoint]) -> Sequence[Domain]:
    module, _, attribute = target_of(name, offered).partition(":")
    if name in offered:
        return _domains_in(name, offered[name].load)
    return _domains_in(name, lambda: getattr(import_module(module), attribute))


def _domains_in(name: str, load: Callable[[], Any]) -> Sequence[Domain]:
    """A domain, several, or a function that makes them."""
    try:
        found = load()
        found = found() if callable(found) else found
    except Exception as error:  # the boundary to the code of somebody else's package
        raise ConfigError(f"catalog.domains: {name} cannot be loaded: {type(error).__name__}: {error}") from error
    several = [found] if isinstance(found, Domain) else list(found) if isinstance(found, list | tuple) else []
    if not several or not all(isinstance(each, Domain) for each in several):
        raise ConfigError(f"catalog.domains: {name} is not a Domain, nor a list of them")
    return several
