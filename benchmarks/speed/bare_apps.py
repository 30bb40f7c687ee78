"""The yardsticks for REST: a FastAPI and a Starlette + msgspec application that store one JSON row in sqlite3, with the
trail's durability and without anything else: no owners, no tokens, no search, no events.

Usage: python -m speed.bare_apps fastapi|fastapi-async|starlette FILE. Prints its address, and ends when its standard
input ends. FastAPI is there with its database calls in threads and in the event loop: which of them is faster depends
on the disk.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import uvicorn

from speed.durable import connect

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, title TEXT NOT NULL, context TEXT NOT NULL,"
    " tags TEXT NOT NULL, schema_name TEXT, version INTEGER NOT NULL, created_at REAL NOT NULL) WITHOUT ROWID"
)


class Rows:
    """The table, with a connection for each thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._connection.execute(SCHEMA)

    @property
    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = connect(self._path)
        return found

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


def build_fastapi(rows: Rows, *, in_loop: bool = False) -> Any:
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

    def create(body: Any) -> Any:
        id, now = rows.insert(body.title, json.dumps(body.context), json.dumps(body.tags), body.schema_name)
        return Record(**body.model_dump(), id=id, version=1, created_at=now)

    def read(id: str) -> Any:
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

    async def create_in_loop(body: Any) -> Any:
        return create(body)

    async def read_in_loop(id: str) -> Any:
        return read(id)

    app, post, get = FastAPI(), create_in_loop if in_loop else create, read_in_loop if in_loop else read
    # the classes are of this scope, where FastAPI cannot find them by name
    post.__annotations__ = {"body": NewRecord, "return": Record}
    get.__annotations__ = {"id": str, "return": Record}
    app.post("/breadcrumbs", status_code=201)(post)
    app.get("/breadcrumbs/{id}")(get)
    return app


class NewRow(msgspec.Struct):
    """The request body of the Starlette application; fields that it only stores are not decoded."""

    title: str
    context: msgspec.Raw
    tags: msgspec.Raw
    schema_name: str | None = None


def build_starlette(rows: Rows) -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    decode, encode = msgspec.json.Decoder(NewRow).decode, msgspec.json.Encoder().encode

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


APPLICATIONS: dict[str, Callable[[Rows], Any]] = {
    "fastapi": build_fastapi,
    "fastapi-async": partial(build_fastapi, in_loop=True),
    "starlette": build_starlette,
}


def end_with_input() -> None:
    """End when the parent process has ended."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    kind, file = sys.argv[1:]
    build = APPLICATIONS[kind]
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
