"""`clew agents` and the ten agents of the team."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.team.messages.message_types import AGENTS
from tests.cli.conftest import Clew


@pytest.mark.req("SYL-18", "SYL-114", "SYL-115")
def test_the_ten_agents_are_listed_with_their_modes_and_health(clew: Clew, folder: Path) -> None:
    items = {each["agent_id"]: each for each in clew("agents", "--json").json["items"]}
    assert set(AGENTS) <= set(items)
    assert items["architect"]["mode"] == "primary"
    assert items["engineer"]["mode"] == "none"
    assert items["librarian"]["origin"] == "built-in"
    assert items["engineer"]["circuit"] == "closed"
    assert {"p50", "p95", "error_rate", "last_seen", "is_healthy"} <= set(items["engineer"])
    assert "built in, none" in clew("agents").out
