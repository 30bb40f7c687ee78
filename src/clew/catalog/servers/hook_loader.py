"""Hooks around foreign servers that the settings name: `mcp.hooks`, each a `module:name`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from clew.catalog.consent.source_only_import import run_from_source
from clew.catalog.operations.text import plain
from clew.catalog.servers.connections.hooks import Hooks
from clew.errors import ConfigError
from clew.secrecy import mask_secrets

MAX_REASON = 300


def load_hooks(names: Iterable[str], project: Path) -> list[Hooks]:
    """The hooks of these names, in their order. Modules of the project are run from their source. Raises ConfigError if
    a hook cannot be loaded."""
    return [_load(name, project) for name in names]


def _load(name: str, project: Path) -> Hooks:
    module, _, attribute = name.partition(":")
    run_from_source(module, project)
    try:
        found = getattr(import_module(module), attribute)
        found = found() if callable(found) else found
    except (Exception, SystemExit) as error:  # the boundary to the code of somebody else's module
        reason = plain(mask_secrets(f"{type(error).__name__}: {error}"), MAX_REASON)
        told = ConfigError(f"mcp.hooks: {name} cannot be loaded: {reason}")
        told.hint = f"Correct it, or start Clew with PYTHONPATH={project} if the module lies there"
        raise told from error
    if not isinstance(found, Hooks):
        raise ConfigError(f"mcp.hooks: {name} is not a Hooks of clew.catalog.servers")
    return found
