"""A request through the app, with the agents that come with Clew, scripted models, and real git, ruff and pytest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.app import App, open_app
from clew.config import Config, HygieneConfig
from clew.errors import IllegalState, InvalidInput, ModelError
from clew.llm.model import Models, open_models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.team.machines.team_state import TeamState
from clew.team.team import Team, TeamOptions
from tests.team.worktrees.projects import git, make_repository

PATIENCE = 300.0
FILES = {
    "calc.py": "",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n[tool.ruff]\nline-length = 100\n'
    '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "tests/test_calc.py": "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n",
    ".gitignore": ".clew/\n__pycache__/\n",
}
PLAN = {"nodes": [{"id": "add", "prompt": "Write the function add.", "files": ["calc.py"]}]}
SCRIPT: list[dict[str, Any]] = [
    {"user": "Plan this request", "call": {"plan": {"plan": PLAN}}},
    {"say": "Here is the plan."},
    {"user": "Write the function add.", "tools": ["engineer_write_file"], "call": {"execute_task": {}}},
    {"call": {"engineer_write_file": {"path": "calc.py", "content": "def add(a, b):\n    return a + b\n"}}},
    {"call": {"engineer_signal_complete": {"result": "wrote add"}}},
    {"say": "Written."},
    {"user": "All tasks of this request", "call": {"report_issues": {"issues": []}}},
    {"say": "It is fine."},
]


@asynccontextmanager
async def project(folder: Path) -> AsyncIterator[App]:
    make_repository(folder, FILES)
    config = Config(folder=folder / ".clew", hygiene=HygieneConfig(enabled=False))
    (folder / ".clew").mkdir()
    async with open_app(config) as app:
        yield app


def models_of(app: App, script: list[dict[str, Any]]) -> Models:
    turns = msgspec.convert(script, list[ScriptedTurn])
    return open_models(app.config).with_model("*", ScriptedModel(turns))


async def end_of(team: Team, session: str, app: App) -> TeamState:
    async with asyncio.timeout(PATIENCE):
        async for _ in team.follow(session, by=app.me):
            pass
    return await team.state(session, by=app.me)


@pytest.mark.slow
@pytest.mark.req("SYL-40")
@pytest.mark.req("SYL-42")
@pytest.mark.req("BEY-10")
async def test_a_request_becomes_a_proven_branch_that_the_user_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    async with project(root) as app:
        models = models_of(app, SCRIPT)
        team = await app.team(models)
        async with (await app.runtime(models)).running():
            session = await team.start("Add add", by=app.me, options=TeamOptions(approves_plan=True))
            state = await end_of(team, session.id, app)
        assert (state.outcome, state.reason) == ("completed", "")
        assert git(root, "status", "--porcelain") == "", "the checkout was touched"
        assert state.summary is not None
        assert state.summary.modified == ("calc.py",)
        evidence = await team.why_done(session.id, "1", by=app.me)
        assert evidence.verdict.accepted
        assert {each.kind for each in evidence.receipts} == {"lint", "test"}
        (status,) = await team.status(by=app.me)
        assert (status.phase, status.outcome, status.tasks, status.passed) == ("complete", "completed", 1, 1)
        assert status.tokens > 0
        merged = await team.merge(session.id, by=app.me)
        assert merged.merged
        assert (root / "calc.py").read_text().startswith("def add")


@pytest.mark.req("SYL-40")
async def test_without_a_model_a_request_is_refused_with_what_to_configure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with project(tmp_path / "project") as app:
        team = await app.team()
        with pytest.raises(ModelError, match="no model is configured"):
            await team.start("Add add", by=app.me)
        assert await team.status(by=app.me) == []


@pytest.mark.req("SYL-10")
async def test_a_request_from_a_base_that_the_project_does_not_have_begins_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with project(tmp_path / "project") as app:
        team = await app.team(models_of(app, SCRIPT))
        with pytest.raises(InvalidInput, match="'nowhere' is not known here"):
            await team.start("Add add", by=app.me, options=TeamOptions(name="fares", base="nowhere"))
        assert await team.sessions.list(by=app.me) == []
        assert (await team.start("Add add", by=app.me, options=TeamOptions(name="fares", base="main"))).name == "fares"


@pytest.mark.req("SYL-40")
async def test_an_action_that_the_phase_does_not_allow_is_refused_with_what_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with project(tmp_path / "project") as app:
        team = await app.team(models_of(app, SCRIPT))
        session = await team.start("Add add", by=app.me)
        with pytest.raises(IllegalState, match="Possible now: approve the plan, modify the plan"):
            await team.override(session.id, "because", by=app.me)
        with pytest.raises(IllegalState, match="not there yet"):
            await team.approve(session.id, by=app.me)
