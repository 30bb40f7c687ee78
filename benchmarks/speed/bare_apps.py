"""The yardsticks for REST: a FastAPI and a Starlette + msgspec application that store one JSON row in sqlite3, with the
trail's durability and without anything else: no owners, no tokens, no search, no events.

Usage: python -m speed.bare_apps fastapi|starlette FILE. Prints where it answers, ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn

from speed.bare_sqlite import connect

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, title TEXT NOT NULL, context TEXT NOT NULL,"
    " tags TEXT NOT NULL, schema_name TEXT, version INTEGER NOT NULL, created_at REAL NOT NULL) WITHOUT ROWID"
)


class Rows:
    """One connection, used from the event loop: handing each statement to a thread made both applications slower."""

    def __init__(self, path: Path) -> None:
        self._connection: sqlite3.Connection = connect(path)
        self._connection.execute(SCHEMA)

    def insert(self, title: str, context: str, tags: str, schema_name: str | None) -> tuple[str, float]:
        id, now = str(uuid4()), time.time()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, 1, ?)", (id, title, context, tags, schema_name, now)
        )
        self._connection.execute("COMMIT")
        return id, now

    def fill(self, rows: list[tuple[str, str, str, str]]) -> None:
        """Write rows beforehand, all at once."""
        self._connection.execute("BEGIN IMMEDIATE")
        sql = "INSERT INTO records VALUES (?, ?, ?, ?, 'note.v1', 1, 0)"
        self._connection.executemany(sql, rows)
        self._connection.execute("COMMIT")

    def find(self, id: str) -> Any:
        sql = "SELECT title, context, tags, schema_name, version, created_at FROM records WHERE id = ?"
        return self._connection.execute(sql, (id,)).fetchone()

    def close(self) -> None:
        self._connection.close()


def build_fastapi(rows: Rows) -> Any:
    from fastapi import FastAPI, HTTPException
    from pydantic import BaseModel

    class NewRecord(BaseModel):
        title: str
        context: dict[str, Any]
        tags: list[str] = []
        schema_name: str | None = None

    class Record(NewRecord):
        id: str
        version: int
        created_at: float

    app = FastAPI()

    async def create(body: NewRecord) -> Record:
        id, now = rows.insert(body.title, json.dumps(body.context), json.dumps(body.tags), body.schema_name)
        return Record(**body.model_dump(), id=id, version=1, created_at=now)

    async def read(id: str) -> Record:
        row = rows.find(id)
        if row is None:
            raise HTTPException(404)
        title, context, tags, schema_name, version, created_at = row
        return Record(
            id=id,
            title=title,
            context=json.loads(context),
            tags=json.loads(tags),
            schema_name=schema_name,
            version=version,
            created_at=created_at,
        )

    # types of a nested scope: FastAPI resolves names in the module, so it is given the objects themselves
    create.__annotations__ = {"body": NewRecord, "return": Record}
    read.__annotations__ = {"id": str, "return": Record}
    app.post("/breadcrumbs", status_code=201)(create)
    app.get("/breadcrumbs/{id}")(read)
    return app


def build_starlette(rows: Rows) -> Any:
    import msgspec
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    new_record = msgspec.defstruct(
        "NewRecord",
        [("title", str), ("context", msgspec.Raw), ("tags", msgspec.Raw), ("schema_name", str | None, None)],
    )
    decode, encode = msgspec.json.Decoder(new_record).decode, msgspec.json.Encoder().encode

    async def create(request: Request) -> Response:
        body = decode(await request.body())
        id, now = rows.insert(body.title, bytes(body.context).decode(), bytes(body.tags).decode(), body.schema_name)
        return answer(id, (body.title, body.context, body.tags, body.schema_name, 1, now), 201)

    async def read(request: Request) -> Response:
        id = request.path_params["id"]
        row = rows.find(id)
        if row is None:
            return Response(status_code=404)
        title, context, tags, *rest = row
        return answer(id, (title, msgspec.Raw(context.encode()), msgspec.Raw(tags.encode()), *rest), 200)

    def answer(id: str, row: tuple[Any, ...], status: int) -> Response:
        title, context, tags, schema_name, version, created_at = row
        record = {
            "id": id,
            "title": title,
            "context": context,
            "tags": tags,
            "schema_name": schema_name,
            "version": version,
            "created_at": created_at,
        }
        return Response(encode(record), status, media_type="application/json")

    routes = [Route("/breadcrumbs", create, methods=["POST"]), Route("/breadcrumbs/{id}", read, methods=["GET"])]
    return Starlette(routes=routes)


class Server(uvicorn.Server):
    """Says where it answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets is not None
        print(json.dumps({"url": f"http://127.0.0.1:{sockets[0].getsockname()[1]}"}), flush=True)


def end_with_input() -> None:
    """End when whoever started this is gone, however it ended."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    kind, file = sys.argv[1:]
    build = {"fastapi": build_fastapi, "starlette": build_starlette}[kind]
    threading.Thread(target=end_with_input, daemon=True).start()
    config = uvicorn.Config(
        build(Rows(Path(file))), http="httptools", loop="none", lifespan="off", log_config=None, access_log=False
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=2_048)
    # here and not at the top: importing this module for its rows alone needs no other event loop
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
