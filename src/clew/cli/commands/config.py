"""`clew config`: show, check and edit the settings of a folder, and print their JSON Schema."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json, check_project
from clew.cli.project import prepare_folder, write_schema
from clew.cli.terminal.output import agrees, can_ask, count, note, print_json, print_rows, say
from clew.config.layers import PYTHON, TOML, GivenSetting, ReadSettings, read_settings
from clew.config.model import KINDS, Config
from clew.decode_errors import suggest
from clew.errors import ClewError, ConfigError, NotFound, ReadOnly
from clew.secrecy import MASK, mask_secrets
from clew.trail.config_consent import pending_settings, with_default

DEFAULT = "default"
WAITS = "waits for your consent: run `clew trust`"


class ShownSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting in force. `source` is default, config.py, config.toml, environment or flag; `place` is a file with
    its line, a variable or a flag; `pending` is the place of a value that waits for consent."""

    name: str
    value: Any
    source: str
    place: str = ""
    pending: str = ""


class ConfigProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with the settings, in words that name the place."""

    message: str
    hint: str = ""


def show(
    *names: Annotated[str, Parameter(help="Only these settings or sections, such as server or server.port.")],
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the settings in force, and where each comes from.

    Values come from the defaults, from config.py, config.toml, CLEW_* variables and flags; later ones win. A value that
    waits for `clew trust` is not in force: its default is. Secrets are masked.

        clew config show
        clew config show server models.default
        clew config show --json
    """
    config = here.config()
    found = _read(here)
    shown = list(_settings(config, found.given))
    _check_names(names, [each.name for each in shown])
    chosen = [each for each in shown if not names or any(_is_in(each.name, name) for name in names)]
    if json:
        print_json(chosen)
        return
    rows = [(each.name, _as_text(each.value), _origin(each)) for each in chosen]
    print_rows(("setting", "value", "from"), rows, main=1, spare=(2,))


def check(*, json: Json = False, here: Here = HERE) -> int:
    """List everything that is wrong with the settings.

    Looks at config.toml, config.py, the CLEW_* variables and mcp.json. Each problem is one line with its place. The
    exit code is 1 if there is one.

        clew config check
        clew config check --json
    """
    found = _read(here)
    problems = find_problems(found)
    if json:
        print_json({"problems": problems})
    else:
        _tell(problems)
    if not problems and not json:
        files = [name for name in (PYTHON, TOML) if (found.config.folder / name).exists()]
        place = found.config.folder.absolute()
        say(
            f"No problems: {count(len(found.given), 'setting')} from {place}"
            + (f" ({', '.join(files)})" if files else "")
        )
    return 1 if problems else 0


def edit(*, json: Json = False, here: Here = HERE) -> int:
    """Edit config.toml, and check it afterwards.

    Opens the file in your editor, VISUAL or EDITOR, and creates it first if it is missing. The exit code is 1 if
    something is wrong with the settings at the end.

        clew config edit
        EDITOR="code --wait" clew config edit
    """
    found = _read(here)
    folder = found.config.folder
    editor = _find_editor(folder / TOML)
    check_project(found.config)
    prepare_folder(folder)
    _renew_schema(folder)
    while True:
        _open_editor(editor, folder / TOML)
        problems = find_problems(_read(here))
        if json:
            print_json({"problems": problems})
        else:
            _tell(problems)
        if not problems:
            note("The settings are fine.")
            return 0
        if json or not (can_ask() and agrees("Edit it again?")):
            return 1


def schema() -> None:
    """Print the JSON Schema of config.toml.

    Editors read it from .clew/config.schema.json, which the first line of config.toml names: `#:schema`.

        clew config schema > config.schema.json
    """
    from clew.config.schema import render_schema  # for this command only

    sys.stdout.write(render_schema().decode())


def find_problems(found: ReadSettings) -> list[ConfigProblem]:
    """Everything that is wrong with settings, in the order of their layers."""
    told = [*found.problems, *_find_server_problems(found), *_find_missing_places(found)]
    return [ConfigProblem(message=each.message, hint=each.hint) for each in told]


def _find_server_problems(found: ReadSettings) -> Iterator[ConfigError]:
    from clew.catalog.servers.config import WHERE, servers_of  # the catalog takes long to load

    try:
        servers_of(found.config)
    except ConfigError as error:
        given = found.given.get("mcp.servers")
        ids = [each.id for each in found.config.mcp.servers]
        at = next(
            (number for number, id in enumerate(ids) if error.message.startswith(f"[[mcp.servers]] {id!r}")), None
        )
        if given is not None and at is not None:
            error.message = f"{given.place((at,))}: {error.message}"
            error.hint = "" if error.hint == WHERE else error.hint
        yield error


def _find_missing_places(found: ReadSettings) -> Iterator[ConfigError]:
    """Files and folders that settings name and that are not there."""
    project = found.config.folder.absolute().parent
    for name, path in (("skills.root", found.config.skills.root), ("rules.root", found.config.rules.root)):
        given = found.given.get(name)
        if given is not None and not (project / path).exists():
            error = ConfigError(f"{given.place()}: {name}: there is no {project / path}")
            error.hint = "Create it, or correct the path"
            yield error


def _read(here: Here) -> ReadSettings:
    return read_settings(here.folder, os.environ, {"owner": here.owner})


def _settings(config: Config, given: Mapping[str, GivenSetting]) -> Iterator[ShownSetting]:
    """All settings by name, then the tables that were given. A setting that waits for consent has its default."""
    pending = {each.name for each in pending_settings(config)}
    in_force = reduce(with_default, pending, config)
    for name in KINDS:
        value = in_force
        for part in name.split("."):
            value = getattr(value, part)
        yield _shown(name, value, given.get(name), is_pending=name in pending)
    for name, each in given.items():
        if name not in KINDS:
            yield _shown(name, each.value, each, is_pending=False)


def _shown(name: str, value: Any, given: GivenSetting | None, *, is_pending: bool) -> ShownSetting:
    if name == "mcp.servers":
        value = [each.get("id") for each in value]  # programs and addresses may hold secrets: see `clew mcp ls`
    masked = _masked(name.rpartition(".")[2], value)
    if given is None:
        return ShownSetting(name=name, value=masked, source=DEFAULT)
    if is_pending:
        return ShownSetting(name=name, value=masked, source=DEFAULT, pending=given.place())
    return ShownSetting(name=name, value=masked, source=given.origin.kind, place=given.place())


def _masked(key: str, value: Any) -> Any:
    """A value without secrets."""
    from clew.catalog.servers.secret_references import is_secret  # of the catalog, as above

    if isinstance(value, Mapping):
        return {name: _masked(name, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(key, each) for each in value]
    if not isinstance(value, str):
        return value
    is_named = value.startswith(("env:", "file:", "keyring:"))
    return MASK if not is_named and is_secret(key, value) else mask_secrets(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) and value else msgspec.json.encode(value, enc_hook=str).decode()


def _origin(shown: ShownSetting) -> str:
    if shown.pending:
        return f"{DEFAULT} ({shown.pending} {WAITS})"
    return shown.place or shown.source


def _is_in(setting: str, name: str) -> bool:
    return setting == name or setting.startswith(f"{name}.")


def _check_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Raises NotFound, with the name that was probably meant."""
    sections = dict.fromkeys(each.partition(".")[0] for each in known)
    for name in names:
        if not any(_is_in(each, name) for each in known):
            near = suggest(name, (*known, *sections), "").partition("?")[0]
            raise NotFound(
                "setting", name, hint=f"{near}?" if near.startswith("Did you") else "`clew config show` lists all"
            )


def _tell(problems: Sequence[ConfigProblem]) -> None:
    for each in problems:
        say(f"{each.message}. {each.hint}" if each.hint else each.message)
    if problems:
        note(f"{count(len(problems), 'problem')}.")


def _find_editor(path: Path) -> list[str]:
    """The command of the editor. Raises ClewError."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(chosen)
    except ValueError:
        command = []
    if not command:
        raise ClewError("there is no editor", hint=f"Set VISUAL or EDITOR, or edit {path} and run `clew config check`")
    return command


def _renew_schema(folder: Path) -> None:
    try:
        write_schema(folder)
    except OSError as error:
        raise ReadOnly(f"{folder} cannot be written: {error.strerror}") from None


def _open_editor(command: Sequence[str], path: Path) -> None:
    """Wait until the person has left the editor. Raises ClewError."""
    hint = "Set VISUAL or EDITOR to a program that is there"
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise ClewError(f"the editor {command[0]} cannot be started: {error.strerror}", hint=hint) from None
    if code:
        raise ClewError(f"the editor {command[0]} ended with exit code {code}", hint=f"{path} may not be saved")
