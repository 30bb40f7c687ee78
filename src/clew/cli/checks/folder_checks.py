"""Checks of `clew doctor`. Each check is a function from a configuration to findings. It changes nothing, except what
opening a trail changes."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from clew.adapters.rest.auth import tracked_keys
from clew.app import open_app
from clew.cli.commands.up import check_address
from clew.cli.project import describe_folder, trail_file
from clew.cli.terminal.output import count
from clew.config import Config, check_own_files
from clew.errors import ClewError, ConfigError, Corrupted, ReadOnly, SandboxUnavailable
from clew.tools.sandbox.levels import Isolation

OLDEST_PYTHON = (3, 11)
LOW_SPACE = 200_000_000
Level = Literal["ok", "note", "wrong"]


class CheckFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. `todo` is the next step, if there is one."""

    name: str
    level: Level
    what: str
    todo: str = ""


def ok(name: str, what: str) -> CheckFinding:
    return CheckFinding(name=name, level="ok", what=what)


def remark(name: str, what: str, todo: str = "") -> CheckFinding:
    return CheckFinding(name=name, level="note", what=what, todo=todo)


def wrong(name: str, what: str, todo: str) -> CheckFinding:
    return CheckFinding(name=name, level="wrong", what=what, todo=todo)


def check_installation(config: Config) -> Iterator[CheckFinding]:
    """Python, the packages that Clew needs, the engine, the embedder."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        yield wrong("python", f"{version} is too old", "Use Python 3.11 or newer")
    else:
        yield ok("python", version)
    yield _check_packages()
    import apsw  # only here: the engine's own version

    yield ok("sqlite", f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})")
    yield _check_embedder(config)


def check_isolation(found: Isolation | SandboxUnavailable, chosen: str = "auto") -> CheckFinding:
    """Report the isolation that the sandbox enforces on this machine, as tried. `chosen` is `adapters.sandbox`."""
    if isinstance(found, SandboxUnavailable):
        return wrong("isolation", found.message, found.hint)
    is_chosen = chosen in ("landlock", "none")
    better = "Set adapters.sandbox to auto" if is_chosen else "Install bubblewrap"
    held = "; ".join(f"{level.what}: {level.by}" for level in found.levels if level.enforced)
    what = f"{found.wall}, runs {', '.join(found.languages)} ({held})"
    if found.wall == "none":
        return remark("isolation", f"none: tools of others could reach everything ({held})", better)
    if found.missing:
        return remark(
            "isolation",
            f"{what}; not held: {', '.join(found.missing)}",
            f"{better}, or run Clew as an ordinary user",
        )
    if found.limits:
        limits = "; ".join(found.limits)
        return remark(
            "isolation", f"{what}; limits: {limits}", better if is_chosen else f"{better}, which has no such limits"
        )
    if "javascript" not in found.languages:
        return remark("isolation", f"{what}; no JavaScript", "Install Deno, or Clew with its extra deno")
    return ok("isolation", what)


def _check_packages() -> CheckFinding:
    needed = [line for line in metadata.requires("clew") or () if "extra ==" not in line]
    names = [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in needed if _applies(line)]
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        return wrong(
            "packages", f"missing: {', '.join(missing)}", "Install Clew again: pip install --force-reinstall clew"
        )
    return ok("packages", f"clew {metadata.version('clew')} with {len(names)} packages")


def _applies(requirement: str) -> bool:
    return not (sys.platform == "win32" and "sys_platform != " in requirement)


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _check_embedder(config: Config) -> CheckFinding:
    if config.embedder in ("hash", "none"):
        return remark("embedder", f"{config.embedder}: search finds words and spellings, not meanings")
    # the embedders import numpy
    from clew.llm import minilm, open_embedder, wordllama

    try:
        place = (minilm if config.embedder == "minilm" else wordllama).find_weights()
        opened = open_embedder(config.embedder)
    except ConfigError as error:
        return wrong("embedder", error.message, error.hint or "Choose another embedder in config.toml")
    return ok("embedder", f"{opened.name if opened else 'none'}, weights in {place}")


def check_folder(config: Config) -> Iterator[CheckFinding]:
    """The folder, its secrets' permissions, the space on its disk."""
    folder = config.folder
    if not folder.is_dir():
        yield remark("folder", f"{folder} does not exist yet", "`clew up` makes it")
        return
    yield _check_writing(folder)
    yield from _check_private(folder, trail_file(config))
    free = shutil.disk_usage(folder).free
    space = f"{free / 1e9:.1f} GB free"
    yield wrong("space", space, "Free some space on that disk") if free < LOW_SPACE else ok("space", space)


def _check_writing(folder: Path) -> CheckFinding:
    if not os.access(folder, os.W_OK | os.X_OK):
        return wrong("folder", f"{folder} cannot be written", "Give yourself permission: chmod u+rwx")
    try:
        check_own_files(folder)
    except ReadOnly as error:
        return wrong("folder", error.message, error.hint)
    return ok("folder", describe_folder(folder))


def _check_private(folder: Path, trail: Path | None) -> Iterator[CheckFinding]:
    """Check that files with credentials are readable by their owner only, and are not committed."""
    if tracked := tracked_keys(folder):
        names = ", ".join(tracked)
        removal = f"git rm --cached {' '.join(tracked)} in {folder}, then delete them: Clew makes new ones"
        yield wrong("keys", f"git tracks {names}: anybody with the repository can act as you", removal)
        return
    files = [folder / "keys" / "private.pem", folder / "credential"]
    files += [trail.with_name(trail.name + ".key")] if trail is not None else []
    present = [file for file in files if file.exists()]
    for file in present:
        mode = stat.S_IMODE(file.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            yield wrong("keys", f"{file} can be read by others ({mode:o})", f"chmod 600 {file}")
            return
    yield ok("keys", f"{count(len(present), 'private file')}, readable by you only" if present else "none yet")


def check_port(config: Config) -> Iterator[CheckFinding]:
    """Whether `clew up` could listen."""
    place = f"{config.server.host}:{config.server.port}"
    try:
        check_address(config.server.host, config.server.port)
        yield ok("port", f"{place} is free")
    except ConfigError:
        yield remark("port", f"{place} is in use", "Perhaps by `clew up` itself; otherwise use --port")


async def check_trail(config: Config) -> AsyncIterator[CheckFinding]:
    """Check the file of the trail, every checksum in it, and the index beside it."""
    file = trail_file(config)
    if file is not None and not file.exists():
        yield remark("trail", f"{file} does not exist yet", "`clew up` makes it")
        return
    try:
        async with open_app(config) as app:
            damage = await app.trail.upkeep.check()
            stats = await app.trail.upkeep.stats(by=app.me)
            engine = await app.trail.upkeep.examine()
            foreign = None if await app.ownership.holds() else await app.ownership.wish(by=app.me)
    except ClewError as error:
        yield wrong("trail", error.message, _next_step(error, file))
        return
    if foreign is not None:
        yield remark("trail", f"nothing runs on {foreign.summary}", "Look at it, then agree with `clew trust`")
    for at, line in enumerate(damage, 1):
        yield wrong("trail", line, _next_step(Corrupted(line), file) if at == len(damage) else "")
    if not damage:
        yield ok("trail", f"{_size(config)}, no damage; {stats.breadcrumbs:,} breadcrumbs that {config.owner} sees")
    for finding in engine:
        yield CheckFinding(name=finding.name, level=finding.level, what=finding.what, todo=finding.todo)
    if file is not None:
        yield _check_index(file)


def _check_index(file: Path) -> CheckFinding:
    folder = file.with_name(file.name + "-index")
    if not folder.is_dir():
        return ok("index", "not built yet; a search over many records builds it")
    return ok("index", f"{sum(each.stat().st_size for each in folder.iterdir()) / 1e6:.1f} MB, rebuilt when in doubt")


def _next_step(error: ClewError, file: Path | None) -> str:
    if not isinstance(error, Corrupted):
        return error.hint or "See the message"
    if file is None:
        return "End all processes that use it, and restore a copy: see the guide on backups"
    return f"End `clew up`, move {file} and {file}-wal aside, and put back a copy or `clew trail import` an export"


def _size(config: Config) -> str:
    file = trail_file(config)
    if file is not None:
        return f"{file} of {file.stat().st_size / 1e6:.1f} MB"
    return "in memory" if config.is_in_memory else "on a server"
