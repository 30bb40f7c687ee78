"""A nats-server for the tests of the bus."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bus.nats_server import NatsServer


@pytest.fixture
def nats() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server
