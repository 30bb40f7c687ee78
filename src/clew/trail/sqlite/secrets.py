"""Secrets on SQLite: sealed with AES-GCM under a key that lies beside the trail, readable by its owner only."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from clew.access import Principal
from clew.errors import InvalidInput, NotFound, StorageError, TooLarge
from clew.lazy_pattern import lazy_pattern
from clew.trail.sqlite.engine import Engine, Writing

MAX_VALUE = 64_000
KEY_BYTES = 32
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class SqliteSecrets:
    """See `clew.trail.store.Secrets`. The file and its copies are useless without `<trail>.key`."""

    def __init__(self, engine: Engine, key_file: Path) -> None:
        self._engine = engine
        self._key_file = key_file

    async def put(self, name: str, value: str, *, by: Principal) -> None:
        by.require("administer")
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
        sealed = self._seal(plain, self._label(by.owner_id, name))

        def work(writing: Writing) -> None:
            writing.execute(
                "INSERT OR REPLACE INTO secrets VALUES (?, ?, ?, ?)", (by.owner_id, name, sealed, writing.now)
            )

        await self._engine.write(work)

    async def names(self, *, by: Principal) -> list[str]:
        by.require("administer")
        sql = "SELECT name FROM secrets WHERE owner_id = ? ORDER BY name"
        return self._engine.read(lambda connection: [name for (name,) in connection.execute(sql, (by.owner_id,))])

    async def drop(self, name: str, *, by: Principal) -> None:
        by.require("administer")

        def work(writing: Writing) -> None:
            writing.execute("DELETE FROM secrets WHERE owner_id = ? AND name = ?", (by.owner_id, name))
            if not writing.connection.changes():
                raise NotFound("secret", name)

        await self._engine.write(work)

    async def reveal(self, name: str, *, by: Principal) -> str:
        by.require("administer")
        sql = "SELECT sealed FROM secrets WHERE owner_id = ? AND name = ?"
        sealed = self._engine.read(lambda connection: connection.execute(sql, (by.owner_id, name)).get)
        if sealed is None:
            raise NotFound("secret", name)
        return self._open(sealed, self._label(by.owner_id, name)).decode()

    def _seal(self, value: bytes, label: bytes) -> bytes:
        # cryptography takes 50 ms to import and most trails hold no secret
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(12)
        return nonce + AESGCM(self._key()).encrypt(nonce, value, label)

    def _open(self, sealed: bytes, label: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # see _seal
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._key()).decrypt(sealed[:12], sealed[12:], label)
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
        """The file appears whole or not at all; whoever links it first wins."""
        draft = self._key_file.with_name(f".{self._key_file.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(os.urandom(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, self._key_file)
        finally:
            draft.unlink(missing_ok=True)

    @staticmethod
    def _label(owner_id: str, name: str) -> bytes:
        return f"{owner_id}\x00{name}".encode()
