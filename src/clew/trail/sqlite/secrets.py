"""Secrets on SQLite: sealed with AES-GCM under a key that lies beside the trail, readable by its owner only."""

from __future__ import annotations

from pathlib import Path

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.seal import Seal
from clew.trail.sqlite.engine import Engine, Writing


class SqliteSecrets:
    """See `clew.trail.store.Secrets`. The file and its copies are useless without `<trail>.key`."""

    def __init__(self, engine: Engine, key_file: Path) -> None:
        self._engine = engine
        self._seal = Seal(key_file)

    async def put(self, name: str, value: str, *, by: Principal) -> None:
        by.require("administer")
        sealed = self._seal.close(by.owner_id, name, value)

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
        return self._seal.open(by.owner_id, name, sealed)
