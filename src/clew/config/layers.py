"""Reads the settings of a folder: defaults < `config.py` < `config.toml` < `CLEW_*` environment < flags."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from clew.config.checks import (
    InvalidSetting,
    check_known,
    check_provider,
    check_role,
    check_servers,
    check_source,
    check_value,
)
from clew.config.folder import find_folder
from clew.config.model import KINDS, MODELS, PROVIDERS, SERVERS, SOURCES, AgentConfig, Config, ModelsConfig
from clew.errors import ConfigError
from clew.files import read_file
from clew.lazy_pattern import lazy_pattern

TOML = "config.toml"
PYTHON = "config.py"
MAX_BYTES = 1_000_000
"""The size of a file of settings."""
MAX_LINE, MAX_PROBLEMS = 10_000, 100
"""The maximum length of a line of config.toml, and the number of problems after which checking stops."""

_COMMENT = lazy_pattern(r"[ \t]*(?:#[^\x00-\x08\x0a-\x1f\x7f]*)?\r?")
"""A line of TOML that sets nothing."""

OriginKind = Literal["config.py", "config.toml", "environment", "flag"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a setting. `label` is a path, a variable or a flag; `text` is the content of config.toml."""

    kind: OriginKind
    label: str
    text: str = ""

    def place(self, path: tuple[str | int, ...]) -> str:
        """The place of a setting, with its line if it is known."""
        if not self.text:
            return self.label
        from clew.config.toml_lines import find_line  # for messages only

        line = find_line(self.text, path)
        return f"{self.label}:{line}" if line else self.label


class GivenSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting from any layer. A table of `[sources]`, `[providers]` and the like is one value."""

    origin: Origin
    path: tuple[str, ...]
    value: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def place(self, path: tuple[str | int, ...] = ()) -> str:
        return self.origin.place((*self.path, *path))


class ReadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a folder, the origin of each, and all problems."""

    config: Config
    given: dict[str, GivenSetting]
    problems: tuple[ConfigError, ...]


def read_config(
    folder: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Config:
    """The configuration of a folder, with environment and flags on top.

    The default folder is CLEW_FOLDER, or else the result of `find_folder` from the working folder. A variable names a
    setting with `_` for `.`: CLEW_SERVER_PORT is `server.port`. Raises ConfigError with the setting and its origin.
    """
    found = read_settings(folder, environ, flags)
    if found.problems:
        raise found.problems[0]
    return found.config


def read_settings(
    folder: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> ReadSettings:
    """As `read_config`, with all problems instead of an exception. Settings with a problem have their defaults."""
    environ = environ or {}
    named = folder or (Path(environ["CLEW_FOLDER"]) if environ.get("CLEW_FOLDER") else None)
    place = named or find_folder(Path.cwd())
    problems: list[ConfigError] = []
    layers = (
        lambda: _from_python(place),
        lambda: _from_toml(place / TOML),
        lambda: _from_environment(environ),
        lambda: _from_flags(flags or {}),
    )
    given = [each for layer in layers for each in _attempt(layer, problems)]
    config, known = build_config(given, problems)
    from_file = frozenset(name for name in known.keys() & KINDS.keys() if known[name].origin.kind == "config.toml")
    config = msgspec.structs.replace(config, folder=place, is_named=named is not None, from_file=from_file)
    return ReadSettings(config=config, given=known, problems=tuple(problems))


def build_config(given: Iterable[GivenSetting], problems: list[ConfigError]) -> tuple[Config, dict[str, GivenSetting]]:
    """The configuration from all valid settings, and the given settings by name. Later layers win."""
    settings: dict[str, Any] = {}
    known: dict[str, GivenSetting] = {}
    for each in given:
        try:
            _take(each, settings)
            known[each.name] = each
        except InvalidSetting as invalid:
            problems.append(_located(each, invalid))
            if len(problems) >= MAX_PROBLEMS:
                break
    try:
        _name_model(settings)
    except InvalidSetting as invalid:
        problems.append(_located(known["agent.model"], invalid))
    return msgspec.convert(settings, Config), known


def flatten(found: Mapping[str, Any], origin: Origin) -> Iterator[GivenSetting]:
    """The settings of a document: those of a section one by one, each named table as one value."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from (GivenSetting(origin=origin, path=(name, inner), value=each) for inner, each in value.items())
        else:
            yield GivenSetting(origin=origin, path=(name,), value=value)


def _take(given: GivenSetting, settings: dict[str, Any]) -> None:
    """Check a setting and add it to the others. Raises InvalidSetting."""
    section, inner = given.path[0], given.path[-1]
    if len(given.path) == 1:
        settings[section] = check_value(given.name, given.value)
        return
    if section == SOURCES:
        checked: Any = check_source(inner, given.value)
    elif section == PROVIDERS:
        checked = check_provider(inner, given.value)
    elif given.path == SERVERS:
        checked = check_servers(given.value)
    elif section == MODELS and given.name not in KINDS:
        _take_model(inner, given.value, settings.setdefault(MODELS, {}))
        return
    else:
        checked = check_value(given.name, given.value)
    settings.setdefault(section, {})[inner] = checked


def _take_model(inner: str, value: Any, models: dict[str, Any]) -> None:
    """A role of the user's own, or the tables of `[models.known]`."""
    if inner == "known" and isinstance(value, dict):
        models["known"] = {name: _known_model(name, table) for name, table in value.items()}
    else:
        models.setdefault("roles", {})[inner] = check_role(inner, value)


def _known_model(name: str, table: Any) -> Any:
    try:
        return check_known(name, table)
    except InvalidSetting as invalid:
        invalid.path = (name, *invalid.path)
        raise


def _name_model(settings: dict[str, Any]) -> None:
    """Copy `agent.model` to the entry of `[models]` under the agent's name. Raises InvalidSetting for another model."""
    agent = settings.get("agent", {})
    name, model = agent.get("name", AgentConfig().name), agent.get("model", "")
    if not model:
        return
    if name in ModelsConfig.__struct_fields__:
        raise InvalidSetting(f"agent.model is not for an agent called {name!r}, which is a role", f"Set models.{name}")
    roles = settings.setdefault(MODELS, {}).setdefault("roles", {})
    if roles.setdefault(name, model) != model:
        raise InvalidSetting(
            f"agent.model and models.{name} name two models for the agent {name!r}", "Keep one of them"
        )


def _located(given: GivenSetting, invalid: InvalidSetting) -> ConfigError:
    error = ConfigError(f"{given.place(invalid.path)}: {invalid.message}")
    error.hint = invalid.hint
    return error


def _attempt(layer: Callable[[], Iterator[GivenSetting]], problems: list[ConfigError]) -> list[GivenSetting]:
    try:
        return list(layer())
    except ConfigError as error:
        problems.append(error)
        return []


def _parse(text: str) -> dict[str, Any]:
    """The tables of a TOML file. Raises ValueError, RecursionError."""
    if all(map(_COMMENT.fullmatch, text.split("\n"))):
        return {}
    import tomllib  # late: most folders have a file of comments only, as Clew writes it

    return tomllib.loads(text)


def _from_toml(path: Path) -> Iterator[GivenSetting]:
    try:
        text = read_file(path, MAX_BYTES).decode("utf-8")
        _check_lines(path, text)
        found = _parse(text)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _error(f"{path} cannot be read: {error.strerror}", "Correct it, or remove it to start again") from None
    except RecursionError:
        raise ConfigError(f"{path} is not TOML: it is nested too deeply") from None
    except ValueError as error:  # of the TOML, of UTF-8, or of a number with thousands of digits
        is_repeated = "Cannot declare" in str(error) or "Cannot overwrite" in str(error)
        hint = "Two tables have one name: put all their settings below the first" if is_repeated else ""
        raise _error(f"{path} is not TOML: {error}", hint) from None
    yield from flatten(found, Origin(kind="config.toml", label=str(path), text=text))


def _check_lines(path: Path, text: str) -> None:
    """Raise ConfigError for a line so long that the parser would need minutes for its dotted keys."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            raise _error(f"{path}:{number} has over {MAX_LINE:,} characters", "Put the value on several lines")


def _from_python(folder: Path) -> Iterator[GivenSetting]:
    if not os.path.lexists(folder / PYTHON):
        return iter(())
    from clew.config.python_file import read_python  # for folders that have one

    return flatten(read_python(folder), Origin(kind="config.py", label=str(folder / PYTHON)))


def _from_environment(environ: Mapping[str, str]) -> Iterator[GivenSetting]:
    """CLEW_* variables that name a setting. Variables for other purposes (debugging, folder) are left alone."""
    for name in KINDS:
        variable = f"CLEW_{name.replace('.', '_')}".upper()
        if (value := environ.get(variable)) is not None:
            several = list(filter(None, value.split(","))) if KINDS[name] == tuple[str, ...] else value
            origin = Origin(kind="environment", label=variable)
            yield GivenSetting(origin=origin, path=tuple(name.split(".")), value=several)


def _from_flags(flags: Mapping[str, Any]) -> Iterator[GivenSetting]:
    for name, value in flags.items():
        if value is not None:
            origin = Origin(kind="flag", label=f"--{name.rpartition('.')[2]}")
            yield GivenSetting(origin=origin, path=tuple(name.split(".")), value=value)


def _error(message: str, hint: str) -> ConfigError:
    error = ConfigError(message)
    error.hint = hint
    return error
