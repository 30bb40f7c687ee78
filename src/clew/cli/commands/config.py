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

from clew.cli.checks.config_checks import ConfigProblem, find_problems
from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here, Json
from clew.cli.project import prepare_folder, write_schema
from clew.cli.terminal.output import agrees, can_ask, count, note, print_json, print_rows, say
from clew.config.layers import PYTHON, TOML, GivenSetting, ReadSettings, read_settings
from clew.config.model import KINDS, Config, PermissionsConfig
from clew.decode_errors import suggest
from clew.errors import ClewError, NotFound, ReadOnly
from clew.secrecy import MASK, mask_secrets
from clew.trail.config_consent import pending_settings, with_default
from clew.trust import Trust, printable

DEFAULT = "default"
WAITS = "waits for your consent: run `clew trust`"
TABLES = ("sources.", "providers.")
"""Settings that are shown as written, even while they wait for consent."""


class ShownSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting in force. `source` is default, config.py, config.toml, environment or flag. `place` is a file with
    its line, a variable or a flag. `pending` is the place of a value that waits for consent. For a list, `value` has
    the entries in force. A table is shown as written."""

    name: str
    value: Any
    source: str
    place: str = ""
    pending: str = ""


def show(
    *names: Annotated[str, Parameter(help="Only these settings or sections, such as server or server.port.")],
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the settings in force, and where each comes from.

    Values come from the defaults, from config.py, config.toml, CLEW_* variables and flags; later ones win. A value that
    waits for `clew trust` is not in force: its default is, and a list has its other entries. A table that waits is
    marked. Secrets are masked.

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
        _print_problems(problems)
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
            _print_problems(problems)
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


def _read(here: Here) -> ReadSettings:
    return read_settings(here.folder, os.environ, {"owner": here.owner})


def _settings(config: Config, given: Mapping[str, GivenSetting]) -> Iterator[ShownSetting]:
    """All settings by name, then the tables that were given."""
    pending = _find_pending(config)
    in_force = _without_pending(config, pending)
    for name in KINDS:
        yield _shown(name, _value_of(in_force, name), given.get(name), is_pending=name in pending)
    for name, each in given.items():
        if name not in KINDS:
            value = each.value
            if name == "mcp.servers":  # programs and addresses may hold secrets: see `clew mcp ls`
                value = [one.id for one in config.mcp.servers if one.id not in pending.get(name, ())]
            yield _shown(name, value, each, is_pending=name in pending)


def _find_pending(config: Config) -> dict[str, list[str]]:
    """The settings that wait for consent, each with the names that wait in it. Raises ConfigError."""
    # the catalog takes long to load
    from clew.catalog.consent.consent import DOMAIN, HOOK, SERVER, SOURCE, workspace_wishes
    from clew.llm.providers import provider
    from clew.tools.permissions import permission_settings

    lists = {
        DOMAIN: "catalog.domains",
        HOOK: "mcp.hooks",
        SERVER: "mcp.servers",
        permission_settings.KIND: "permissions.allow",
    }
    tables = {SOURCE: "sources", provider.WISH: "providers"}
    found: dict[str, list[str]] = {each.name: [] for each in pending_settings(config)}
    wishes = workspace_wishes(config)
    trust = Trust.open() if wishes else None
    servers = [each.id for each in config.mcp.servers]
    for wish in wishes:
        is_other = wish.kind == SERVER and wish.name not in servers  # of mcp.json
        if trust is not None and not is_other and not trust.holds(wish):
            name = lists.get(wish.kind) or f"{tables[wish.kind]}.{wish.name}"
            found.setdefault(name, []).append(wish.name)
    if servers and "mcp.hooks" in found:  # servers wait for all hooks
        found["mcp.servers"] = servers
    return found


def _without_pending(config: Config, pending: Mapping[str, Sequence[str]]) -> Config:
    """The configuration without the values that wait for consent: a list keeps its other entries, except `mcp.hooks`,
    which count all together."""
    from clew.tools.permissions.permission_settings import policy_of, rules_of  # tools are not for every command

    replace = msgspec.structs.replace
    permissions = config.permissions
    domains = tuple(
        each for each in config.catalog.domains if printable(each) not in pending.get("catalog.domains", ())
    )
    waiting = policy_of(permissions, is_granted="permissions.allow" not in pending).waiting
    allow = tuple(each for each in permissions.allow if rules_of(PermissionsConfig(allow=(each,)))[0] not in waiting)
    config = replace(
        config,
        catalog=replace(config.catalog, domains=domains),
        permissions=replace(permissions, allow=allow),
    )
    single = [name for name in pending if name in KINDS and name not in ("catalog.domains", "permissions.allow")]
    return reduce(with_default, single, config)


def _value_of(config: Config, name: str) -> Any:
    return reduce(getattr, name.split("."), config)


def _shown(name: str, value: Any, given: GivenSetting | None, *, is_pending: bool) -> ShownSetting:
    masked = _masked(name.rpartition(".")[2], value)
    if given is None:
        return ShownSetting(name=name, value=masked, source=DEFAULT)
    place = given.place()
    if not is_pending:
        return ShownSetting(name=name, value=masked, source=given.origin.kind, place=place)
    has_rest = name.startswith(TABLES) or (isinstance(masked, list) and bool(masked))
    if has_rest:
        return ShownSetting(name=name, value=masked, source=given.origin.kind, place=place, pending=place)
    return ShownSetting(name=name, value=masked, source=DEFAULT, pending=place)


def _masked(key: str, value: Any) -> Any:
    """A value without secrets."""
    from clew.catalog.servers.secret_references import is_secret, plain_address  # of the catalog, as above

    if isinstance(value, Mapping):
        return {name: _masked(name, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(key, each) for each in value]
    if not isinstance(value, str):
        return value
    is_named = value.startswith(("env:", "file:", "keyring:"))
    if not is_named and is_secret(key, value):
        return MASK
    return mask_secrets(plain_address(value) if "://" in value else value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) and value else msgspec.json.encode(value, enc_hook=str).decode()


def _origin(shown: ShownSetting) -> str:
    if shown.pending and shown.source == DEFAULT:
        return f"{DEFAULT} ({shown.pending} {WAITS})"
    if shown.pending:
        return f"{shown.place} ({'' if shown.name.startswith(TABLES) else 'partly '}{WAITS})"
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


def _print_problems(problems: Sequence[ConfigProblem]) -> None:
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
    """Run the editor and wait until it exits. Raises ClewError."""
    hint = "Set VISUAL or EDITOR to a program that is there"
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise ClewError(f"the editor {command[0]} cannot be started: {error.strerror}", hint=hint) from None
    if code:
        raise ClewError(f"the editor {command[0]} ended with exit code {code}", hint=f"{path} may not be saved")
