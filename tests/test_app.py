"""The wiring: background work of an open app, and its end."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.catalog.consent.consent import read_wishes
from clew.catalog.operations.answers import Item
from clew.clock import ManualClock
from clew.config import Config, HygieneConfig, WebhookConfig
from clew.errors import ConfigError
from clew.knowledge.base import Knowledge
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.trail.model.event import Consumer
from clew.trail.model.selector import Selector
from tests.consent import trust_all

PATIENCE = 60.0


@pytest.fixture
async def app(tmp_path: Path, clock: ManualClock) -> AsyncIterator[App]:
    async with open_app(Config(folder=tmp_path, hygiene=HygieneConfig(enabled=False)), clock) as opened:
        yield opened


async def test_a_look_for_new_webhooks_leaves_nothing_behind(app: App) -> None:
    async with app.background() as refresh:
        before = asyncio.all_tasks()
        for _ in range(20):
            refresh()
        started = asyncio.all_tasks() - before
        assert len(started) == 20
        traces = [weakref.ref(task) for task in started]
        await asyncio.wait(started, timeout=PATIENCE)
        assert all(task.done() for task in started)
        del started
        gc.collect()
        assert not any(trace() for trace in traces)


async def test_background_work_ends_with_its_context(app: App) -> None:
    before = asyncio.all_tasks()
    async with app.background() as refresh:
        refresh()
        assert asyncio.all_tasks() > before
    assert asyncio.all_tasks() == before


async def test_background_work_that_fails_is_reported_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config(folder=tmp_path, webhooks=WebhookConfig(allow=("nowhere",)))
    async with open_app(config) as app, app.background() as refresh:
        before = asyncio.all_tasks()
        refresh()
        await asyncio.wait(asyncio.all_tasks() - before, timeout=PATIENCE)
        assert "a background task failed" in caplog.text
        assert "nowhere" in caplog.text


def offering(tmp_path: Path) -> Config:
    """Settings of a project with two files."""
    (tmp_path / "a.md").write_text("# A\n\nThe kettle.\n\n## B\n\nMore of it.\n")
    (tmp_path / "b.txt").write_text("plain text")
    return Config(folder=tmp_path / ".clew", embedder="hash", hygiene=HygieneConfig(enabled=False))


@pytest.mark.req("ERN-25")
async def test_fifty_first_calls_build_one_workspace(tmp_path: Path) -> None:
    (tmp_path / ".clew").mkdir()
    async with open_app(offering(tmp_path)) as app:
        found = await asyncio.gather(*(app.workspace() for _ in range(50)))
        assert len({id(workspace) for workspace in found}) == 1
        registry = found[0].catalog.registry
        assert registry.generation == len(registry.all_domains()) == 4


@pytest.mark.req("ERN-25")
async def test_instructions_count_what_the_registries_hold(tmp_path: Path) -> None:
    (tmp_path / ".clew").mkdir()
    async with open_app(offering(tmp_path)) as app:
        workspace = await app.workspace()
        await workspace.lifecycle().restart()
        registry = workspace.catalog.registry
        listed = await workspace.catalog.list_resources(by=app.me, limit=100)
        assert 3 <= len(listed) < 100
        counts = await workspace.catalog.counts()
        assert (counts.domain_count, counts.route_count) == (len(registry.all_domains()), registry.count_routes())
        assert (counts.resource_count, list(counts.domains)) == (len(listed), ["repo", "code", "history", "reference"])
        held = f"{counts.route_count} routes and {len(listed)} resources"
        assert f"4 domains (repo, code, history, reference) with {held}" in await workspace.catalog.instructions(
            by=app.me
        )


async def test_a_workspace_that_could_not_be_built_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / ".clew").mkdir()
    servers = tmp_path / ".clew" / "mcp.json"
    servers.write_text("not JSON")
    async with open_app(offering(tmp_path)) as app:
        failures = await asyncio.gather(*(app.workspace() for _ in range(5)), return_exceptions=True)
        assert {type(each) for each in failures} == {ConfigError}
        servers.write_text("{}")
        assert await app.workspace() is await app.workspace()


async def test_sources_are_kept_fresh_while_the_context_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".clew").mkdir()
    monkeypatch.setattr("clew.app.REFRESH_SECONDS", 0.01)
    async with open_app(offering(tmp_path)) as app:
        before = asyncio.all_tasks()
        async with app.keeping_fresh(), asyncio.timeout(PATIENCE):
            catalog = (await app.workspace()).catalog
            for name in ("a.md", "late.md"):
                (tmp_path / "late.md").write_text("# Late\n\nLater than the first look.\n")
                while not (await catalog.get([Item(route=f"repo://resources/{name}")], by=app.me)).summary.success:
                    await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before


@pytest.mark.req("BEY-11")
async def test_documents_are_read_after_the_code_that_answers_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".clew").mkdir()
    code, is_read = asyncio.Event(), asyncio.Event()

    async def keep_up(self: Knowledge, *, sweeps: bool, on_read: Callable[[], None]) -> None:
        is_read.set()
        await code.wait()
        on_read()

    monkeypatch.setattr(Knowledge, "keep_up", keep_up)
    monkeypatch.setattr("clew.app.CODE_FIRST_SECONDS", PATIENCE)
    async with open_app(offering(tmp_path)) as app, app.keeping_fresh(), asyncio.timeout(PATIENCE):
        catalog = (await app.workspace()).catalog
        await is_read.wait()
        found = await catalog.get([Item(route="repo://resources/a.md")], by=app.me)
        assert found.summary.failed == 1, "a question does not start to read them either"
        code.set()
        while not (await catalog.get([Item(route="repo://resources/a.md")], by=app.me)).summary.success:
            await asyncio.sleep(0.01)


async def test_keeping_fresh_may_end_while_the_code_is_read_for_the_first_time(tmp_path: Path) -> None:
    (tmp_path / ".clew").mkdir()
    (tmp_path / "app.py").write_text("def main():\n    pass\n")
    async with open_app(offering(tmp_path)) as app, asyncio.timeout(PATIENCE):
        before = asyncio.all_tasks()
        async with app.keeping_fresh():
            while "clew-code-watch" not in {task.get_name() for task in asyncio.all_tasks()}:
                await asyncio.sleep(0)
        assert asyncio.all_tasks() == before


async def test_a_refresh_that_fails_is_reported_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".clew").mkdir()
    monkeypatch.setattr("clew.app.REFRESH_SECONDS", 0.01)
    servers = tmp_path / ".clew" / "mcp.json"
    servers.write_text("not JSON")
    async with open_app(offering(tmp_path)) as app, app.keeping_fresh(), asyncio.timeout(PATIENCE):
        while "the catalog was not refreshed" not in caplog.text:
            await asyncio.sleep(0.01)
        servers.write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program-at-all"}}}))
        trust_all(servers.parent)
        while "the server gone cannot be used yet" not in caplog.text:
            await asyncio.sleep(0.01)
    failed, tried_again = (caplog.text.index(each) for each in ("was not refreshed", "the server gone cannot be used"))
    assert failed < tried_again


async def test_a_new_trail_belongs_to_the_user_in_every_process(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from clew.app import open_app\n"
        "from clew.config import Config\n"
        "async def main():\n"
        "    async with open_app(Config(folder=Path(sys.argv[1]), embedder='hash')) as app:\n"
        "        await app.ownership.require()\n"
        "asyncio.run(main())\n"
    )
    starting = (asyncio.create_subprocess_exec(sys.executable, "-c", script, str(tmp_path / ".clew")) for _ in range(4))
    processes = await asyncio.gather(*starting)
    async with asyncio.timeout(PATIENCE):
        assert [await process.wait() for process in processes] == [0, 0, 0, 0]


async def test_a_trail_whose_consent_cannot_be_read_runs_nothing(tmp_path: Path, trust_file: Path) -> None:
    config = Config(folder=tmp_path / ".clew", embedder="hash")
    async with open_app(config) as app:
        assert await app.ownership.holds()
    trust_file.write_text("{")
    async with open_app(config) as app:
        with pytest.raises(ConfigError, match="is damaged"):
            await app.runtime()


async def test_an_adopted_trail_has_another_identity_and_its_records(tmp_path: Path) -> None:
    async with open_app(Config(folder=tmp_path / ".clew", embedder="hash")) as app:
        await app.bootstrap()
        before, head = await app.trail.upkeep.identity(), await app.trail.log.head()
        after = await app.trail.upkeep.adopt()
        assert (after == before, await app.trail.upkeep.identity()) == (False, after)
        assert await app.trail.log.head() == head
        for name, begins, cursor in (("late", head - 1, head), ("later", head, head)):
            state = await app.trail.deliveries.register(Consumer(name=name, after=begins), by=app.me)
            assert state.cursor == cursor


async def test_background_work_ends_before_its_resources_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a second interruption during the end, such as a second Ctrl-C."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(app: App) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            ended.set()

    async def serve() -> None:
        async with open_app(offering(tmp_path)) as app, app.keeping_fresh():
            await asyncio.Event().wait()

    monkeypatch.setattr(App, "_keep_knowledge", slow)
    (tmp_path / ".clew").mkdir()
    serving = asyncio.create_task(serve())
    await begun.wait()
    for _ in range(3):
        serving.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert ended.is_set()


@pytest.mark.req("PLA-24")
async def test_a_server_with_sampling_asks_the_model_of_the_settings_and_is_in_the_ledger(
    tmp_path: Path, trust_file: Path
) -> None:
    folder = tmp_path / ".clew"
    folder.mkdir()
    fixture = Path(__file__).parent / "catalog" / "servers" / "fixtures" / "asker.py"
    command = [sys.executable, str(fixture), "2025-11-25", "sample"]
    entry = {"command": command[0], "args": command[1:], "features": {"sampling": True}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"asker": entry}}))
    config = Config(folder=folder)
    assert "asks your model" in next(each.summary for each in read_wishes(config) if each.name == "asker")
    trust_all(folder)
    async with open_app(config) as app:
        app._models = open_models(config).with_model("*", ScriptedModel([ScriptedTurn(user="colour", say="Blue")]))
        workspace = await app.workspace()
        result = await workspace.servers.connection("asker").call_tool("book", {})
        assert "Blue" in result.content[0].text
        [used] = (await app.trail.records.list(Selector(schema_name="usage.v1"), by=app.me)).items
        assert used.context["agent_id"] == "mcp-asker"
