"""Search on PostgreSQL by a process that has no memory for the records: the tests of search, which then ask the server
for candidates."""

from __future__ import annotations

import pytest

from tests.conformance.test_search import *  # noqa: F403
from tests.conformance.test_search_freshness import *  # noqa: F403
from tests.conformance.test_search_order import *  # noqa: F403
from tests.conformance.test_vector_search import *  # noqa: F403

pytestmark = [pytest.mark.req("O2"), pytest.mark.req("BEY-07")]


@pytest.fixture
def address(postgres_address: str) -> str:
    return postgres_address


@pytest.fixture
def search_memory() -> int:
    return 0
