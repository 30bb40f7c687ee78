"""Discovery by its three tiers: the project, research, the user; and its cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, SourceError
from clew.knowledge.history.lessons import UserPreferences
from clew.knowledge.project.devtools import SCHEMA, ToolDiscovery
from clew.knowledge.project.tools import ToolDiscoveryEntry, ToolDiscoveryRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.knowledge.git.repository import Repository


class Library:
    """Gives the same advice to every question, and counts the questions."""

    def __init__(self, advice: tuple[str, str] | Exception | None) -> None:
        self.advice = advice
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, category: str, language: str) -> tuple[str, str] | None:
        self.asked.append((category, language))
        if isinstance(self.advice, Exception):
            raise self.advice
        return self.advice


Open = Callable[..., ToolDiscovery]


@pytest.fixture
def begin(root: Path, trail: Trail, clock: ManualClock, me: Principal) -> Open:
    def begin(library: Library | None = None, at: Path = root) -> ToolDiscovery:
        return ToolDiscovery(at, trail, clock, me, library)

    return begin


def ask(session: str = "s1", **given: Any) -> ToolDiscoveryRequest:
    return ToolDiscoveryRequest(
        **{"session_id": session, "requesting_agent": "inspector", "tool_category": "linter", **given}
    )


@pytest.mark.req("SYL-35", "SYL-36")
async def test_a_configuration_stops_at_the_first_tier(root: Path, begin: Open) -> None:
    (root / "ruff.toml").touch()
    library = Library(None)
    response = await begin(library).discover(ask())
    assert (response.tier, response.confidence, response.requires_user) == (1, "high", False)
    assert [(tool.name, tool.source) for tool in response.tools] == [("ruff", "config_file")]
    assert library.asked == []


@pytest.mark.req("SYL-35", "SYL-36")
async def test_clear_research_stops_at_the_second_tier(root: Path, begin: Open) -> None:
    (root / "a.py").touch()
    library = Library(("ruff", "it is recommended"))
    discovery = begin(library)
    response = await discovery.discover(ask(languages=("Py",)))
    assert (response.tier, response.confidence, response.requires_user) == (2, "low", False)
    [found] = response.tools
    assert (found.source, found.language, found.run_command) == ("academic_research", "python", "ruff check .")
    assert found.install_cmd == "uv pip install ruff || pip install ruff"
    assert library.asked == [("linter", "python")]
    assert await discovery.discover(ask("s2", languages=("python",))) == response
    assert (len(library.asked), discovery.scans) == (1, 1)


async def test_research_that_agrees_with_the_project_keeps_its_places(root: Path, begin: Open) -> None:
    (root / "a.go").touch()
    (root / "go.mod").write_text("module x\n\nrequire github.com/stretchr/testify v1.9.0\n")
    (root / "Makefile").write_text("test:\n\tgo test ./...\n")
    response = await begin(Library(("go test", "it is recommended"))).discover(ask(tool_category="test_framework"))
    assert (response.tier, response.confidence) == (2, "medium")
    [found] = response.tools
    assert (found.source, found.run_command, found.version) == ("package_manifest", "go test ./...", "")
    assert found.rationale.startswith("go test is named in")


@pytest.mark.req("SYL-35", "SYL-106", "O20")
async def test_an_empty_project_asks_once_and_not_again_next_session(
    begin: Open, trail: Trail, me: Principal, clock: ManualClock
) -> None:
    library = Library(None)
    first = await begin(library).discover(ask())
    assert (first.tier, first.requires_user, first.confidence) == (3, True, "low")
    for option in first.user_options:
        assert option.pros
        assert option.cons
    assert [option.recommended for option in first.user_options].count(True) == 1
    assert first.user_options[-1].tool.name == "custom"

    assert await begin().prefer("linter", "ruff") == ""
    later = begin(library)
    for force in (False, True):
        response = await later.discover(ask("s2"), force_refresh=force)
        assert [(tool.name, tool.source) for tool in response.tools] == [("ruff", "user_choice")]
        assert (response.tier, response.requires_user) == (3, False)
    assert len(library.asked) == 1
    kept = await UserPreferences(trail, me, clock, "s3").get_preferences()
    assert kept.explicit == {"devtools/linter/any": "ruff"}


@pytest.mark.req("SYL-35")
async def test_a_tool_of_ones_own_is_stored_with_its_command(root: Path, begin: Open) -> None:
    (root / "a.go").touch()
    assert await begin().prefer("linter", "house-lint", "house-lint  --all: yes") == "go"
    for force in (False, True):
        response = await begin().discover(ask("s2"), force_refresh=force)
        assert [(tool.name, tool.run_command) for tool in response.tools] == [("house-lint", "house-lint --all: yes")]


@pytest.mark.req("SYL-35", "SYL-36", "SYL-39")
async def test_if_research_fails_options_are_returned_and_nothing_is_stored(root: Path, begin: Open) -> None:
    (root / "a.ts").touch()
    discovery = begin(Library(SourceError("library", "is closed")))
    response = await discovery.discover(ask())
    assert (response.tier, response.requires_user) == (3, True)
    assert [option.tool.name for option in response.user_options] == ["oxlint", "eslint", "biome", "custom"]
    assert response.user_options[0].recommended
    assert [tool.name for tool in response.tools] == ["oxlint"]
    await discovery.discover(ask())
    assert discovery.scans == 2


@pytest.mark.req("SYL-36")
async def test_tools_that_dependencies_suggest_are_recommended_with_medium_confidence(root: Path, begin: Open) -> None:
    (root / "package.json").write_text('{"devDependencies": {"eslint": "9"}, "scripts": {"lint": "eslint src"}}')
    response = await begin().discover(ask())
    assert (response.tier, response.confidence) == (3, "medium")
    assert (response.user_options[0].tool.name, response.user_options[0].recommended) == ("eslint", True)
    await begin().prefer("linter", "eslint")
    [chosen] = (await begin().discover(ask("s2"))).tools
    assert (chosen.source, chosen.run_command) == ("user_choice", "npx eslint .")


async def test_a_tool_that_is_named_for_another_language_is_not_offered(root: Path, begin: Open) -> None:
    for name in ("a.py", "b.py"):
        (root / name).touch()
    (root / "package.json").write_text('{"devDependencies": {"eslint": "9"}}')
    response = await begin().discover(ask())
    assert [tool.name for tool in response.tools] == ["ruff"]
    assert "eslint" not in {option.tool.name for option in response.user_options}


@pytest.mark.req("SYL-38", "O10")
async def test_only_a_change_of_a_configuration_or_a_wish_scans_again(root: Path, begin: Open) -> None:
    (root / "ruff.toml").write_text("line-length = 100\n")
    discovery = begin()
    for session in ("s1", "s2", "s1"):
        await discovery.discover(ask(session))
    assert discovery.scans == 1
    (root / "readme.md").write_text("nothing to do with it")
    await discovery.discover(ask())
    assert discovery.scans == 1
    (root / "ruff.toml").write_text("line-length = 120\n")
    await discovery.discover(ask())
    assert discovery.scans == 2
    await discovery.discover(ask(), force_refresh=True)
    assert discovery.scans == 3
    (root / "ruff.toml").unlink()
    (root / "setup.cfg").write_text("[flake8]\n")
    assert [tool.name for tool in (await discovery.discover(ask())).tools] == ["flake8"]
    fresh = begin()
    await fresh.discover(ask("s9"))
    assert (discovery.scans, fresh.scans) == (4, 0)


@pytest.mark.req("SYL-38")
async def test_another_branch_or_commit_scans_again(repository: Repository, begin: Open) -> None:
    repository.commit("first", {"ruff.toml": ""})
    discovery = begin(at=repository.root)
    await discovery.discover(ask())
    await discovery.discover(ask())
    assert discovery.scans == 1
    repository.git("checkout", "-q", "-b", "other")
    await discovery.discover(ask())
    assert discovery.scans == 2
    repository.commit("second")
    await discovery.discover(ask())
    await discovery.discover(ask())
    assert discovery.scans == 3


@pytest.mark.req("SYL-38")
async def test_the_entry_has_the_fields_that_were_promised(
    root: Path, begin: Open, trail: Trail, me: Principal, stranger: Principal, clock: ManualClock
) -> None:
    (root / "a.py").touch()
    await begin().prefer("linter", "ruff")
    await begin().discover(ask())
    [kept] = (await trail.records.list(Selector(schema_name=SCHEMA), by=me)).items
    entry = msgspec.convert(kept.context, ToolDiscoveryEntry)
    assert (entry.id, entry.category, entry.session_id) == (kept.id, "tool_discovery", "s1")
    assert (entry.project_path, entry.discovered_at, entry.tier) == (str(root.resolve()), clock.now(), 3)
    assert ([tool.name for tool in entry.tools], entry.user_overrides) == (["ruff"], {"python": "ruff"})
    assert (await ToolDiscovery(root, trail, clock, stranger).discover(ask())).requires_user


@pytest.mark.req("SYL-38", "SYL-106")
async def test_another_preference_is_followed_at_once(
    root: Path, begin: Open, trail: Trail, me: Principal, clock: ManualClock
) -> None:
    (root / "a.py").touch()
    discovery = begin()
    await discovery.prefer("linter", "ruff")
    await discovery.discover(ask())
    await UserPreferences(trail, me, clock).set_preference("devtools/linter/python", "pylint")
    assert [tool.name for tool in (await discovery.discover(ask())).tools] == ["pylint"]


@pytest.mark.parametrize("target", ["..", "/", "a/../../b", "link", "\0"])
async def test_a_target_outside_of_the_project_is_refused(root: Path, begin: Open, target: str) -> None:
    (root / "link").symlink_to(root.parent)
    with pytest.raises(InvalidInput, match="target_path"):
        await begin().discover(ask(target_path=target))


@pytest.mark.parametrize("name", ["", "custom", "  "])
async def test_a_choice_without_a_tool_is_refused_and_not_kept(begin: Open, name: str) -> None:
    with pytest.raises(InvalidInput, match="names no tool"):
        await begin().prefer("linter", name)
    assert (await begin().discover(ask())).requires_user
