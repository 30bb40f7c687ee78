"""Commands that copy a whole trail with everything on it: move and backup."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import count, note, print_json, print_rows, say
from clew.cli.terminal.progress import Progress, progress
from clew.config import FOLDER, Config, check_own_files
from clew.errors import ClewError, InvalidInput
from clew.trail import open_replica
from clew.trail.config_consent import confirm_settings
from clew.trail.move.move import MovePlan, MoveReport, Tell, move_trail, plan_move
from clew.trail.move.replica import Access, Replica
from clew.trail.ownership import is_own, remember_moved

STATES = {
    "empty": "is empty",
    "begun": "holds a part of this trail from an earlier attempt",
    "same": "holds this trail already",
    "other": "holds another trail: name an empty database, or a new file",
}

PARTS = ("", "-wal", "-shm", "-journal", ".key")
"""The suffixes of the files of a trail."""


async def move(
    source: Annotated[str, Parameter(help="The trail: a file, sqlite://PATH or postgresql://ROLE@HOST/DATABASE.")],
    target: Annotated[str, Parameter(help="A new file or an empty database, written in the same way.")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Say what would be moved, and change nothing.")] = False,
    mine: Annotated[
        bool, Parameter(help="You made the trail, on another machine or as a backup: things may run on it.")
    ] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Move a trail to another file or server, with everything on it.

    All owners are moved, with versions, events, pending work, vectors and secrets; `--owner` and `--scopes` do not
    matter. End all processes that use the trail first. The old trail stays as it is. An interrupted move continues when
    you run it again. Both places are compared by counts and checksums before the new one can be used. Give the password
    in PGPASSWORD or ~/.pgpass. On a trail that you did not make nothing runs before you agree to it with `clew trust`,
    unless you say --mine.

        clew trail move .clew/trail.db postgresql://clew@db.example/trail
        clew trail move postgresql://clew@db.example/trail moved.db --dry-run
    """
    addresses = _address(source), _address(target)
    configs = [_config_of(here.config(), each) for each in addresses]
    files = [config.trail_file for config in configs]
    if addresses[0] == addresses[1] or (
        files[0] and files[1] and os.path.realpath(files[0]) == os.path.realpath(files[1])
    ):
        raise InvalidInput("TARGET", "is the trail that is to be moved")
    if dry_run:
        return await _show_plan(addresses, json=json)
    async with _opened(addresses[0], "locked") as old, _opened(addresses[1], "target") as new:
        is_mine = mine or await _is_mine(old, configs[0])
        with progress("Moving") as shown:
            report = await move_trail(old, new, _progress_reporter(shown), foreign=not is_mine)
    is_known = is_mine and await remember_moved(configs[1])
    if json:
        print_json(report)
        return 0
    print_rows(("table", "rows", "owners", "checksum"), _rows(report))
    _explain(report, is_known=is_known)
    return 0


async def backup(
    file: Annotated[Path, Parameter(help="Where to write.")],
    /,
    *,
    force: Annotated[bool, Parameter(help="Replace a file that exists.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Copy the trail to a SQLite file while others work on it.

    The copy is the whole trail as of one moment, whether it is in a file or on a server. It appears whole or not at
    all, and is compared with the trail. The key of the secrets is put beside it: keep both where only you can read
    them.

        clew trail backup /backups/trail-monday.db
    """
    config = confirm_settings(here.config())
    check_own_files(config.folder)
    _check_place(file, config, force=force)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    key, draft_key = (each.with_name(f"{each.name}.key") for each in (file, draft))
    try:
        async with _opened(config.trail_url, "snapshot") as old, _opened(f"sqlite://{draft}", "target") as new:
            with progress("Copying") as shown:
                report = await move_trail(old, new, _progress_reporter(shown))
        if draft_key.exists():
            draft_key.replace(key)
        draft.replace(file)
    finally:
        for suffix in PARTS:
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    report = msgspec.structs.replace(report, target=str(file), key_file=str(key) if report.secrets else "")
    if json:
        print_json(report)
        return
    say(f"Wrote {_sizes(report)} to {file}.")
    if report.secrets:
        say(f"The key of {count(report.secrets, 'secret')} is {key}.")


def _check_place(file: Path, config: Config, *, force: bool) -> None:
    """Raise ClewError for a file that a backup may not replace."""
    if file.exists() and not force:
        raise ClewError(f"{file} exists", hint="Name another file, or replace it with --force")
    if file.is_dir():
        raise ClewError(f"{file} is a folder", hint="Name a file in it")
    trail = config.trail_file
    if trail is not None and file.resolve() in [Path(f"{trail.resolve()}{suffix}") for suffix in PARTS]:
        raise ClewError(f"{file} belongs to the trail itself", hint="Name another file")
    if file.with_name(f"{file.name}-wal").exists():
        raise ClewError(f"{file} is a trail in use, or was not closed", hint="Name another file")


@asynccontextmanager
async def _opened(address: str, access: Access) -> AsyncIterator[Replica]:
    replica = await asyncio.to_thread(open_replica, address, access)
    try:
        yield replica
    finally:
        await asyncio.to_thread(replica.close)


async def _is_mine(replica: Replica, config: Config) -> bool:
    is_foreign, identity = await asyncio.to_thread(lambda: (replica.is_foreign(), replica.identity()))
    return not is_foreign and await is_own(config, identity)


def _address(given: str) -> str:
    """The address of a trail. A path names its file, or the folder `.clew` that has the trail."""
    if "://" in given:
        return given
    return f"sqlite://{Path(given) / 'trail.db' if Path(given).is_dir() else given}"


def _config_of(config: Config, address: str) -> Config:
    """The settings of a process that uses the trail at an address."""
    named = msgspec.structs.replace(config, trail=address, from_file=config.from_file - {"trail"})
    file = named.trail_file
    is_in_folder = file is not None and file.absolute().parent.name == FOLDER
    return msgspec.structs.replace(named, folder=file.absolute().parent) if file and is_in_folder else named


def _progress_reporter(shown: Progress) -> Tell:
    def tell(doing: str, done: int, total: int) -> None:
        shown.advance(done, total, f"rows {doing}")

    return tell


async def _show_plan(addresses: tuple[str, str], *, json: bool) -> int:
    async with _opened(addresses[0], "locked") as old, _opened(addresses[1], "look") as new:
        plan = await plan_move(old, new)
    if json:
        print_json(plan)
    else:
        print_rows(("table", "rows"), [(name, f"{rows:,}") for name, rows in plan.rows.items()])
        note(_describe(plan))
    return 1 if plan.state == "other" else 0


def _describe(plan: MovePlan) -> str:
    secrets = f" The key of {count(plan.secrets, 'secret')} would be put at {plan.key_file}." if plan.secrets else ""
    return f"{plan.target} {STATES[plan.state]}. Nothing was changed.{secrets}"


def _rows(report: MoveReport) -> list[tuple[str, ...]]:
    return [(each.table, f"{each.rows:,}", f"{each.owners:,}", each.checksum[:8]) for each in report.tables]


def _sizes(report: MoveReport) -> str:
    tables = {each.table: each for each in report.tables}
    breadcrumbs, events = tables["breadcrumbs"], tables["events"]
    records = f"{count(breadcrumbs.rows, 'breadcrumb')} (expired ones included) and {count(events.rows, 'event')}"
    return f"{records} of {count(events.owners, 'owner')}"


def _explain(report: MoveReport, *, is_known: bool) -> None:
    verb = "Moved" if report.copied else "Compared"
    note(f"{verb} {_sizes(report)} to {report.target}: every table is the same in both places.")
    if report.secrets:
        note(
            f"The key of {count(report.secrets, 'secret')} is {report.key_file}: every machine that uses them needs it."
        )
    if not is_known:
        note("Nothing runs on the new trail before you agree to it: `clew trust`.")
    note("Give every process the new address (CLEW_TRAIL), and start none on the old trail, which is unchanged.")
