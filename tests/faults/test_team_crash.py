"""Kill the process around the events of a team's work, from the plan to the merge: the end is that of the uninterrupted
run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.crashing import NOWHERE, Doom
from tests.faults.processes import KILLED, Child
from tests.faults.teamwork import final_state, prepare, work

PATIENCE = 120.0


def live(folder: Path, doom: Doom = NOWHERE) -> str:
    """One life of the process: how the work ended, empty where it was killed."""
    with Child(work, folder, doom) as child:
        code = child.wait(PATIENCE)
        assert code in (0, KILLED), f"the process ended with {code}"
        return str(child.hear()) if code == 0 else ""


def test_the_uninterrupted_work_passes_on_the_third_version(tmp_path: Path) -> None:
    asyncio.run(prepare(tmp_path))
    assert live(tmp_path) == "completed"
    state = asyncio.run(final_state(tmp_path))
    print(state)
    assert state["effects"] == 3
