"""Checks of single settings and tables. A problem is an `InvalidSetting`; the reader adds the origin of the value."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Collection
from ipaddress import ip_network
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from clew.config.model import (
    CHOICES,
    EXAMPLE,
    KEY_HINT,
    KEY_REFERENCE,
    KINDS,
    LIMITS,
    MAX_PROVIDER_SECONDS,
    MAX_TTL_MINUTES,
    MODELS,
    PROVIDERS,
    SERVERS,
    SOURCES,
    KnownModel,
    ProviderConfig,
    SourceConfig,
)
from clew.config.server_entry import ConfiguredServer
from clew.decode_errors import in_plain_words, noun_of, suggest
from clew.lazy_pattern import lazy_pattern

RULE_ENDINGS = (".md", ".mdc", ".markdown", ".txt")
BUS = "nats://127.0.0.1:4222"
_HOOK = lazy_pattern(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_ABSENT = {
    "folder": "The folder is chosen by --folder or CLEW_FOLDER",
    SOURCES: "It is made of tables: write [sources.NAME] and a kind below",
    PROVIDERS: "It is made of tables: write [providers.NAME] and a kind below",
    "adapters.acp": "Clew does not serve ACP; `clew connect` adds its MCP server to an editor",
}
"""Hints for names that are not settings."""
_Table = TypeVar("_Table", bound=msgspec.Struct)


class InvalidSetting(Exception):
    """A value that cannot be used. `path` locates the value within the setting, such as a key of a table."""

    def __init__(self, message: str, hint: str = "", path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path


def check_value(name: str, value: Any) -> Any:
    """The value as the type of its setting. Raises InvalidSetting."""
    if name not in KINDS:
        raise InvalidSetting(f"there is no setting {name!r}", _nearest(name))
    try:
        converted = msgspec.convert(value, KINDS[name], strict=False)
        least, greatest = LIMITS.get(name, (None, None))
        if least is not None and greatest is not None and not least <= converted <= greatest:
            raise ValueError
    except ValueError:  # of which msgspec's own error is one
        raise InvalidSetting(f"{name} must be {_meant(name)}, not {value!r}") from None
    if name in CHOICES and converted not in CHOICES[name]:
        raise InvalidSetting(f"there is no {name} {converted!r}", suggest(converted, CHOICES[name], "Choose one of"))
    if check := _CHECKS.get(name):
        check(name, converted)
    return converted


def check_source(name: str, table: Any) -> SourceConfig:
    """A table `[sources.NAME]`. By default its domain has the same name as the table. Raises InvalidSetting."""
    place = f"[{SOURCES}.{name}]"
    if not isinstance(table, dict):
        raise InvalidSetting(f"{place} must be a table with at least a kind")
    if "kind" not in table:
        raise InvalidSetting(f"{place} has no kind, such as local or github")
    own = {field for field in SourceConfig.__struct_fields__ if field != "options"}
    given = {key: value for key, value in table.items() if key in own}
    options = {key: value for key, value in table.items() if key not in own}
    found = _convert(place, {"domain": name, **given, "options": options}, SourceConfig)
    if not 0 <= found.ttl_minutes <= MAX_TTL_MINUTES:
        reason = f"must be from 0 to {MAX_TTL_MINUTES:,}, not {found.ttl_minutes}"
        raise InvalidSetting(f"{place} ttl_minutes {reason}", path=("ttl_minutes",))
    return found


def check_provider(name: str, table: Any) -> ProviderConfig:
    """A table `[providers.NAME]`. A value that looks like an API key itself is refused, and the error does not contain
    it. Raises InvalidSetting."""
    place = f"[{PROVIDERS}.{name}]"
    found = _convert(place, table, ProviderConfig)
    if found.key and not KEY_REFERENCE.fullmatch(found.key):
        raise InvalidSetting(f"{place} key must be a reference to the key, not the key itself", KEY_HINT, ("key",))
    if found.base_url and not _is_plain_url(found.base_url):
        reason = "base_url must be an http or https address without a password or a query"
        raise InvalidSetting(f"{place} {reason}", "For example " + EXAMPLE, ("base_url",))
    if not 0.001 <= found.timeout_seconds <= MAX_PROVIDER_SECONDS:
        reason = f"must be from 0.001 to {MAX_PROVIDER_SECONDS:,}, not {found.timeout_seconds}"
        raise InvalidSetting(f"{place} timeout_seconds {reason}", path=("timeout_seconds",))
    return found


def check_known(name: str, table: Any) -> KnownModel:
    """A table `[models.known.NAME]`. Raises InvalidSetting."""
    return _convert(f"[{MODELS}.known.{name}]", table, KnownModel)


def check_role(name: str, value: Any) -> str:
    """A role of the user's own in `[models]`. Raises InvalidSetting."""
    if name == "known":
        raise InvalidSetting(f"{MODELS}.known must be tables", f"Write [{MODELS}.known.NAME] and its settings below")
    if not isinstance(value, str) or name == "roles":
        raise InvalidSetting(f"{MODELS}.{name} must be text", 'Write role = "provider:model"')
    return value


def check_servers(tables: Any) -> tuple[ConfiguredServer, ...]:
    """The tables `[[mcp.servers]]`, as far as this is possible without the catalog. Raises InvalidSetting."""
    name = ".".join(SERVERS)
    if not isinstance(tables, list | tuple):
        raise InvalidSetting(
            f"{name} must be a list of tables", "Write [[mcp.servers]] and an id below, once for each server"
        )
    found: list[ConfiguredServer] = []
    for number, table in enumerate(tables):
        try:
            one = _convert(f"[[{name}]]", table, ConfiguredServer)
        except InvalidSetting as invalid:
            invalid.path = (number, *invalid.path)
            raise
        if one.id in {each.id for each in found}:
            raise InvalidSetting(f"[[{name}]] id {one.id!r} is there twice", "Rename one", (number, "id"))
        found.append(one)
    return tuple(found)


def _convert(place: str, table: Any, kind: type[_Table]) -> _Table:
    if not isinstance(table, dict):
        raise InvalidSetting(f"{place} must be a table of settings")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, kind, "it", called="setting")
        inner = tuple(wrong.field.split(".")[:1]) if wrong.field != "it" else ()
        raise InvalidSetting(f"{place} {wrong.field} {wrong.reason}", wrong.hint, inner) from None


def _is_plain_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_bare = parts.username is None and parts.password is None and not any(each in url for each in " ?#")
    return is_whole and is_bare and url.isprintable()


def _meant(name: str) -> str:
    """The allowed values of a setting, in words."""
    kind = noun_of(KINDS[name])
    return f"{kind} from {LIMITS[name][0]} to {LIMITS[name][1]}" if name in LIMITS else kind


def _nearest(name: str) -> str:
    """The advice for a setting that does not exist."""
    if name in _ABSENT:
        return _ABSENT[name]
    if any(known.startswith(f"{name}.") for known in KINDS):
        return f"It is a section: write [{name}] and its settings below"
    last = name.rpartition(".")[2]
    return _guess(name, [known for known in KINDS if known.rpartition(".")[2] == last] or KINDS)


def _guess(given: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(given, known, 1, cutoff=0.6 if len(known) > 1 else 0.0)
    return f"Did you mean {close[0]}?" if close else f"Choose one of: {', '.join(known)}"


def _check_networks(name: str, networks: tuple[str, ...]) -> None:
    for number, network in enumerate(networks):
        try:
            ip_network(network)
        except ValueError:
            raise InvalidSetting(f"{name}: {network!r} is not a network such as 10.0.0.0/8", path=(number,)) from None


def _check_agent(name: str, value: str) -> None:
    if not value.strip():
        raise InvalidSetting(f"{name} is empty", "`clew agents` lists the names of agents")


def _check_below(name: str, value: str) -> None:
    parts = value.replace("\\", "/").split("/")
    if not value.strip() or posixpath.isabs(value) or ":" in parts[0] or ".." in parts or parts[0] == "~":
        raise InvalidSetting(f"{name} must be a path below the project, not {value!r}", "Nothing outside of it is read")


def _check_rules(name: str, value: str) -> None:
    _check_below(name, value)
    if not value.lower().endswith(RULE_ENDINGS):
        raise InvalidSetting(f"{name} must be a text file, not {value!r}", f"It ends with {', '.join(RULE_ENDINGS)}")


def _check_hooks(name: str, hooks: tuple[str, ...]) -> None:
    for number, each in enumerate(hooks):
        if not _HOOK.fullmatch(each):
            raise InvalidSetting(f"{name}: {each!r} is not module:name", "For example hooks:masking", (number,))


def _check_bus(name: str, value: str) -> None:
    for each in filter(None, value.split(",")):
        try:
            parts = urlsplit(each)
            is_whole = parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_whole = False
        if not is_whole or not each.isprintable() or " " in each:
            raise InvalidSetting(
                f"{name} must be the address of a NATS server, not {value.rpartition('@')[2]!r}", "For example " + BUS
            )
        if parts.username is not None:
            raise InvalidSetting(
                f"{name} must not hold a login", "Name its place in bus.credentials: env:NAME or file:PATH"
            )


def _check_reference(name: str, value: str) -> None:
    if value and not KEY_REFERENCE.fullmatch(value):
        raise InvalidSetting(f"{name} must be a reference to the login, not the login itself", KEY_HINT)


def _check_path(name: str, value: str) -> None:
    if not value.strip() or "\0" in value:
        raise InvalidSetting(f"{name} must be the path of a file, not {value!r}")


_CHECKS: dict[str, Any] = {
    "bus.url": _check_bus,
    "bus.credentials": _check_reference,
    "webhooks.allow": _check_networks,
    "agent.name": _check_agent,
    "skills.root": _check_below,
    "rules.root": _check_rules,
    "mcp.hooks": _check_hooks,
    "scripts.path": _check_path,
}
