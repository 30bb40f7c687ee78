"""Secrets on PostgreSQL: sealed with AES-GCM under a key that the server never sees."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.transactions import WriteTransaction
from clew.trail.seal import Seal
from clew.trust import user_file


def key_file_of(trail_id: str) -> Path:
    """The file with the key of a trail on a server: beside the other files of the user."""
    return user_file().with_name(f"trail-{trail_id}.key")


class PostgresSecrets:
    """See `clew.trail.store.Secrets`. The key lies beside the other files of the user, named after the trail. Every
    machine whose processes work with secrets needs a copy."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine

    @cached_property
    def _seal(self) -> Seal:
        key_file = key_file_of(self._engine.trail_id)
        key_file.parent.mkdir(parents=True, exist_ok=True)
        return Seal(key_file)

    async def put(self, name: str, value: str, *, by: Principal) -> None:
        by.require("administer")
        sealed = self._seal.close(by.owner_id, name, value)

        def work(writing: WriteTransaction) -> None:
            writing.send(
                "INSERT INTO secrets VALUES (%s, %s, %s, %s) ON CONFLICT (owner_id, name)"
                " DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at",
                (by.owner_id, name, sealed, writing.now),
            )

        await self._engine.write(work, by=by)

    async def names(self, *, by: Principal) -> list[str]:
        by.require("administer")
        sql = "SELECT name FROM secrets WHERE owner_id = %s ORDER BY name"
        rows = await self._engine.read(lambda reading: reading.rows(sql, (by.owner_id,)), by=by)
        return [name for (name,) in rows]

    async def drop(self, name: str, *, by: Principal) -> None:
        by.require("administer")
        sql = "DELETE FROM secrets WHERE owner_id = %s AND name = %s"
        if not await self._engine.write(lambda writing: writing.run(sql, (by.owner_id, name)), by=by):
            raise NotFound("secret", name)

    async def reveal(self, name: str, *, by: Principal) -> str:
        by.require("administer")
        sql = "SELECT sealed FROM secrets WHERE owner_id = %s AND name = %s"
        sealed = await self._engine.read(lambda reading: reading.value(sql, (by.owner_id, name)), by=by)
        if sealed is None:
            raise NotFound("secret", name)
        return self._seal.open(by.owner_id, name, sealed)
