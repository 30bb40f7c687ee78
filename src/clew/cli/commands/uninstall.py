"""`clew uninstall`: removes everything that Clew wrote on this machine, after showing it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from clew.cli.local_server.protocol import SOCKET_FILES
from clew.cli.options import HERE, Here, Json
from clew.cli.project import check_place
from clew.cli.servers.clients import CLIENTS
from clew.cli.servers.connect import remove_connections
from clew.cli.servers.connection_log import ConnectionRecord, read_connections
from clew.cli.terminal.output import agrees, can_ask, note, print_json, say
from clew.config import CLEW_FILES, FOLDER
from clew.config.descriptions import SCHEMA
from clew.errors import InvalidInput, ReadOnly
from clew.trail.ownership import MADE
from clew.trust import Grant, Trust, user_file

OWN_FILES = (*CLEW_FILES, ".gitignore", SCHEMA, *SOCKET_FILES)
MAX_SHOWN = 8


@dataclass(slots=True)
class FolderTraces:
    """The traces of Clew for one folder `.clew`. `own` are its files there, `others` the files that a person wrote."""

    folder: Path
    connections: list[ConnectionRecord] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    own: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.connections or self.grants or self.own or self.others)


def uninstall(
    *,
    all: Annotated[bool, Parameter(help="Remove your own files in .clew as well: agents, skills, settings.")] = False,
    everywhere: Annotated[
        bool, Parameter(help="For all folders that Clew knows, and for Clew's files of this user.")
    ] = False,
    yes: Annotated[bool, Parameter(help="Remove without a prompt.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Remove what Clew wrote for this folder.

    That is the entries of `clew connect` in the settings of coding agents, your consent of `clew trust`, and Clew's
    files in `.clew`: trail, index, keys and unchanged settings. Files that you wrote in `.clew` stay, unless you say
    --all. Stop `clew up` first. The last line says how to remove the program itself.

        clew uninstall
        clew uninstall --everywhere --yes
    """
    own = here.config().folder.absolute()
    folders = list(dict.fromkeys((*_known_folders(), own))) if everywhere else [own]
    traces = [each for each in map(find_traces, folders) if not each.is_empty]
    files = user_files() if everywhere else []
    if json:
        print_json({"folders": [_as_fields(each, is_all=all) for each in traces], "user_files": list(map(str, files))})
    else:
        _show(traces, files, is_all=all)
    if not traces and not files:
        return 0
    if not yes and not _is_agreed(as_json=json):
        note("Nothing was removed.")
        return 1
    for each in traces:
        remove_traces(each, is_all=all)
    if everywhere:
        _remove_user_files()
    note(f"Removed. To remove the program: {_program_removal()}")
    return 0


def find_traces(folder: Path) -> FolderTraces:
    """Everything that Clew wrote for a folder. Raises ConfigError, ReadOnly for a folder behind a link."""
    found = FolderTraces(folder)
    found.connections = [each for each in read_connections() if each.folder == str(folder)]
    found.grants = Trust.open().grants(folder.parent)
    if folder.is_dir():
        if folder.is_symlink() or folder.name != FOLDER:
            hint = "Remove Clew's files in it by hand: trail.db*, code.db*, keys and credential"
            raise ReadOnly(f"{folder} is not a {FOLDER} of its own: nothing is removed there", hint=hint)
        check_place(folder, folder)
        for path in sorted(folder.iterdir()):
            (found.own if _is_own(path) else found.others).append(path)
    return found


def remove_traces(traces: FolderTraces, *, is_all: bool) -> None:
    """Remove the files that were found, and the folder itself if it is then empty. Raises ReadOnly."""
    from clew.catalog.consent.consent_snapshots import forget_texts  # the catalog is slow to load

    remove_connections(traces.folder)
    trust = Trust.open()
    trust.revoke(traces.folder.parent)
    forget_texts(trust, traces.grants)
    try:
        for path in [*traces.own, *(traces.others if is_all else ())]:
            _remove(path)
        if traces.folder.is_dir() and not any(traces.folder.iterdir()):
            traces.folder.rmdir()
    except OSError as error:
        raise ReadOnly(f"{error.filename} cannot be removed: {error.strerror}") from None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_own(path: Path) -> bool:
    """Whether Clew wrote a file: by its name, or as settings that nobody has changed."""
    if path.name == "config.toml":
        return path.is_file() and not _has_settings(path)
    return any(fnmatch(path.name, pattern) for pattern in OWN_FILES)


def _has_settings(path: Path) -> bool:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.strip() and not line.lstrip().startswith("#") for line in lines)


def _known_folders() -> list[Path]:
    """The folders of all connections and of all consent."""
    connected = [Path(each.folder) for each in read_connections()]
    trusted = [Path(each.folder) / FOLDER for each in Trust.open().grants()]
    return list(dict.fromkeys([*connected, *trusted]))


def _remove_user_files() -> None:
    for path in user_files():
        _remove(path)
    with suppress(OSError):  # the folder stays if anything else is in it
        user_file().parent.rmdir()


def user_files() -> list[Path]:
    """The files of this user: consent with its texts, and the log of connections."""
    places = dict.fromkeys((user_file(), Path(os.path.realpath(user_file()))))
    return [
        path
        for place in places
        for path in sorted(place.parent.glob("*"))
        if path.name.startswith((place.name, "connections.json"))
    ]


def _show(traces: Iterable[FolderTraces], files: Sequence[Path], *, is_all: bool) -> None:
    shown = list(traces)
    if files:
        say(f"For all folders: {', '.join(map(str, files))}")
    elif not shown:
        note("Clew wrote nothing for this folder.")
    for each in shown:
        say(f"For {each.folder.parent}:")
        for connection in each.connections:
            title = next((client.title for client in CLIENTS if client.name == connection.client), connection.client)
            say(f"  the entry {connection.entry} of {title} in {connection.file}")
        made = [grant.name for grant in each.grants if grant.summary == MADE]
        agreed = [grant.name for grant in each.grants if grant.summary != MADE]
        if agreed:
            say(f"  your consent to {_names(agreed)}")
        if made:
            say(f"  the record that you made {_names(made)}")
        going = [*each.own, *(each.others if is_all else ())]
        if going:
            say(f"  in {each.folder}: {_names(path.name for path in going)}")
        if each.others and not is_all:
            say(f"  kept, since you wrote them (--all removes them): {_names(path.name for path in each.others)}")


def _names(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return ", ".join(found[:MAX_SHOWN]) + more


def _as_fields(traces: FolderTraces, *, is_all: bool) -> dict[str, object]:
    going = [*traces.own, *(traces.others if is_all else ())]
    return {
        "folder": str(traces.folder),
        "connections": [{"client": each.client, "file": each.file, "entry": each.entry} for each in traces.connections],
        "consent": [{"kind": each.kind, "name": each.name} for each in traces.grants],
        "removed": [str(path) for path in going],
        "kept": [] if is_all else [str(path) for path in traces.others],
    }


def _is_agreed(*, as_json: bool) -> bool:
    if as_json or not can_ask():
        raise InvalidInput(
            "--yes", "is needed to remove this, since nobody can be asked here", hint="Nothing was removed"
        )
    return agrees("Remove this?")


def _program_removal() -> str:
    """The command that removes the program, chosen by the place of the installation."""
    parts = Path(sys.prefix).parts
    if "uv" in parts and "tools" in parts:
        return "uv tool uninstall clew"
    return "pipx uninstall clew" if "pipx" in parts else "pip uninstall clew"
