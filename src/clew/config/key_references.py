"""Keys of providers, and the login of the bus. The configuration only refers to a key. The key is read on first use and
kept only in memory."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from clew.config.model import KEY_HINT
from clew.errors import ConfigError
from clew.files import read_file

MAX_BYTES = 16_384
_log = logging.getLogger(__name__)


def read_key(reference: str, environ: Mapping[str, str], project: Path) -> str:
    """The key that a reference names: `env:NAME`, `file:PATH` (from the project, or below `~`) or
    `keyring:SERVICE/USER`. Raises ConfigError if there is no key; no error message contains any part of it."""
    scheme, _, place = reference.partition(":")
    match scheme:
        case "env":
            found = environ.get(place, "")
        case "file":
            found = _from_file(project / os.path.expanduser(place))
        case "keyring":
            found = _from_keyring(place)
        case _:
            raise _error("the key of a provider is not named", KEY_HINT)
    key = found.strip()
    if not key:
        raise _error(f"there is no key in {reference}", "Put it there, or name another place for it in config.toml")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise _error(f"the text in {reference} is not a key", "It must be one line of letters, digits and signs")
    return key


def _from_file(path: Path) -> str:
    try:
        content = read_file(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a path"
        raise _error(f"the key in {path} cannot be read: {reason}", "Check the path and its permissions") from None
    if len(content) > MAX_BYTES:
        raise _error(f"{path} is not a file with a key", f"A key has at most {MAX_BYTES:,} bytes")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        _log.warning("other users can read the key in %s: run chmod 600 on it", path)
    return content.decode("utf-8", "replace")


def _from_keyring(place: str) -> str:
    try:
        # an extra, whose backends are loaded with it
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise _error("keys from the keyring need the package keyring", "Install clew[keyring]") from None
    service, _, user = place.partition("/")
    try:
        return keyring.get_password(service, user) or ""
    except KeyringError as error:
        reason = f"the keyring of this system gives no key: {type(error).__name__}"
        raise _error(reason, "Unlock it, or use env:NAME or file:PATH") from None


def _error(message: str, hint: str) -> ConfigError:
    error = ConfigError(message)
    error.hint = hint
    return error
