"""Fixtures for tests of the backend for PostgreSQL: a database for each test."""

from __future__ import annotations

import pytest

from tests.postgres_server import PostgresServer


@pytest.fixture
def address(postgres_address: str) -> str:
    return postgres_address


@pytest.fixture
def administrator(address: str, postgres_server: PostgresServer) -> str:
    """The address of the same database for a superuser."""
    return postgres_server.address(address.rsplit("/", 1)[1], "root")
