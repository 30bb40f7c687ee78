"""Sources of documents: local files, GitHub, ClickUp, Qase, warehouses, Google Drive.

`build_source` makes a source from plain settings. The modules of the sources are public as well.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from clew.catalog.resource import ContentSource
from clew.catalog.sources.local import LocalSettings, LocalSource
from clew.decode_errors import config_in_plain_words
from clew.errors import ConfigError

if TYPE_CHECKING:
    from clew.catalog.sources.http import Api, HttpReader

KINDS = ("local", "github", "clickup", "qase", "warehouse", "drive")
SECRET_OPTIONS = ("token", "password")
"""Options whose value is the name of a secret."""

S = TypeVar("S", bound=msgspec.Struct)


def build_source(
    kind: str, options: Mapping[str, Any], *, secrets: Mapping[str, str], base: Path | None = None
) -> ContentSource:
    """Build a source of this kind from the options of a configuration file.

    `secrets` holds the values of the secrets that `secret_names` names; relative file paths start at `base`, by default
    the working folder. Nothing is read yet. Raises ConfigError for an unknown kind or option, an invalid value, and a
    missing secret.
    """
    # Every command that answers imports this module, and most folders have local files only.
    base = base or Path()
    match kind:
        case "local":
            chosen = _settings(kind, LocalSettings, options)
            root = base / os.path.expanduser(chosen.root)
            return LocalSource(root, chosen.include, chosen.exclude, chosen.max_bytes)
        case "github":
            from clew.catalog.sources import github

            return _over_http(github.API, github.GithubSettings, github.GithubSource, options, secrets)
        case "clickup":
            from clew.catalog.sources import clickup

            return _over_http(clickup.API, clickup.ClickupSettings, clickup.ClickupSource, options, secrets)
        case "qase":
            from clew.catalog.sources import qase

            return _over_http(qase.API, qase.QaseSettings, qase.QaseSource, options, secrets)
        case "drive":
            from clew.catalog.sources import drive

            return _over_http(drive.API, drive.DriveSettings, drive.DriveSource, options, secrets)
        case "warehouse":
            from clew.catalog.sources.warehouse import WarehouseSettings, WarehouseSource

            settings = _settings(kind, WarehouseSettings, options)
            return WarehouseSource(settings, _secret(kind, "password", settings.password, secrets), base)
    raise _unknown(f"there is no source {kind!r}", kind, KINDS)


def secret_names(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the secrets that a source with these options needs."""
    return tuple(str(options[option]) for option in SECRET_OPTIONS if options.get(option))


def _over_http(
    api: Api,
    kind: type[S],
    build: Callable[[S, HttpReader], ContentSource],
    options: Mapping[str, Any],
    secrets: Mapping[str, str],
) -> ContentSource:
    """A source of an API, from its own options and those that all of them share."""
    from clew.catalog.sources.http import HttpReader, HttpSettings  # as in `build_source`

    shared = set(HttpSettings.__struct_fields__) - set(kind.__struct_fields__)
    known = (*kind.__struct_fields__, *shared)
    _check_names(api.source, options, known)
    own = _settings(api.source, kind, {name: options[name] for name in options if name not in shared})
    http = _settings(api.source, HttpSettings, {name: options[name] for name in options if name in shared})
    return build(own, HttpReader(api, http, token=_secret(api.source, "token", http.token, secrets)))


def _settings(source: str, kind: type[S], options: Mapping[str, Any]) -> S:
    _check_names(source, options, kind.__struct_fields__)
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        raise config_in_plain_words(error, kind, source, called="option") from None


def _check_names(source: str, options: Mapping[str, Any], known: Collection[str]) -> None:
    for name in options:
        if name not in known:
            raise _unknown(f"{source}: there is no option {name!r}", name, known)


def _secret(source: str, option: str, name: str, secrets: Mapping[str, str]) -> str:
    """The value of a named secret; empty when none is named."""
    if not name:
        return ""
    if name not in secrets:
        # The name is not repeated: it may be the secret itself, written where its name belongs.
        error = ConfigError(f"{source}: {option} names no secret that is there")
        error.hint = "It is the name of an environment variable, or of a secret written with `clew secret put`"
        raise error
    return secrets[name]


def _unknown(message: str, name: str, known: Collection[str]) -> ConfigError:
    close = difflib.get_close_matches(name, known, 1)
    error = ConfigError(message, choices=sorted(known))
    if close:
        error.hint = f"Did you mean {close[0]}?"
    return error
