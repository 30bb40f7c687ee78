"""A provider: its address, its protocol, and the location of its key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from clew.config import EXAMPLE, Config, ProviderConfig
from clew.decode_errors import suggest
from clew.errors import ModelError
from clew.llm.model_catalogue import Preset, ProviderKind, shipped
from clew.secrecy import MASK, mask_secrets
from clew.trust import Trust, Wish, digest_parts, printable, real_folder

WISH = "provider"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a provider. `preset` is the known provider that it is based on, or empty. With an empty `key`, no
    key is sent."""

    name: str
    kind: ProviderKind
    base_url: str
    key: str = ""
    preset: str = ""
    timeout_seconds: float = 120.0


def find_provider(name: str, config: Config, environ: Mapping[str, str]) -> Provider:
    """A provider by the name of its table or preset. Raises ModelError for an unknown name, an unknown kind, a table
    without an address, or an address in a variable that has a query."""
    table = config.providers.get(name)
    if table is None and name not in shipped().providers:
        known = [*config.providers, *shipped().providers]
        raise ModelError("config", f"there is no provider {name!r}", hint=suggest(name, known, "Providers are"))
    preset_name = _preset_name(name, table)
    if table is not None and not preset_name and table.kind != "openai-compatible":
        hint = suggest(table.kind, ["openai-compatible", *shipped().providers], "Kinds are")
        raise ModelError("config", f"[providers.{name}] has the unknown kind {table.kind!r}", hint=hint)
    preset, given = shipped().providers.get(preset_name), table or ProviderConfig()
    usual = _usual_address(name, preset, environ) if preset is not None else ""
    if not given.base_url and not usual:
        raise ModelError("config", f"[providers.{name}] has no base_url", hint=f"Give its address, as {EXAMPLE}")
    return Provider(
        name=name,
        kind=preset.kind if preset is not None else "openai-compatible",
        base_url=given.base_url or usual,
        key=given.key or (preset.key if preset is not None else ""),
        preset=preset_name,
        timeout_seconds=given.timeout_seconds,
    )


def _usual_address(name: str, preset: Preset, environ: Mapping[str, str]) -> str:
    """The address of a preset, or the address in the user's variable. It must not have a query, because paths are
    appended to it."""
    given = environ.get(preset.address_variable, "")
    if any(each in given for each in "?#"):
        reason = f"the address of {name} in {preset.address_variable} has a query"
        raise ModelError("config", reason, hint=f"Leave it out, and put the key where {preset.key} says")
    return given or preset.base_url


def _preset_name(name: str, table: ProviderConfig | None) -> str:
    """Return the preset of a table: the preset of its kind, else the preset with the table's name; empty if there is
    none."""
    kind = name if table is None or table.kind == "openai-compatible" else table.kind
    return kind if kind in shipped().providers else ""


def provider_wish(name: str, table: ProviderConfig, project: Path) -> Wish | None:
    """Return the wish of a table `[providers.NAME]`: the address that gets conversations, and the key sent with them.

    None for a table that keeps the address and the key of its preset. All other addresses need consent, even on this
    machine, because another program may listen there.
    """
    preset = shipped().providers.get(_preset_name(name, table))
    key = table.key or (preset.key if preset is not None else "")
    is_moved = bool(table.base_url) and (preset is None or not _is_same_host(table.base_url, preset.base_url))
    is_other_key = bool(table.key) and (preset is None or table.key != preset.key)
    if not is_other_key and not is_moved:
        return None
    address = table.base_url or (preset.base_url if preset is not None else "")
    sent = f"sends conversations, with the key in {_shown(key)}," if key else "sends conversations"
    return Wish(
        folder=real_folder(project),
        kind=WISH,
        name=printable(name).strip() or "''",
        digest=digest_parts([json.dumps([name, table.kind, address, key]).encode()]),
        summary=printable(f"{sent} to {_shown(address) or 'nowhere'}"),
    )


def provider_wishes(config: Config, project: Path) -> list[Wish]:
    """The wishes of all tables `[providers.NAME]`."""
    found = (provider_wish(name, table, project) for name, table in config.providers.items())
    return [each for each in found if each is not None]


def check_consent(name: str, config: Config, trust: Trust | None = None) -> None:
    """Raises ModelError for a provider of the folder that the user has not agreed to."""
    table = config.providers.get(name)
    wish = provider_wish(name, table, config.folder.absolute().parent) if table is not None else None
    if wish is not None and not (trust or Trust.open()).holds(wish):
        reason = f"you have not agreed that the provider {wish.name} of this folder {wish.summary}"
        raise ModelError("config", reason, hint="Agree with `clew trust`, or use another model")


def _shown(text: str) -> str:
    return text if mask_secrets(text) == text else MASK


def _is_same_host(one: str, other: str) -> bool:
    return _host(one) == _host(other)


def _host(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def is_loopback(url: str) -> bool:
    """Whether an address is of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
