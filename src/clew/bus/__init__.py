"""The bus: processes that use one trail notify each other of their commits, so that no worker waits for the next poll.
A notice only wakes workers. The work itself is on the trail, and claims there are the source of truth. A lost notice
costs one poll; a repeated or forged notice costs one read. See docs/decisions/0029-the-bus-only-wakes.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from clew.config import BusConfig
from clew.config.key_references import read_key
from clew.errors import ConfigError

if TYPE_CHECKING:
    from clew.bus.notice import Bus
    from clew.trail.store import Trail

__all__ = ["join_bus", "open_bus"]

ADDRESSES = ("nats://HOST:PORT", "tls://HOST:PORT", "local")


async def open_bus(settings: BusConfig, project: Path) -> Bus:
    """Open the bus of the settings: `nats://HOST:PORT`, `tls://HOST:PORT`, or `local` for this process alone. Relative
    paths start at the project. The bus connects in the background and retries until a server answers; `Bus.check` waits
    for the first attempt. Raises ConfigError for an unknown address, and if the login or the client library is missing.
    """
    match settings.url.partition("://")[0]:
        case "nats" | "tls":
            from clew.bus.nats import BusLogin, open_nats  # the client library is an extra

            named = settings.credentials
            place = project / Path(named.removeprefix("file:")).expanduser()
            is_file = named.startswith("file:") and place.suffix == ".creds"
            secret = read_key(named, os.environ, project) if named and not is_file else ""
            ca = project / Path(settings.ca).expanduser() if settings.ca else None
            return open_nats(settings.url, BusLogin(file=place if is_file else None, secret=secret), ca)
        case "local":
            from clew.bus.local import LocalBus

            return LocalBus()
        case _:
            raise ConfigError(f"unknown bus address {settings.url!r}", choices=ADDRESSES)


async def join_bus(trail: Trail, settings: BusConfig, project: Path) -> tuple[Trail, Bus | None]:
    """Connect a trail to the bus of the settings. Returns the connected trail and the bus, or the unchanged trail and
    None if the bus is not shared with other processes. If opening the bus fails, the trail is closed. Raises
    ConfigError."""
    from clew.bus.trail import BusTrail  # with `open_bus` alone it is not needed

    try:
        bus = await open_bus(settings, project)
    except BaseException:
        await trail.close()
        raise
    return (BusTrail(trail, bus), bus) if bus.is_shared else (trail, None)
