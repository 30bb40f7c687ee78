"""The bus over a NATS server. It uses core NATS only: old notices are worthless, so the server need not store them.
Nothing depends on the connection. When it breaks, the bus reconnects with growing pauses, and then notifies its
listeners that notices may have been lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clew.background_tasks import log_failure
from clew.bus.notice import AGENTS, RECORDS, Hear, Notice
from clew.errors import ConfigError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

CONNECT_SECONDS = 2
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the next attempt to connect. They double each time, with a random part."""
PING_SECONDS = 10
MAX_WAITING = 10_000
"""Notices that wait to be sent; beyond that the oldest are dropped."""
CLOSE_SECONDS = 1.0
CANCEL_SECONDS = 0.1
"""Seconds until a task that has not ended is cancelled again."""
REFUSALS = ("authorization", "authentication", "permissions violation", "user authentication")

_log = logging.getLogger(__name__)
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Notice).decode


class BusLogin(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials of a client: a file of credentials, a user with a password, or a token."""

    file: Path | None = None
    secret: str = ""

    def options(self) -> dict[str, Any]:
        """The arguments of the client library."""
        if self.file is not None:
            return {"user_credentials": self.file}
        user, colon, password = self.secret.partition(":")
        if colon:
            return {"user": user, "password": password}
        return {"token": self.secret} if self.secret else {}


class NatsBus:
    """See `clew.bus.notice.Bus`. Made by `open_nats`."""

    is_shared = True

    def __init__(self, url: str, login: BusLogin, tls: ssl.SSLContext | None) -> None:
        self._url = url
        self._login = login
        self._tls = tls
        self._listeners: list[Hear] = []
        self._waiting: deque[Notice] = deque(maxlen=MAX_WAITING)
        self._has_work = asyncio.Event()
        self._client: Client | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._first: asyncio.Future[ConfigError | None] = asyncio.get_running_loop().create_future()
        """Done when the first attempt to connect has ended. Its result is the error if the server refused this client,
        else None."""

    @property
    def is_connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    def start(self) -> None:
        """Connect in the background, and keep connected from then on."""
        self._tasks = [asyncio.create_task(self._keep_connected()), asyncio.create_task(self._send())]
        for task in self._tasks:
            task.add_done_callback(log_failure)

    async def check(self) -> None:
        if (refused := await asyncio.shield(self._first)) is not None:
            raise refused

    def publish(self, notices: Sequence[Notice]) -> None:
        if self.is_connected or not self._first.done():
            self._waiting.extend(notices)
            self._has_work.set()

    def listen(self, hear: Hear) -> None:
        self._listeners.append(hear)

    async def close(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._waiting:
                    await asyncio.shield(self._first)
                await self._send_waiting()
                if self._client is not None and self._client.is_connected:
                    await self._client.flush(timeout=1)
        await _end(self._tasks)
        if not self._first.done():
            self._first.set_result(None)
        await self._disconnect()

    # -- the connection -----------------------------------------------------------------------------------

    async def _keep_connected(self) -> None:
        lost = asyncio.Event()
        await self._connect_first(lost)
        while True:
            await lost.wait()
            pause = FIRST_PAUSE
            while lost.is_set():
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_PAUSE)
                try:
                    await self._connect(lost)
                except (OSError, ConfigError) as error:
                    _log.info("the bus %s: %s", self._url, error)
            _log.warning("the bus %s answers again", self._url)
            self._hear(None)

    async def _connect_first(self, lost: asyncio.Event) -> None:
        """Make the first attempt to connect. If it succeeds, it notifies listeners that they may have missed
        notices."""
        try:
            await self._connect(lost)
        except (OSError, ConfigError) as error:
            refused = error if isinstance(error, ConfigError) else None
            why = str(refused) if refused is not None else f"the bus {self._url} does not answer ({error})"
            _log.warning("%s: work goes on by polling", why)
            self._waiting.clear()
            lost.set()
            self._first.set_result(refused)
        else:
            self._first.set_result(None)
            self._hear(None)

    async def _connect(self, lost: asyncio.Event) -> None:
        """Connect once. Raises OSError when there is no connection, ConfigError when it is refused."""
        from nats import errors  # an extra; `open_nats` has looked for it
        from nats.aio.client import Client

        await self._disconnect()
        client, failures = Client(), list[Exception]()

        async def note(error: Exception) -> None:
            failures.append(error)
            if client.is_connected:
                _log.info("the bus %s: %s", self._url, error)

        async def tell_lost() -> None:
            if self._client is client:
                _log.warning("the bus %s is lost: work goes on by polling", self._url)
                lost.set()

        try:
            await client.connect(
                self._url,
                error_cb=note,
                closed_cb=tell_lost,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT_SECONDS,
                ping_interval=PING_SECONDS,
                no_echo=True,
                name="clew",
                tls=self._tls,
                **self._login.options(),
            )
            await client.subscribe(RECORDS, cb=self._receive)
            await client.subscribe(AGENTS, cb=self._receive)
            await client.flush(timeout=CONNECT_SECONDS)
        except (OSError, errors.Error, TimeoutError) as error:
            await _close(client)
            raise _failure(self._url, failures[0] if failures else error) from None
        except asyncio.CancelledError:
            await _close(client)
            raise
        except Exception as error:  # the client raises errors of other libraries, such as those of a wrong seed
            await _close(client)
            raise ConfigError(
                f"the login of the bus {self._url} cannot be used ({type(error).__name__}): check bus.credentials"
            ) from None
        self._client = client
        lost.clear()

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _close(client)

    # -- notices ------------------------------------------------------------------------------------------

    async def _send(self) -> None:
        while True:
            await self._has_work.wait()
            await self._send_waiting()

    async def _send_waiting(self) -> None:
        from nats import errors  # an extra; `open_nats` has looked for it

        self._has_work.clear()
        while self._waiting and (client := self._client) is not None:
            notice = self._waiting.popleft()
            content = _encode(notice)
            try:
                for subject in notice.subjects:
                    await client.publish(subject, content)
            except (OSError, errors.Error) as error:  # the poll of the others finds it
                _log.info("the bus %s: a notice was dropped: %s", self._url, error)

    async def _receive(self, message: Msg) -> None:
        try:
            notice = _decode(message.data)
        except msgspec.MsgspecError:
            notice = None  # a notice of another version or program: treat it as a possible loss of notices
        self._hear(notice)

    def _hear(self, notice: Notice | None) -> None:
        for hear in self._listeners:
            hear(notice)


def open_nats(url: str, login: BusLogin, ca: Path | None = None) -> NatsBus:
    """Open a bus at `nats://HOST:PORT` or `tls://HOST:PORT`, several separated by commas. `ca` is a file with the
    certificates that the server's is checked with.

    It connects in the background. Raises ConfigError if the certificates cannot be read, and if the client
    library is missing.
    """
    try:
        import nats  # noqa: F401 -- an extra: most trails have one process
    except ImportError:
        raise ConfigError('a bus at nats:// needs the package nats-py: pip install "clew[nats]"') from None
    bus = NatsBus(url, login, _tls(url, ca))
    bus.start()
    return bus


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks repeatedly until they have ended, because a client that is connecting may swallow a cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        left = (await asyncio.wait(left, timeout=CANCEL_SECONDS))[1]


async def _close(client: Client) -> None:
    """Close a client. The timeout is for a client whose handshake failed: it would wait forever to send its pending
    data."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()


def _tls(url: str, ca: Path | None) -> ssl.SSLContext | None:
    if ca is None and not url.startswith("tls://"):
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"the certificates of the bus in {ca} cannot be read: {reason}") from None


def _failure(url: str, error: Exception) -> OSError | ConfigError:
    """Clew's error for one of the client library: ConfigError for a refusal, which the user must resolve, and OSError
    for errors that may be temporary."""
    text = " ".join(str(error).removeprefix("nats: ").strip("'").split()) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConfigError(f"the bus {url} has no certificate that is trusted ({error.verify_message}): check bus.ca")
    if any(each in text.lower() for each in REFUSALS):
        return ConfigError(f"the bus {url} refuses this client ({text}): check bus.credentials")
    return OSError(text)
