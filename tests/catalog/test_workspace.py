"""The catalog of one folder: domains of packages, the repository, sources and foreign servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.operations.answers import Item, Question
from clew.catalog.workspace.repository import find_refusal
from clew.catalog.workspace.workspace import Workspace, open_workspace, own_names
from clew.cli.project import render_settings
from clew.clock import ManualClock
from clew.config import Config, read_config
from clew.errors import ConfigError, ServerError
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trust import Trust
from tests.consent import trust_all

HOSTILE = Path(__file__).parent / "servers" / "fixtures" / "hostile.py"
OWNER = Principal(owner_id="acme", agent_id="ann")

Open = Callable[..., AbstractAsyncContextManager[Workspace]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project" / ".clew"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def opened(trail: Trail, clock: ManualClock, folder: Path) -> Open:
    """The workspace of some settings."""

    @asynccontextmanager
    async def open_it(settings: str = "", by: Principal = OWNER, *, trusting: bool = True) -> AsyncIterator[Workspace]:
        (folder / "config.toml").write_text(settings)
        if trusting:
            trust_all(folder)
        workspace = await open_workspace(trail, clock, read_config(folder, {}), by)
        try:
            yield workspace
        finally:
            await workspace.close()

    return open_it


def names(workspace: Workspace) -> list[str]:
    return [domain.name for domain in workspace.catalog.registry.all_domains()]


def module(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    (folder.parent / f"{name}.py").write_text(f"from clew.catalog.domain import Domain\n{code}\n")
    monkeypatch.syspath_prepend(str(folder.parent))


@pytest.mark.req("ERN-05")
async def test_domains_of_all_kinds_come_together(opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(folder, monkeypatch, "ws_all", "a = Domain(name='pack', description='A pack.')")
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"Far Away": {"command": "no-such-program"}}}))
    settings = "[catalog]\ndomains = ['ws_all:a']\n[sources.docs]\nkind = 'local'\nroot = 'docs'\n"
    async with opened(settings) as workspace:
        assert names(workspace) == ["pack", "docs", "repo", "far-away"]
        counts = await workspace.catalog.counts()
        assert (counts.domain_count, list(counts.domains)) == (4, names(workspace))
        await workspace.close()


async def test_another_domain_has_the_name_of_the_repository_only_where_that_is_off(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("[catalog]\nrepository = false") as workspace:
        assert names(workspace) == []
    module(folder, monkeypatch, "ws_repo", "repo = Domain(name='repo', description='Another one.')")
    async with opened("[catalog]\nrepository = false\ndomains = ['ws_repo:repo']") as workspace:
        (domain,) = workspace.catalog.registry.all_domains()
        assert domain.description == "Another one."


@pytest.mark.parametrize(
    "settings", ["[catalog]\ndomains = ['ws_repo:repo']", "[sources.repo]\nkind = 'local'\nroot = 'docs'"]
)
async def test_a_domain_with_the_name_of_the_repository_is_refused_with_the_next_step(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    module(folder, monkeypatch, "ws_repo", "repo = Domain(name='repo', description='Another one.')")
    with pytest.raises(ConfigError) as told:
        async with opened(settings):
            pass
    assert told.value.message == "two domains are named repo"
    assert "Rename the other, or set [catalog] repository = false" in told.value.hint


async def test_a_folder_of_another_name_does_not_open_what_lies_around_it(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    (tmp_path / "private.md").write_text("# Private\n")
    workspace = await open_workspace(trail, clock, read_config(tmp_path / "data", {}), OWNER)
    assert names(workspace) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[catalog]\ndomains = ['ws_twice:a', 'ws_twice:b']", ""),
        ("[sources.pack]\nkind = 'local'\nroot = '.'\n[catalog]\ndomains = ['ws_twice:a']", ""),
        ("[catalog]\ndomains = ['ws_twice:a']", "pack"),
        ("", "repo"),
    ],
)
async def test_two_domains_of_one_name_are_refused(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    code = "a = Domain(name='pack', description='A.')\nb = Domain(name='pack', description='B.')"
    module(folder, monkeypatch, "ws_twice", code)
    if second:
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {second: {"command": "x"}}}))
    with pytest.raises(ConfigError, match=r"two domains are named (pack\. Rename one|repo\. The files of this)"):
        async with opened(first):
            pass


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("kind = 'lokal'", "there is no source 'lokal'. Did you mean local?"),
        ("kind = 'local'", "root: is missing. It must be text"),
        ("kind = 'local'\nroot = '.'\nrout = 1", "there is no option 'rout'. Did you mean root?"),
        ("kind = 'local'\nroot = 5", "root"),
        ('kind = "local"\nroot = "a\\u0000b"', "root: not a valid name of a folder"),
        ("kind = 'github'\nrepo = 'nonsense'\nitems = 'prs'", "repo"),
        ("kind = 'local'\nroot = '.'\ndomain = 'Not A Name'", "must be lower-case letters"),
    ],
)
async def test_a_source_that_cannot_be_is_reported_with_its_table(opened: Open, table: str, said: str) -> None:
    with pytest.raises(ConfigError) as told:
        async with opened(f"[sources.mine]\n{table}\n"):
            pass
    assert str(told.value).startswith("[sources.mine] ")
    assert said in str(told.value)


async def test_the_same_source_twice_in_a_domain_is_reported(opened: Open) -> None:
    tables = "".join(f"[sources.{name}]\nkind = 'local'\nroot = '.'\ndomain = 'docs'\n" for name in "ab")
    with pytest.raises(ConfigError, match=r"\[sources\] domain docs: has the source local:.* twice"):
        async with opened(tables):
            pass


async def test_sources_of_one_domain_share_it(opened: Open, folder: Path) -> None:
    for name in ("one", "two"):
        (folder.parent / name).mkdir()
        (folder.parent / name / f"{name}.md").write_text(f"# {name}\n\nAll of {name}.\n")
    settings = "[catalog]\nrepository = false\n" + "".join(
        f"[sources.{name}]\nkind = 'local'\nroot = '{name}'\ndomain = 'docs'\nbase_path = '{name}'\n"
        for name in ("one", "two")
    )
    async with opened(settings) as workspace:
        assert names(workspace) == ["docs"]
        assert [report.outcome for report in await workspace.look_again()] == ["refreshed", "refreshed"]
        items = [Item(route="docs://resources/one/one.md"), Item(route="docs://resources/two/two.md")]
        assert (await workspace.catalog.get(items, by=OWNER)).summary.success == 2


async def test_a_local_folder_counts_from_the_project_wherever_one_stands(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (folder.parent / "docs").mkdir()
    (folder.parent / "docs" / "a.md").write_text("# A\n")
    ids = set()
    for place in (folder.parent, folder.parent / "docs", tmp_path):
        monkeypatch.chdir(place)
        async with opened("[sources.docs]\nkind = 'local'\nroot = 'docs'\n") as workspace:
            ids |= {state.source_id for state in await workspace.lifecycle().sources() if state.domain == "docs"}
            assert (await workspace.look_again())[0].outcome == "refreshed"
    assert len(ids) == 1


SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
GITHUB = "[catalog]\nrepository = false\n[sources.pulls]\nkind = 'github'\nrepo = 'a/b'\nitems = 'prs'\n"


async def test_secrets_come_by_name_from_the_trail_or_the_environment(
    opened: Open, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    await trail.secrets.put("github-token", SECRET, by=OWNER)
    monkeypatch.setenv("GITHUB_TOKEN_OF_TESTS", SECRET)
    for name in ("github-token", "GITHUB_TOKEN_OF_TESTS"):
        async with opened(f"{GITHUB}token = '{name}'\n") as workspace:
            (domain,) = workspace.catalog.registry.all_domains()
            assert SECRET not in repr(domain) + repr(workspace.catalog.domains(by=OWNER))
            assert SECRET not in str(await workspace.lifecycle().sources())
    async with opened(f"{GITHUB}token = 'github-token'\n", by=Principal(owner_id="other")) as workspace:
        assert workspace.problems  # it is the secret of another owner


async def test_a_source_without_its_secret_is_left_out_and_told_and_the_rest_works(
    opened: Open, trail: Trail, folder: Path
) -> None:
    (folder.parent / "okapi.md").write_text("# Okapi\n\nStripes.\n")
    async with opened("[sources.mine]\nkind = 'local'\nroot = '.'\ndomain = 'mixed'\n") as workspace:
        await workspace.lifecycle().restart()
    settings = GITHUB.replace("[catalog]\nrepository = false\n", "") + f"token = '{SECRET}'\ndomain = 'mixed'\n"
    async with opened(settings) as workspace:
        await workspace.lifecycle().restart()
        (told,) = workspace.problems.values()
        kept = await trail.records.list(Selector(schema_name="resource.v1"), by=OWNER)

    assert told.startswith("[sources.")
    assert "clew secret put" in told
    assert SECRET not in told
    assert "mixed://resources/okapi.md" in [each.context["uri"] for each in kept.items]


async def test_looking_again_reads_local_sources_and_no_others(opened: Open, folder: Path) -> None:
    (folder.parent / "a.md").write_text("# A\n\nText.\n")
    table = "[sources.far]\nkind = 'github'\nrepo = 'a/b'\nitems = 'prs'\nbase_url = 'http://127.0.0.1:1'\n"
    seen: list[tuple[int, int, str]] = []
    async with opened(table) as workspace:
        reports = await workspace.look_again(lambda *progress: seen.append(progress))
        assert [(each.domain, each.outcome) for each in reports] == [("repo", "refreshed")]
    assert seen


def server_entry(*arguments: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HOSTILE), *arguments], "timeout_seconds": 20}


async def test_a_server_is_met_once_and_one_that_cannot_be_is_reported(opened: Open, folder: Path) -> None:
    servers = {"good": server_entry("plain"), "bad": {"command": "no-such-program-at-all"}, "off": server_entry("x")}
    servers["off"]["enabled"] = False
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with opened() as workspace:
        assert names(workspace) == ["repo", "good", "bad"]
        before = workspace.catalog.registry.generation
        problems = await workspace.meet_servers()
        assert list(problems) == ["bad"]
        assert workspace.catalog.registry.generation > before
        answer = await workspace.catalog.ask(Question(query="something useful", domain="good"), by=OWNER)
        assert [tool.route for tool in answer.sections[0].tools] == ["good://tools/guide"]
        assert list(await workspace.meet_servers()) == ["bad"]
    async with opened() as workspace:  # known from the trail now
        ran = await workspace.catalog.get([Item(route="good://tools/hidden/work")], by=OWNER)
        assert ran.summary.success == 1, ran.markdown
        await workspace.servers.servers.remove("good")
        assert names(workspace) == ["repo", "bad"]


async def test_the_example_in_new_settings_is_a_source(opened: Open, trail: Trail) -> None:
    await trail.secrets.put("github", SECRET, by=OWNER)
    lines = [line.removeprefix("#   ") for line in render_settings().splitlines() if line.startswith("#   ")]
    async with opened("\n".join(["[catalog]", "repository = false", *lines])) as workspace:
        (domain,) = workspace.catalog.domains(by=OWNER)
        assert (domain.name, list(domain.sources)) == ("pulls", ["github:prs:owner/name"])


def test_a_home_folder_is_refused_unless_it_is_a_git_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    config = Config(folder=folder)
    assert "is not a project" in find_refusal(config)
    (folder.parent / ".git").mkdir()
    assert find_refusal(config) == ""


@pytest.mark.req("ERN-23")
async def test_a_file_that_changes_while_an_agent_works_is_in_the_next_answer(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.catalog.workspace.workspace.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("clew.catalog.workspace.workspace.WAIT_SECONDS", 60.0)
    page = folder.parent / "okapi.md"
    page.write_text("# Okapi\n\nAn okapi has stripes.\n")
    async with opened() as workspace:
        first = await workspace.catalog.ask(Question(query="what about the okapi"), by=OWNER)
        page.write_text("# Okapi\n\nAn okapi is related to the giraffe.\n")
        read = await workspace.catalog.get([Item(route="repo://resources/okapi.md")], by=OWNER)
        (folder.parent / "giraffe.md").write_text("# Giraffe\n\nIts neck is long.\n")
        second = await workspace.catalog.ask(Question(query="what about the giraffe", handle=first.handle), by=OWNER)

    assert "repo://resources/okapi.md" in first.markdown
    assert "related to the giraffe" in read.markdown
    assert "repo://resources/giraffe.md" in second.markdown


async def test_an_answer_does_not_wait_for_long_and_says_that_files_are_still_read(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.catalog.workspace.workspace.WAIT_SECONDS", 0.0)
    (folder.parent / "okapi.md").write_text("# Okapi\n")
    async with opened() as workspace:
        answer = await workspace.catalog.ask(Question(query="okapi"), by=OWNER)

    assert answer.hint.startswith("Local files are still being read")


async def test_reading_a_document_gives_all_of_it_in_its_order(opened: Open, folder: Path) -> None:
    text = "# Zebra\n\nintro\n\n## Stripes\n\nblack\n\n### More\n\nwhite\n\n## Able\n\nlast\n"
    (folder.parent / "zebra.md").write_text(text)
    async with opened() as workspace:
        await workspace.look_again()
        whole = await workspace.catalog.read("repo://resources/zebra.md", by=OWNER)
        part = await workspace.catalog.read("repo://resources/zebra.md/stripes", by=OWNER)

    assert [line for line in whole.content.splitlines() if line] == [line for line in text.splitlines() if line]
    assert "white" in part.content
    assert "last" not in part.content


async def test_a_long_document_says_where_it_goes_on(opened: Open, folder: Path) -> None:
    sections = [f"## Part {at}\n\n" + f"word{at} " * 1_000 for at in range(20)]
    (folder.parent / "long.md").write_text("# Long\n\n" + "\n\n".join(sections))
    async with opened() as workspace:
        await workspace.look_again()
        (found,) = (await workspace.catalog.get([Item(route="repo://resources/long.md")], by=OWNER)).results
        assert found.data is not None
        (more,) = (await workspace.catalog.get([Item(route=found.data.guidance[0].route)], by=OWNER)).results

    assert "It goes on in" in found.data.content
    assert more.success


async def test_servers_are_started_in_the_project_wherever_one_stands(opened: Open, folder: Path) -> None:
    entry = {"command": "python", "args": ["tools/server.py"], "cwd": "sub"}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"near": entry, "here": {"command": "python"}}}))
    async with opened() as workspace:
        places = {each.id: each.cwd for each in workspace.servers.servers.list()}

    assert places == {"near": str(folder.parent / "sub"), "here": str(folder.parent)}


async def test_parts_without_consent_are_left_out_reported_and_added_later(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(folder, monkeypatch, "ws_wait", "a = Domain(name='pack', description='A pack.')")
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"good": server_entry("plain")}}))
    settings = "[catalog]\nrepository = false\ndomains = ['ws_wait:a']\n"
    async with opened(settings, trusting=False) as workspace:
        assert names(workspace) == []
        assert list(workspace.problems) == workspace.waiting.names == ["ws_wait:a", "good"]
        assert workspace.problems["good"] == "good: not trusted yet: run `clew trust`"
        assert await workspace.meet_servers() == {}
        with pytest.raises(ServerError, match="waits for the user's consent"):
            await workspace.servers.refresh("good")
        assert "ws_wait" not in sys.modules
        told = await workspace.catalog.ask(Question(query="x"), by=OWNER)
        other = await workspace.catalog.ask(Question(query="x"), by=Principal(owner_id="other"))
        assert told.hint.startswith("2 things that this folder brings wait for the user's consent.")
        assert "consent" not in other.hint
        early = await workspace.catalog.get([Item(route="good://tools/hidden/work")], by=OWNER)
        assert "NOT_FOUND" in early.markdown
        assert "good waits for the user's consent" in early.markdown
        assert "waits for the user's consent" in (await workspace.catalog.why("good://tools/x", by=OWNER)).reasons[0]
        trust_all(folder)
        asks = [workspace.catalog.ask(Question(query=f"x{at}"), by=OWNER) for at in range(5)]
        assert all("consent" not in each.hint for each in await asyncio.gather(*asks))
        assert (names(workspace), workspace.problems, workspace.waiting.names) == (["pack", "good"], {}, [])
        assert await workspace.meet_servers() == {}
        assert Trust.open().revoke(folder.parent) == 2
        ran = await workspace.catalog.get([Item(route="good://tools/hidden/work")], by=OWNER)
        assert "waits for the user's consent" in ran.markdown


async def test_a_trusted_domain_that_cannot_be_loaded_is_reported_while_others_work(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(folder, monkeypatch, "ws_bad", "raise ValueError('bad luck')")
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"repo": {"command": "x"}, "far": {"command": "x"}}}))
    async with opened("[catalog]\ndomains = ['ws_bad:a']\n", trusting=False) as workspace:
        trust_all(folder)
        await workspace.notice_consent()
        assert names(workspace) == ["repo", "far"]
        assert "bad luck" in workspace.problems["ws_bad:a"]
        assert "two domains are named repo" in workspace.problems["repo"]
        assert not next(each for each in workspace.catalog.registry.all_domains() if each.name == "repo").is_foreign


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_thing_x", "Install the package with no_such_thing_x"),
        ("this is no python", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise ValueError('one\\ntwo')", "ValueError: one two"),
    ],
)
async def test_a_domain_that_cannot_be_imported_is_listed_as_failed_and_the_rest_works(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    module(folder, monkeypatch, "ws_good", "a = Domain(name='pack', description='A pack.')")
    module(folder, monkeypatch, "ws_broken", code)
    async with opened("[catalog]\ndomains = ['ws_broken:a', 'nobody-offers-it', 'ws_good:a']\n") as workspace:
        assert names(workspace) == ["pack", "repo"]
        listed = {each.name: each.description for each in workspace.domains(by=OWNER)}
        assert listed["ws_broken:a"].startswith("failed: catalog.domains: ws_broken:a cannot be loaded")
        assert said in listed["ws_broken:a"]
        assert "no installed package offers" in listed["nobody-offers-it"]
        assert len(workspace.tell_problems()) == 2
        assert (await workspace.catalog.ask(Question(query="a pack"), by=OWNER)).markdown
    assert own_names(read_config(folder, {})) == {"pack", "repo"}


async def test_a_module_that_python_does_not_find_is_reported_with_the_next_step(opened: Open, folder: Path) -> None:
    (folder.parent / "ws_unseen.py").write_text("")
    async with opened("[catalog]\ndomains = ['ws_unseen:a']\n") as workspace:
        assert f"PYTHONPATH={folder.parent}" in workspace.problems["ws_unseen:a"]
        assert names(workspace) == ["repo"]
