"""Isolation is reported as it was tried."""

from __future__ import annotations

import os

import pytest

from clew.tools.sandbox import LocalSandbox
from clew.tools.sandbox.levels import find_levels
from clew.tools.sandbox.wall import NoWall
from tests.tools.sandbox.boxes import open_box


@pytest.mark.req("PLA-25")
async def test_bubblewrap_holds_everything() -> None:
    found = await find_levels(open_box("bubblewrap python").sandbox())
    assert found.missing == ()
    assert all(level.by for level in found.levels)
    assert "python" in found.languages


@pytest.mark.req("PLA-25")
async def test_landlock_says_what_it_does_not_hold() -> None:
    found = await find_levels(open_box("landlock python").sandbox())
    assert found.missing == (("processes",) if os.geteuid() == 0 else ())


@pytest.mark.req("PLA-25")
async def test_without_a_wall_nothing_is_claimed() -> None:
    found = await find_levels(LocalSandbox(NoWall(), production=False))
    assert {"filesystem", "network", "syscalls"} <= set(found.missing)
    assert not any(level.by for level in found.levels if not level.enforced)


async def test_a_wall_that_lets_nothing_run_holds_nothing() -> None:
    class Shut(NoWall):
        name = "none"

    shut = LocalSandbox(Shut(), production=True)
    from clew.tools.sandbox import levels

    assert await levels._try(shut) == {}
