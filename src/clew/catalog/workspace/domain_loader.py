"""Domains of other packages: offered as entry points of the group `clew.domains`, or named as `module:name`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog.consent.source_only_import import run_from_source
from clew.catalog.domain import Domain
from clew.catalog.operations.text import plain
from clew.errors import ConfigError
from clew.secrecy import mask_secrets

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clew.domains"
MAX_REASON = 300


def offered_domains() -> dict[str, EntryPoint]:
    """The domains that installed packages offer, by name."""
    from importlib.metadata import entry_points  # for folders whose settings name domains

    return {each.name: each for each in entry_points(group=GROUP)}


def target_of(name: str, offered: Mapping[str, EntryPoint]) -> str:
    """The `module:name` of a domain named in the settings. Imports nothing. Raises ConfigError if no package offers
    it."""
    if name in offered:
        return offered[name].value
    if ":" in name:
        return name
    close = difflib.get_close_matches(name, offered, 1)
    known = f"Did you mean {close[0]}?" if close else f"Offered are: {', '.join(sorted(offered)) or 'none'}"
    error = ConfigError(f"catalog.domains: no installed package offers a domain {name!r}")
    error.hint = f"{known}. Write a domain of your own as module:name"
    raise error


def load_domains(names: Iterable[str], project: Path | None = None) -> list[Domain]:
    """The domains of these names, in their order. Modules of `project` are run from their source. Raises ConfigError if
    a domain does not exist or cannot be loaded; the hint names its module's place if it is in `project`."""
    offered = offered_domains()
    return [domain for name in names for domain in _load(name, offered, project)]


def _load(name: str, offered: Mapping[str, EntryPoint], project: Path | None) -> Sequence[Domain]:
    module, _, attribute = target_of(name, offered).partition(":")
    if project is not None:
        run_from_source(module.strip(), project)
    try:
        if name in offered:
            return _domains_in(name, offered[name].load)
        return _domains_in(name, lambda: getattr(import_module(module), attribute))
    except ConfigError as error:
        error.hint = error.hint or _next_step(error.__cause__, module, project)
        raise


def _domains_in(name: str, load: Callable[[], Any]) -> Sequence[Domain]:
    """A domain, several, or a function that makes them."""
    try:
        found = load()
        found = found() if callable(found) else found
    except (Exception, SystemExit) as error:  # the boundary to the code of somebody else's package
        reason = plain(mask_secrets(f"{type(error).__name__}: {error}"), MAX_REASON)
        raise ConfigError(f"catalog.domains: {name} cannot be loaded: {reason}") from error
    several = [found] if isinstance(found, Domain) else list(found) if isinstance(found, list | tuple) else []
    if not several or not all(isinstance(each, Domain) for each in several):
        raise ConfigError(f"catalog.domains: {name} is not a Domain, nor a list of them")
    return several


def _next_step(cause: BaseException | None, module: str, project: Path | None) -> str:
    """The next step for the user when a domain cannot be loaded."""
    first = module.partition(".")[0]
    if not isinstance(cause, ModuleNotFoundError) or not cause.name:
        return "Correct it, or remove it from catalog.domains"
    if cause.name != first:
        return f"Install the package with {plain(cause.name, 100)} in Clew's environment"
    places = (project, project / "src") if project is not None else ()
    for place in places:
        if (place / f"{first}.py").is_file() or (place / first).is_dir():
            return f"It lies in {place}, where Python does not look: start Clew with PYTHONPATH={place}"
    return "Install its package in Clew's environment, or name its folder in PYTHONPATH"
