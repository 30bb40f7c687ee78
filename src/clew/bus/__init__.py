"""The bus: processes on one trail tell each other of their commits, so that nobody waits for the next poll.

A notice wakes, and nothing else: what is to be done is on the trail, and the claim there is the truth. A lost notice
costs one poll, a notice that comes twice or is forged costs one look. See docs/decisions/0029-the-bus-only-wakes.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import ConfigError

if TYPE_CHECKING:
    from clew.bus.notice import Bus

__all__ = ["open_bus"]

ADDRESSES = ("nats://HOST:PORT", "tls://HOST:PORT", "local")


async def open_bus(url: str, *, secret: str = "", credentials: Path | None = None, ca: Path | None = None) -> Bus:
    """Open a bus by its address: `nats://HOST:PORT`, `tls://HOST:PORT`, or `local` for this process alone.

    `secret` is `USER:PASSWORD` or a token, `credentials` a file of NATS. Raises ConfigError for an unknown address and
    where the server refuses this client; one that does not answer is tried again in the background.
    """
    match url.partition("://")[0]:
        case "nats" | "tls":
            from clew.bus.nats import Login, open_nats  # the client library is an extra

            return await open_nats(url, Login(file=credentials, secret=secret), ca)
        case "local":
            from clew.bus.local import LocalBus

            return LocalBus()
        case _:
            raise ConfigError(f"unknown bus address {url!r}", choices=ADDRESSES)
