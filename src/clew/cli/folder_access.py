"""The folder that a command works on: its settings, its trail, and whether its files may be read.

Without the parser, which a plain question does not load.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.access import Principal, check_principal
from clew.app import App, open_app
from clew.cli.project import mend_ignored, prepare_folder, project_root, trail_file
from clew.cli.terminal.output import agrees, can_ask, note
from clew.config import FOLDER, Config, is_broad, read_config
from clew.errors import ClewError, ConfigError, InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderAccess:
    """The trail that a command works on, and the identity that it uses. `scopes` are separated by commas."""

    folder: Path | None = None
    owner: str | None = None
    scopes: str = ""

    def config(self, flags: Mapping[str, Any] | None = None) -> Config:
        """The configuration of the folder, with the environment and the flags on top.

        Raises InvalidInput for a flag that cannot be used, and ConfigError for a setting of the file or environment.
        """
        try:
            config = read_config(self.folder, os.environ, {"owner": self.owner, **(flags or {})})
        except ConfigError as error:
            raise _by_source(error) from None
        _check_identity(config.owner, self.scope_set, is_typed=self.owner is not None)
        return config

    @property
    def scope_set(self) -> frozenset[str]:
        return frozenset(filter(None, (scope.strip() for scope in self.scopes.split(","))))


def _by_source(error: ConfigError) -> ClewError:
    """Convert the error to a usage error that names the flag, if the setting came from a flag."""
    option, _, reason = error.message.partition(": ")
    return InvalidInput(option, reason, hint=error.hint) if option.startswith("--") else error


def _check_identity(owner: str, scopes: frozenset[str], *, is_typed: bool) -> None:
    """Refuse invalid names of owners and scopes, with the name of the option."""
    try:
        check_principal(Principal(owner_id=owner, scopes=scopes))
    except InvalidInput as error:
        if error.field == "scopes":
            raise InvalidInput("--scopes", error.reason) from None
        if is_typed:
            raise InvalidInput("--owner", f"{owner!r} {error.reason}") from None
        raise ConfigError(f"the owner {owner!r} (owner in config.toml, or CLEW_OWNER) {error.reason}") from None


@asynccontextmanager
async def open_here(
    here: FolderAccess, *, create: bool = False, tell_first: bool = False, patience: float | None = None
) -> AsyncIterator[App]:
    """Open the trail of the folder. A new trail is created only with `create`. A note about that is printed at the end,
    or at once with `tell_first`. Raises ClewError if there is no trail, or if a new one would be outside of a
    project."""
    config = here.config()
    file = trail_file(config)
    is_new = file is not None and not file.exists()
    if is_new and not create:
        raise ClewError(f"there is no trail at {file}", hint=_where_else(config.folder))
    if is_new and config.is_named and not config.folder.absolute().parent.is_dir():
        raise ClewError(
            f"there is no folder {config.folder.absolute().parent}",
            hint="Name a folder that you may write: --folder or CLEW_FOLDER",
        )
    if is_new:
        check_project(config)
        prepare_folder(config.folder)
    else:
        mend_ignored(config.folder)
    async with open_app(config, scopes=here.scope_set, patience=patience) as app:
        if is_new:
            await app.bootstrap()
        if is_new and tell_first:
            note(f"A new trail: {file}", dim=True)
        yield app
    if is_new and not tell_first:
        note(f"A new trail: {file}", dim=True)


def check_project(config: Config) -> None:
    """Raise ClewError for a folder that is not a project, such as the home folder, unless somebody named it."""
    if not config.is_named and is_broad(project_root(config)):
        # loads the catalog, which commands on an existing trail do not need
        from clew.catalog.workspace.repository import find_refusal, is_machine

        if is_machine(config):
            raise ClewError(find_refusal(config))


async def check_readable(here: FolderAccess, *, is_agreed: bool = False) -> None:
    """Raise ClewError if the files of the folder may not be read. If there are too many files, ask a person at a
    terminal first."""
    from clew.catalog.workspace.repository import agree_to_size, find_refusal  # for commands that read files

    config = here.config()
    check_project(config)
    refusal = await asyncio.to_thread(find_refusal, config)
    if not refusal:
        return
    if not is_agreed and not (can_ask() and agrees(f"{refusal.partition('. ')[0]}. Read them all?")):
        raise ClewError(refusal)
    prepare_folder(config.folder)
    agree_to_size(config)


def _where_else(folder: Path) -> str:
    if (folder / FOLDER / "trail.db").exists():
        return f"Did you mean --folder {folder / FOLDER}?"
    return "Start one with `clew trail put` or `clew up`, or name its folder: --folder"
