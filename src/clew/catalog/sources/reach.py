"""The reach of a configured source beyond its project: secrets, chosen hosts, files elsewhere. All of these need the
user's consent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.catalog.servers.secret_references import is_secret
from clew.catalog.sources import SECRET_OPTIONS, clickup, drive, github, qase
from clew.catalog.sources.http import Api
from clew.catalog.sources.url_checks import is_same_place
from clew.catalog.sources.warehouse import dialect_of, shown_url, sqlite_path
from clew.errors import ConfigError, DeliveryRefused
from clew.secrecy import MASK
from clew.trail.work.webhook_addresses import WebhookTarget, parse_target

_APIS: dict[str, Api] = {api.source: api for api in (github.API, clickup.API, qase.API, drive.API)}


def reach_of(kind: str, options: Mapping[str, Any], project: Path) -> list[str]:
    """Describe, without secrets, what a source with these options reaches beyond the project and its own service; empty
    if it reaches nothing else. Reads nothing. Invalid options are ignored, since the source cannot be built."""
    texts = {name: value for name, value in options.items() if isinstance(value, str) and value}
    return [*_hosts(kind, texts), *_files(kind, texts, project), *_secrets(texts)]


def place_of(kind: str, options: Mapping[str, Any], project: Path) -> str:
    """The real path of the folder or file that a source reads, with links resolved; empty if it reads none."""
    given = ""
    if kind == "local":
        given = str(options.get("root", ""))
    elif kind == "warehouse" and _dialect(str(options.get("url", ""))) == "sqlite":
        given = sqlite_path(str(options["url"]))
    try:
        return os.path.realpath(project / os.path.expanduser(given)) if given else ""
    except ValueError:  # no system has a path like this
        return ""


def _hosts(kind: str, options: Mapping[str, str]) -> Iterator[str]:
    if kind == "warehouse" and _dialect(options.get("url", "")) not in ("", "sqlite"):
        own = "" if options.get("password") else ", with your PGPASSWORD if it is set"
        yield f"connects to the database {shown_url(options['url'])}{own}"
    if kind in _APIS and (target := _other_host(_APIS[kind], options.get("base_url", ""))) is not None:
        yield f"contacts {target.scheme}://{target.authority} in place of {parse_target(_APIS[kind].base_url).host}"


def _files(kind: str, options: Mapping[str, str], project: Path) -> Iterator[str]:
    place = place_of(kind, options, project)
    if place and not Path(place).is_relative_to(os.path.realpath(project)):
        yield f"reads {'the files below' if kind == 'local' else 'the tables of'} {place}, outside of this folder"


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    for option in SECRET_OPTIONS:
        if name := options.get(option):
            # the value may be the secret itself, written where its name belongs
            yield f"sends the variable or secret {MASK if is_secret('', name) else name} as its {option}"


def _other_host(api: Api, base_url: str) -> WebhookTarget | None:
    """The address of an API if it is not the usual one."""
    try:
        target = parse_target(base_url)
    except DeliveryRefused:
        return None
    return None if is_same_place(parse_target(api.base_url), target) else target


def _dialect(url: str) -> str:
    try:
        return dialect_of(url)
    except ConfigError:
        return ""
