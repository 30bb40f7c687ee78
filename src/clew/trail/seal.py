"""The seal of secrets: AES-GCM under a key in a file that its owner alone can read."""

from __future__ import annotations

import os
from pathlib import Path

from clew.errors import InvalidInput, StorageError, TooLarge
from clew.files import write_once
from clew.lazy_pattern import lazy_pattern

MAX_VALUE = 64_000
KEY_BYTES = 32
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class Seal:
    """Seals the secrets of a trail. Sealed secrets are useless without the file."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def close(self, owner_id: str, name: str, value: str) -> bytes:
        """Check a secret and seal it for its owner and name. Raises InvalidInput."""
        if not _NAME.fullmatch(name):
            raise InvalidInput("name", "must be letters, digits and . _ - (at most 100)")
        if not value:
            raise InvalidInput("value", "is empty")
        if len(value) > MAX_VALUE:
            raise TooLarge("value", len(value), MAX_VALUE, "characters")
        try:
            plain = value.encode()
        except UnicodeEncodeError:
            raise InvalidInput("value", "holds half of a surrogate pair, which is not Unicode text") from None
        # cryptography takes 50 ms to import and most trails hold no secret
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(12)
        return nonce + AESGCM(self._key()).encrypt(nonce, plain, _label(owner_id, name))

    def open(self, owner_id: str, name: str, sealed: bytes) -> str:
        """The secret that was sealed. Raises StorageError when it was sealed with another key."""
        from cryptography.exceptions import InvalidTag  # see close
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._key()).decrypt(sealed[:12], sealed[12:], _label(owner_id, name)).decode()
        except InvalidTag:
            raise StorageError(
                "a secret cannot be opened", hint=f"Is {self._key_file} the key that it was sealed with?"
            ) from None

    def _key(self) -> bytes:
        """The sealing key, made on first use with permissions for its owner alone."""
        if not self._key_file.exists():
            self._make_key()
        key = self._key_file.read_bytes()
        if len(key) != KEY_BYTES:
            raise StorageError(f"{self._key_file} is not a key", hint="Restore it from a copy: secrets need it")
        return key

    def _make_key(self) -> None:
        write_once(self._key_file, os.urandom(KEY_BYTES))


def copy_key(source: Path, target: Path) -> None:
    """Copy the key of a trail to the place where the moved trail needs it. Raises StorageError if another key is
    there."""
    key = source.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    write_once(target, key)
    if target.read_bytes() != key:
        raise StorageError(
            f"{target} is the key of another trail", hint="Move it aside, or choose another place for the trail"
        )


def _label(owner_id: str, name: str) -> bytes:
    return f"{owner_id}\x00{name}".encode()
