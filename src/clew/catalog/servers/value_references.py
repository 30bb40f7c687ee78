"""References to values in a file: `{"$env": NAME}`, `{"$secret": NAME}` and `${NAME}` inside a text.

They are looked up when a server is started, never before, so that no record, log or repr can hold them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from clew.errors import ConfigError, NotFound
from clew.lazy_pattern import lazy_pattern

Reveal = Callable[[str], Awaitable[str]]
"""From the name of a secret to its value. Raises NotFound."""

_VARIABLE = lazy_pattern(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")


class FromEnv(msgspec.Struct, frozen=True):
    """The value of an environment variable."""

    name: str


class FromSecret(msgspec.Struct, frozen=True):
    """A value that the trail keeps; `clew secret` writes it."""

    name: str


Value = str | FromEnv | FromSecret


def parse_value(given: Any, place: str) -> Value:
    """Raises ConfigError for a value that is neither text nor a reference."""
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and len(given) == 1:
        kind, name = next(iter(given.items()))
        if kind in ("$env", "$secret") and isinstance(name, str) and _NAME.fullmatch(name):
            return FromEnv(name) if kind == "$env" else FromSecret(name)
    raise ConfigError(f'{place} must be text, {{"$env": "NAME"}} or {{"$secret": "NAME"}}')


def written_value(value: Value) -> Any:
    """A value as written in the file."""
    match value:
        case FromEnv(name):
            return {"$env": name}
        case FromSecret(name):
            return {"$secret": name}
        case _:
            return value


async def resolve(value: Value, place: str, environ: Mapping[str, str], reveal: Reveal) -> str:
    """The value behind a reference. Raises ConfigError for a variable or secret that is not set."""
    match value:
        case FromEnv(name):
            return _variable(name, None, place, environ)
        case FromSecret(name):
            try:
                return await reveal(name)
            except NotFound:
                raise ConfigError(f"{place}: the secret {name} is not set; put it with `clew secret`") from None
        case text:
            return _VARIABLE.sub(lambda found: _variable(found.group(1), found.group(2), place, environ), text)


def _variable(name: str, default: str | None, place: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name, default)
    if value is None:
        raise ConfigError(f"{place}: the environment variable {name} is not set")
    return value
