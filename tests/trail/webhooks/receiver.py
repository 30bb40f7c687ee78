"""A real receiver of webhooks, and a sender on a real trail."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Consumer, ConsumerState, Webhook
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.webhooks import WebhookSender
from tests.handlers import PATIENCE, PAUSE, look_again

LOCAL = ("127.0.0.0/8",)
SECRET = "s3cret-ünïcode"
ANN = Principal(owner_id="ann")
BOB = Principal(owner_id="bob")


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """An HTTP server on a local port with scripted raw answers that records its requests."""

    answers: list[bytes] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    arrived: asyncio.Queue[Request] = field(default_factory=asyncio.Queue)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                request = Request(path=first.split()[1], headers=headers, body=body)
                self.requests.append(request)
                self.arrived.put_nowait(request)
                answer = self.answers.pop(0) if self.answers else reply(200)
                if answer == b"hang":
                    await self.release.wait()
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def next(self) -> Request:
        async with asyncio.timeout(PATIENCE):
            return await self.arrived.get()


def reply(status: int, body: bytes = b"", extra: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body


@asynccontextmanager
async def open_receiver(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(answers=list(answers))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
        receiver.release.set()


@dataclass
class RunningSender:
    sender: WebhookSender
    trail: Trail
    clock: ManualClock
    outcomes: list[str]
    told: asyncio.Queue[str]

    async def outcome(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self.told.get()

    async def state(self, name: str = "hook", by: Principal = ANN) -> ConsumerState:
        return next(each for each in await self.trail.deliveries.consumers(by=by) if each.consumer.name == name)

    async def until(self, holds: Callable[[ConsumerState], bool], name: str = "hook") -> ConsumerState:
        async with asyncio.timeout(PATIENCE):
            while not holds(state := await self.state(name)):
                await asyncio.sleep(PAUSE)
            return state

    async def later(self) -> None:
        """Let every retry come due, once nothing is under way."""
        await self.until(lambda state: state.claimed == 0)
        self.clock.advance(hours=1)
        await look_again(self.trail)


@asynccontextmanager
async def open_sender(
    trail: Trail, clock: ManualClock, *, owners: Sequence[Principal] = (ANN,), **options: object
) -> AsyncIterator[RunningSender]:
    outcomes: list[str] = []
    told: asyncio.Queue[str] = asyncio.Queue()

    def on_delivery(outcome: str, seconds: float) -> None:
        outcomes.append(outcome)
        told.put_nowait(outcome)

    async def present_owners() -> Sequence[Principal]:
        return owners

    settings: dict[str, object] = {
        "allow": LOCAL,
        "on_delivery": on_delivery,
        **options,
    }
    sender = WebhookSender(trail, owners=present_owners, clock=clock, worker_id="w1", **settings)  # type: ignore[arg-type]  # options from tests
    running = asyncio.create_task(sender.run())
    try:
        yield RunningSender(sender, trail, clock, outcomes, told)
    finally:
        sender.stop()
        async with asyncio.timeout(PATIENCE):
            await running


def hook(receiver: Receiver, *, name: str = "hook", selector: Selector | None = None) -> Consumer:
    return Consumer(
        name=name,
        selector=selector or Selector(schema_name="note.v1"),
        webhook=Webhook(url=f"http://127.0.0.1:{receiver.port}/in?x=1", secret="hook"),
    )


def note(text: str = "hello", *tags: str) -> Draft:
    return Draft(title="Note", schema_name="note.v1", tags=tags, context={"text": text})
