"""Settings of `config.toml` that reach beyond their folder. The file comes with the folder, so they wait for the user's
consent; the same settings as a flag or an environment variable are the user's own."""

from __future__ import annotations

import logging
import os
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec

from clew.config import Config
from clew.config.layers import PYTHON
from clew.errors import ConfigError
from clew.secrecy import mask_secrets
from clew.trust import Trust, Wish, digest_parts, printable, real_folder

KIND = "setting"
_WEAK_WALLS = ("landlock", "none")
"""Sandboxes that may isolate less than the best sandbox of the machine."""
_log = logging.getLogger(__name__)


def setting_wishes(config: Config) -> list[Wish]:
    """The settings of the folder's config.toml that need consent, as wishes. The wish for config.py comes first, if
    there is one."""
    return [*_python_wishes(config), *_reaching_wishes(config)]


def _python_wishes(config: Config) -> list[Wish]:
    if not os.path.lexists(config.folder / PYTHON):
        return []
    from clew.config.python_file import python_wish  # for folders that have such a file

    wish = python_wish(config.folder)
    return [] if wish is None else [wish]


def _reaching_wishes(config: Config) -> list[Wish]:
    return [
        Wish(
            folder=real_folder(config.folder.absolute().parent),
            kind=KIND,
            name=name,
            digest=digest_parts([msgspec.json.encode(value, enc_hook=str)]),
            summary=printable(mask_secrets(f"{value!r}: {_REACHING[name]}")),
        )
        for name, value in _reaching(config).items()
    ]


def pending_settings(config: Config) -> list[Wish]:
    """The settings of config.toml that wait for the user's consent. Raises ConfigError."""
    wishes = _reaching_wishes(config)
    trust = Trust.open() if wishes else None
    return [each for each in wishes if trust is not None and not trust.holds(each)]


def confirm_settings(config: Config) -> Config:
    """The configuration without the settings that still wait for consent: each falls back to its default, with a
    warning. Raises ConfigError if the user has not agreed to the trail."""
    for wish in pending_settings(config):
        if wish.name == "trail":
            error = ConfigError(f"config.toml puts the trail outside of its folder: {wish.summary.partition(': ')[0]}")
            error.hint = "Agree to it with `clew trust trail`, or choose the trail yourself: CLEW_TRAIL"
            raise error
        _log.warning("%s in config.toml waits for your consent (`clew trust`); its default is used", wish.name)
        config = with_default(config, wish.name)
    return config


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_REACHING = {
    "server.host": "other machines can reach this address",
    "bus.url": "this server hears which records change, by id, schema and tags",
    "server.hosts": "web pages of these hosts can reach this server",
    "trail": "the trail is outside of this folder",
    "webhooks.allow": "webhooks can reach these networks",
    "adapters.sandbox": "tools run with less isolation than this machine has",
    "scripts.path": "promoted scripts are stored outside of this project",
}


def _reaching(config: Config) -> dict[str, Any]:
    """The settings that came from the file and reach beyond the folder, with their values."""
    found = {
        "server.host": "" if is_loopback(config.server.host) else config.server.host,
        "bus.url": config.bus.url,
        "server.hosts": config.server.hosts,
        "trail": config.trail if _is_outside(config) else "",
        "webhooks.allow": config.webhooks.allow,
        "adapters.sandbox": config.adapters.sandbox if config.adapters.sandbox in _WEAK_WALLS else "",
        "scripts.path": config.scripts.path if _leads_out(config) else "",
    }
    return {name: value for name, value in found.items() if value and name in config.from_file}


def _leads_out(config: Config) -> bool:
    """Whether `scripts.path` is outside the project."""
    project = os.path.realpath(config.folder.absolute().parent)
    file = os.path.realpath(os.path.join(project, os.path.expanduser(config.scripts.path)))
    return not Path(file).is_relative_to(project)


def _is_outside(config: Config) -> bool:
    file = config.trail_file
    if not config.trail or config.is_in_memory:
        return False
    inside = Path(os.path.realpath(config.folder))
    return file is None or not Path(os.path.realpath(file)).is_relative_to(inside)


def with_default(config: Config, name: str) -> Config:
    """The configuration with the default of one setting."""
    section, _, field = name.partition(".")
    if not field:
        return msgspec.structs.replace(config, **{name: getattr(Config(), name)})
    default = getattr(getattr(Config(), section), field)
    changed = msgspec.structs.replace(getattr(config, section), **{field: default})
    return msgspec.structs.replace(config, **{section: changed})
