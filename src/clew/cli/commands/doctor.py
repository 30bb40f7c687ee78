"""`clew doctor`: checks the installation, the folder, the trail, the catalog and the agents."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from clew.cli.checks.agent_checks import check_agents
from clew.cli.checks.catalog_checks import check_catalog
from clew.cli.checks.folder_checks import (
    CheckFinding,
    check_folder,
    check_installation,
    check_isolation,
    check_port,
    check_trail,
)
from clew.cli.checks.telemetry_checks import check_telemetry
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import GREEN, RED, YELLOW, count, is_terminal, note, one_line, paint, print_json
from clew.cli.terminal.progress import progress
from clew.config import Config
from clew.errors import ConfigError, SandboxUnavailable
from clew.tools.sandbox import open_sandbox
from clew.tools.sandbox.levels import Isolation, find_levels
from clew.trail.config_consent import pending_settings

_MARKS = {"ok": ("ok", GREEN), "note": ("note", YELLOW), "wrong": ("WRONG", RED)}


async def doctor(*, json: Json = False, here: Here = HERE) -> int:
    """Check the installation, the folder and its trail.

    Reads the whole trail: the file's structure and the checksum of every version. Domains are loaded, and sources and
    servers looked up, without starting any. The provider of the default model is asked for its list of models, which
    costs nothing. The exit code is 1 when something is wrong; each problem comes with the next step.

        clew doctor
        clew doctor --folder backup/.clew --json
    """
    found = []
    config = _read_config(here)
    chosen = _chosen_sandbox(config)
    isolation = await _try_isolation(chosen)
    with _printer(silent=json) as tell:
        async for finding in _examine(config, check_isolation(isolation, chosen)):
            found.append(finding)
            tell(finding)
    problems = sum(finding.level == "wrong" for finding in found)
    if json:
        tried = isolation if isinstance(isolation, Isolation) else None
        print_json({"healthy": not problems, "findings": found, "isolation": tried})
    elif problems:
        note(f"clew: {problems} of {len(found)} checks found something wrong")
    elif is_terminal():
        remarks = sum(finding.level == "note" for finding in found)
        note("Nothing is wrong." if not remarks else f"Nothing is wrong; {count(remarks, 'note')} above.", dim=True)
    return 1 if problems else 0


def _read_config(here: Here) -> Config | ConfigError:
    try:
        return here.config()
    except ConfigError as error:
        return error


def _chosen_sandbox(config: Config | ConfigError) -> str:
    """The sandbox of the settings; auto if it waits for consent or the settings cannot be read."""
    if isinstance(config, ConfigError):
        return "auto"
    try:
        pending = [each.name for each in pending_settings(config)]
    except ConfigError:  # the check of the grants reports it
        return "auto"
    return "auto" if "adapters.sandbox" in pending else config.adapters.sandbox


async def _try_isolation(chosen: str) -> Isolation | SandboxUnavailable:
    try:
        return await find_levels(open_sandbox(production=False, wall=chosen))
    except SandboxUnavailable as error:
        return error


async def _examine(config: Config | ConfigError, isolation: CheckFinding) -> AsyncIterator[CheckFinding]:
    if isinstance(config, ConfigError):
        todo = config.hint or "Correct that setting"
        yield CheckFinding(name="config", level="wrong", what=config.message, todo=todo)
        return
    for finding in check_installation(config):
        yield finding
    yield isolation
    source = config.folder / "config.toml"
    yield CheckFinding(name="config", level="ok", what=str(source) if source.exists() else "defaults")
    for check in (check_folder, check_port):
        for finding in check(config):
            yield finding
    for look in (check_trail, check_catalog, check_agents, check_telemetry):
        async for finding in look(config):
            yield finding


@contextmanager
def _printer(*, silent: bool) -> Iterator[Callable[[CheckFinding], None]]:
    """A printer of findings, above a progress sign."""
    if silent:
        yield lambda finding: None
        return
    with progress("Checking every record") as shown:

        def tell(finding: CheckFinding) -> None:
            shown.clear()
            mark, style = _MARKS[finding.level]
            todo = f" → {finding.todo}" if finding.todo else ""
            text = f"{finding.name:<10} {one_line(finding.what + todo)}"
            sys.stdout.write(f"{paint(f'{mark:<6}', style)}{text}\n")

        yield tell
