"""`clew verify`: a person verifies a source that a tool ingested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clew.knowledge.nodes.node_store import UNVERIFIED
from tests.cli.conftest import Clew
from tests.knowledge.code.repositories import make_repository

TEXT = "Clients should wait before a retry."


@pytest.fixture
def source(clew: Clew, tmp_path: Path, folder: Path) -> str:
    """The id of a source that a tool ingested."""
    make_repository(tmp_path, {"README.md": "# Shop\n", ".gitignore": ".clew/\n"})
    found = clew("get", "reference://tools/ingest_source", "kind=best_practice", "title=Retries", f"text={TEXT}")
    ids = re.findall(r"clew verify ([0-9a-f-]{36})", found.out)
    assert len(ids) == 1, found
    return str(ids[0])


def research(clew: Clew) -> str:
    return clew("get", "reference://tools/research", "query=when should clients retry").out


@pytest.mark.req("SYL-27", "SYL-82")
def test_a_source_is_unverified_until_a_person_verifies_it(clew: Clew, source: str) -> None:
    assert UNVERIFIED in research(clew)
    done = clew("verify", source, "--yes", "--json").json
    assert (done["title"], done["trust"], done["is_verified"]) == ("Retries", 60, True)
    found = research(clew)
    assert TEXT in found
    assert UNVERIFIED not in found
    chain = clew("get", "reference://tools/hidden/provenance", f"node_id={done['ids'][0]}").out
    assert re.search(r"- user, \d{4}-\d\d-\d\d \(confidence 1.00, verified\)\n- academic.*0.20, unverified", chain)


def test_without_a_person_to_ask_nothing_is_verified(clew: Clew, source: str) -> None:
    refused = clew("verify", source)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert UNVERIFIED in research(clew)


@pytest.mark.req("SYL-27")
def test_a_tool_cannot_replace_what_a_person_verified(clew: Clew, source: str) -> None:
    clew("verify", source, "--yes")
    changed = ("kind=best_practice", "title=Retries", "text=Clients should never wait before a retry.")
    told = clew("get", "reference://tools/ingest_source", *changed).out
    assert "unverified" in told
    found = research(clew)
    assert f": {TEXT}" in found
    assert f"{UNVERIFIED} Clients should never wait" in found


def test_a_verified_source_and_an_unknown_id_are_refused(clew: Clew, source: str) -> None:
    assert clew("verify", source, "--yes").code == 0
    assert clew("verify", source, "--yes").code != 0
    assert clew("verify", "00000000-0000-0000-0000-000000000000", "--yes").code != 0
