"""Two sessions change one file: their merges wait for each other, and the second is a conflict with both versions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.app import open_app
from clew.cli.team.team_lines import resource_lines
from clew.config import Config, HygieneConfig
from clew.team.team import TeamOptions
from tests.journeys.test_team_app import PATIENCE, end_of, models_of
from tests.team.worktrees.projects import git, make_repository

NAMES = ("one", "two")


def turns(name: str) -> list[dict[str, Any]]:
    node = {"id": name, "prompt": f"Write {name} into the file.", "files": ["maths.txt"]}
    return [
        {"user": f"the request called {name}", "call": {"plan": {"plan": {"nodes": [node]}}}},
        {"say": "Here is the plan."},
        {
            "user": f"Write {name} into the file.",
            "call": {"engineer_write_file": {"path": "maths.txt", "content": f"{name}\n"}},
        },
        {"call": {"engineer_signal_complete": {"result": name, "files_modified": ["maths.txt"]}}},
        {"say": "Done."},
    ]


JUDGED: list[dict[str, Any]] = [
    {"user": "All tasks of this request", "call": {"report_issues": {"issues": []}}},
    {"say": "It is fine."},
]


@pytest.mark.slow
@pytest.mark.req("SYL-10")
@pytest.mark.req("SYL-66")
async def test_two_sessions_on_one_file_end_in_a_conflict_with_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    make_repository(root, {"maths.txt": "zero\n", ".gitignore": ".clew/\n"})
    (root / ".clew").mkdir()
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        models = models_of(app, [*turns("one"), *turns("two"), *JUDGED])
        team = await app.team(models)
        async with (await app.runtime(models)).running():
            options = TeamOptions(approves_plan=True)
            ids = [
                (await team.start(f"This is the request called {name}", by=app.me, options=options)).id
                for name in NAMES
            ]
            states = [await end_of(team, id, app) for id in ids]
        assert [each.outcome for each in states] == ["completed", "completed"], [each.reason for each in states]

        async with team.resources.locks.hold("write", ["maths.txt"], session="chat", task="write-file"):
            waiting = asyncio.create_task(team.merge(ids[0], by=app.me))
            async with asyncio.timeout(PATIENCE):
                while len(found := (await team.resources.state()).locks) < 2:
                    await asyncio.sleep(0)
            assert (found[1].task, found[1].waits_for) == ("merge", ("chat",))
            assert "waits for chat: maths.txt" in list(resource_lines(await team.resources.state()))[-1]
            assert (root / "maths.txt").read_text() == "zero\n"
        assert (await waiting).outcome == "fast_forward"

        second = await team.merge(ids[1], by=app.me)
        assert second.outcome == "conflict"
        (conflict,) = second.conflicts
        assert (conflict.path, conflict.ours, conflict.theirs) == ("maths.txt", "one\n", "two\n")
        assert (root / "maths.txt").read_text() == "one\n"
        assert git(root, "show", f"{states[1].branch}:maths.txt").strip() == "two"
        assert list((await team.resources.state()).locks) == []
