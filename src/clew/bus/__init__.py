"""The bus: processes on one trail tell each other of their commits, so that nobody waits for the next poll.

A notice wakes, and nothing else: what is to be done is on the trail, and the claim there is the truth. A lost notice
costs one poll, a notice that comes twice or is forged costs one look. See docs/decisions/0029-the-bus-only-wakes.md.
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
    paths begin at the project.

    It connects in the background, again and again where no server answers; `Bus.check` waits for the first attempt.
    Raises ConfigError for an unknown address and where the login or the client library is missing.
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
    """The trail on the bus of the settings, and that bus; the trail itself where no other process hears it. Raises
    ConfigError, with the trail closed."""
    from clew.bus.trail import BusTrail  # with `open_bus` alone it is not needed

    try:
        bus = await open_bus(settings, project)
    except BaseException:
        await trail.close()
        raise
    return (BusTrail(trail, bus), bus) if bus.is_shared else (trail, None)
