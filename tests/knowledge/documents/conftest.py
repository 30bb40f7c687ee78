"""A search over all domains, and a library of one owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.documents.research import Library
from clew.knowledge.history.decisions import Decisions
from clew.knowledge.search_domains import SearchDomains
from clew.trail.store import Trail
from tests.knowledge.code_in_memory import Code, NoCommits
from tests.knowledge.documents.sample_documents import OpenLibrary


@pytest.fixture
def domains(trail: Trail) -> SearchDomains:
    code = Code({"retry_request": "def retry_request backoff for requests that failed"})
    return SearchDomains(trail, code, NoCommits(), Decisions(code))  # type: ignore[arg-type]


@pytest.fixture
def open_library(trail: Trail, clock: ManualClock, me: Principal, domains: SearchDomains, root: Path) -> OpenLibrary:
    """Opens a library for a principal with all rights, or for another one."""
    return lambda model=None, by=me: Library(trail, clock, by, domains, root, model)


@pytest.fixture
def library(open_library: OpenLibrary) -> Library:
    return open_library()
