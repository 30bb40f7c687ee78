"""One frozen `Config`, parsed once at a door: defaults < `.clew/config.toml` < `CLEW_*` environment < flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec

from clew.errors import ConfigError

FOLDER = ".clew"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The REST door. `max_body` is in bytes; `queue` is how many writes may wait before callers are told to
    come back."""

    host: str = "127.0.0.1"
    port: int = 8081
    max_body: int = 8_000_000
    queue: int = 10_000
    token_minutes: int = 60


class HygieneConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sweeper: how often it runs, and after how many days an unseen agent is idle."""

    enabled: bool = True
    every_seconds: float = 300.0
    idle_days: float = 7.0


class WebhookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`allow` names networks (such as 10.0.0.0/8) that webhooks may reach although they are not public."""

    allow: tuple[str, ...] = ()
    timeout_seconds: float = 10.0


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. `folder` is where the trail and its keys live."""

    folder: Path = Path(FOLDER)
    trail: str = ""
    owner: str = "local"
    embedder: str = "wordllama"
    server: ServerConfig = ServerConfig()
    hygiene: HygieneConfig = HygieneConfig()
    webhooks: WebhookConfig = WebhookConfig()

    @property
    def trail_url(self) -> str:
        return self.trail or f"sqlite://{self.folder / 'trail.db'}"


def read_config(
    folder: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Config:
    """The configuration of a folder, with environment and flags on top.

    A variable names a setting with `_` for `.`: CLEW_SERVER_PORT is `server.port`. Raises ConfigError naming the
    setting and where it came from.
    """
    environ = environ or {}
    home = Path(folder or environ.get("CLEW_FOLDER") or FOLDER)
    settings = _read_file(home / "config.toml")
    for section, values in _from_environment(environ).items():
        settings[section] = {**settings.get(section, {}), **values} if isinstance(values, dict) else values
    for dotted, value in (flags or {}).items():
        if value is not None:
            _set(settings, dotted, value)
    settings.pop("folder", None)
    try:
        config = msgspec.structs.replace(msgspec.convert(settings, Config, strict=False), folder=home)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{home / 'config.toml'} or CLEW_*: {error}") from None
    return _checked(config)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """CLEW_* variables as nested settings. Variables for other purposes (keys, folder) are left alone."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(Config):
        kind = field.type
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            for inner in msgspec.structs.fields(kind):
                value = environ.get(f"CLEW_{field.name}_{inner.name}".upper())
                if value is not None:
                    _set(found, f"{field.name}.{inner.name}", value.split(",") if inner.name == "allow" else value)
        elif (value := environ.get(f"CLEW_{field.name}".upper())) is not None and field.name != "folder":
            found[field.name] = value
    return found


def _set(settings: dict[str, Any], dotted: str, value: Any) -> None:
    *sections, name = dotted.split(".")
    for section in sections:
        settings = settings.setdefault(section, {})
    settings[name] = value


def _checked(config: Config) -> Config:
    if not 0 <= config.server.port <= 65535:
        raise ConfigError(f"server.port {config.server.port} is not a port")
    for network in config.webhooks.allow:
        try:
            ip_network(network)
        except ValueError:
            raise ConfigError(f"webhooks.allow: {network!r} is not a network such as 10.0.0.0/8") from None
    return config
