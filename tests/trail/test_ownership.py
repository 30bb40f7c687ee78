"""Trails that are not in a file: nothing runs on a server's trail that somebody else filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.access import Principal
from clew.config import Config, read_config
from clew.errors import ConfigError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.ownership import open_owned
from clew.trail.store import Trail
from clew.trust import Trust

SERVER = "postgresql://me:hidden@db.example/clew"


def configure(tmp_path: Path, trail: str = SERVER) -> Config:
    """A configuration whose trail is named by config.toml."""
    return Config(folder=tmp_path / ".clew", trail=trail, from_file=frozenset(["trail"]))


async def test_a_trail_on_a_server_that_others_filled_waits_for_consent(
    trail: Trail, me: Principal, tmp_path: Path, trust_file: Path
) -> None:
    await trail.records.create(Draft(title="theirs", context={}), by=me)

    async def opening() -> Trail:
        return trail

    _, ownership = await open_owned(configure(tmp_path), opening)
    assert not await ownership.holds()
    with pytest.raises(ConfigError, match=r"postgresql://me@db\.example/clew is a trail that you did not make"):
        await ownership.require()
    Trust.open().grant([await ownership.adopt(by=me)])
    await ownership.require()


async def test_a_trail_on_a_server_belongs_to_the_user_who_first_opened_it(
    trail: Trail, me: Principal, tmp_path: Path, trust_file: Path
) -> None:
    async def opening() -> Trail:
        return trail

    await open_owned(configure(tmp_path), opening)
    await trail.records.create(Draft(title="mine", context={}), by=me)
    _, ownership = await open_owned(configure(tmp_path), opening)
    assert await ownership.holds()


@pytest.mark.req("RCR-28")
async def test_a_trail_on_a_server_that_the_environment_names_is_shared_by_all_workers(
    trail: Trail, me: Principal, tmp_path: Path, trust_file: Path
) -> None:
    await trail.records.create(Draft(title="of another worker", context={}), by=me)

    async def opening() -> Trail:
        return trail

    config = read_config(tmp_path / ".clew", {"CLEW_TRAIL": SERVER})
    _, ownership = await open_owned(config, opening)
    await ownership.require()


async def test_a_trail_in_memory_is_the_users(tmp_path: Path, trust_file: Path) -> None:
    trail, ownership = await open_owned(
        configure(tmp_path, "sqlite://:memory:"), lambda: open_trail("sqlite://:memory:")
    )
    assert await ownership.holds()
    await trail.close()
