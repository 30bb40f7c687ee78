"""Authentication with a server: the `auth` of its entry in `.clew/mcp.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from clew.catalog.servers.value_references import FromEnv, FromSecret, parse_value, written_value
from clew.decode_errors import config_in_plain_words
from clew.errors import ConfigError

AuthType = Literal["oauth", "bearer", "none"]
Grant = Literal["authorization_code", "client_credentials"]

_REFERENCES = ("token", "client_secret", "private_key")


class Auth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Authentication settings. Every secret is a reference. With `oauth` and no token from a hook, `clew mcp login`
    asks the user to log in. The grant `client_credentials` needs no user, but a client, its credentials, and the
    issuer."""

    type: AuthType = "none"
    client_id: str = ""
    token: FromEnv | FromSecret | None = None
    client_secret: FromEnv | FromSecret | None = None
    private_key: FromEnv | FromSecret | None = None
    client_metadata_url: str = ""
    issuer: str = ""
    grant: Grant = "authorization_code"
    scopes: tuple[str, ...] = ()
    redirect_port: int = 0

    @property
    def asks_user(self) -> bool:
        """Whether a person has to log in before a call."""
        return self.type == "oauth" and self.grant == "authorization_code"


class _WrittenAuth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that hold no reference."""

    type: str = ""
    client_id: str = ""
    client_metadata_url: str = ""
    issuer: str = ""
    grant: str = "authorization_code"
    scopes: tuple[str, ...] = ()
    redirect_port: int = 0


def parse_auth(given: Mapping[str, Any], place: str) -> Auth:
    """Raises ConfigError naming the key."""
    for key in given:
        if key not in Auth.__struct_fields__:
            raise ConfigError(f"{place}: auth.{key[:40]} is not a setting", choices=Auth.__struct_fields__)
    try:
        plain = msgspec.convert({key: each for key, each in given.items() if key not in _REFERENCES}, _WrittenAuth)
    except msgspec.ValidationError as error:
        raise config_in_plain_words(error, _WrittenAuth, f"{place}: auth") from None
    found = {
        **msgspec.to_builtins(plain),
        **{key: _parse_reference(given[key], f"{place}: auth.{key}") for key in _REFERENCES if key in given},
        "type": plain.type or ("bearer" if "token" in given else "none"),
        "scopes": plain.scopes,
    }
    auth = Auth(**found)
    _check(auth, place)
    return auth


def written_auth(auth: Auth) -> dict[str, Any]:
    """The settings as written in the file, without defaults."""
    written: dict[str, Any] = msgspec.to_builtins(auth)
    return written | {key: written_value(getattr(auth, key)) for key in _REFERENCES if getattr(auth, key) is not None}


def _parse_reference(given: Any, place: str) -> FromEnv | FromSecret:
    value = parse_value(given, place)
    if isinstance(value, str):
        raise ConfigError(
            f'{place} has the value itself; write a reference: {{"$env": "NAME"}} or {{"$secret": "NAME"}}'
        )
    return value


def _check(auth: Auth, place: str) -> None:
    for key, choices in (("type", get_args(AuthType)), ("grant", get_args(Grant))):
        if getattr(auth, key) not in choices:
            raise ConfigError(f"{place}: auth.{key} {getattr(auth, key)[:40]!r} is unknown", choices=choices)
    if not 0 <= auth.redirect_port <= 65_535:
        raise ConfigError(f"{place}: auth.redirect_port {auth.redirect_port} must be from 0 to 65535")
    if auth.client_metadata_url and not auth.client_metadata_url.startswith("https://"):
        raise ConfigError(f"{place}: auth.client_metadata_url must begin with https://")
    if auth.issuer and urlsplit(auth.issuer).scheme not in ("http", "https"):
        raise ConfigError(f"{place}: auth.issuer must begin with http:// or https://")
    if auth.grant == "client_credentials":
        _check_credentials(auth, place)


def _check_credentials(auth: Auth, place: str) -> None:
    for key in ("client_id", "issuer"):
        if not getattr(auth, key):
            raise ConfigError(f"{place}: the grant client_credentials needs auth.{key}")
    if (auth.client_secret is None) == (auth.private_key is None):
        raise ConfigError(f"{place}: the grant client_credentials needs auth.client_secret or auth.private_key")
