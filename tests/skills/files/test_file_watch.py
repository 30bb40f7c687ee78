"""A change of a definition is found without a restart."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clew.errors import Busy
from clew.skills.files.file_watch import FileWatch, homes_of, is_home
from clew.skills.formats.collection import Collected, collect
from tests.skills.definition_trees import markdown, write

PATIENCE = 60.0


def skill(about: str) -> str:
    return markdown("Do it.", description=about)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Look again until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not await is_so():
            await asyncio.sleep(0.05)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "root", {".claude/skills/plots/SKILL.md": skill("Plot data as charts")})


class Following:
    """Stores the skills of a folder that a watch reported."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._collected = Collected()
        self.watch = FileWatch(root, self._read, lambda: homes_of(self._collected.skills))

    async def has(self, name: str, about: str) -> bool:
        return (name, about) in [(each.name, each.description) for each in self._collected.skills]

    async def lacks(self, name: str, about: str) -> bool:
        return not await self.has(name, about)

    async def _read(self) -> None:
        self._collected = await asyncio.to_thread(collect, self._root)


async def test_new_changed_and_removed_skills_are_seen_without_a_restart(root: Path) -> None:
    found = Following(root)
    async with found.watch:
        assert await found.has("plots", "Plot data as charts")
        write(root, {".claude/skills/orchids/SKILL.md": skill("Grow orchids")})
        await until(lambda: found.has("orchids", "Grow orchids"))
        write(root, {".claude/skills/orchids/SKILL.md": skill("Breed penguins")})
        await until(lambda: found.has("orchids", "Breed penguins"))
        shutil.rmtree(root / ".claude/skills/orchids")
        await until(lambda: found.lacks("orchids", "Breed penguins"))


async def test_new_folders_are_watched(tmp_path: Path) -> None:
    found = Following(tmp_path)
    async with found.watch:
        write(tmp_path, {".clew/skills/orchids/SKILL.md": skill("Grow orchids")})
        await until(lambda: found.has("orchids", "Grow orchids"))
        shutil.rmtree(tmp_path / ".clew")
        write(tmp_path, {".clew/skills/penguins/SKILL.md": skill("Breed penguins")})
        await until(lambda: found.has("penguins", "Breed penguins"))


async def test_skills_deep_in_a_repository_are_watched(tmp_path: Path) -> None:
    write(tmp_path, {"packages/a/skills/one/SKILL.md": skill("Plot data as charts")})
    found = Following(tmp_path)
    async with found.watch:
        assert homes_of(collect(tmp_path).skills) == {"packages/a/skills"}
        write(tmp_path, {"packages/a/skills/two/SKILL.md": skill("Grow orchids")})
        await until(lambda: found.has("two", "Grow orchids"))


async def test_nothing_is_done_once_it_is_closed_and_it_can_be_opened_again(root: Path) -> None:
    calls: list[int] = []

    async def note() -> None:
        calls.append(1)

    watch = FileWatch(root, note)
    await watch.close()
    await watch.open()
    await watch.open()
    assert len(calls) == 1
    await watch.close()
    await watch.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "clew-watch"]
    write(root, {".claude/skills/more/SKILL.md": skill("More")})
    assert len(calls) == 1
    await watch.open()
    assert len(calls) == 2
    await watch.close()


@pytest.mark.parametrize(
    ("path", "is_so"),
    [
        ("/r/.clew", True),
        ("/r/.clew/skills", True),
        ("/r/SKILL.md", True),
        ("/r/src/AGENTS.md", True),
        ("/r/.clew/trail.db", False),
        ("/r/a", False),
    ],
)
def test_other_files_beside_the_definitions_trigger_nothing(path: str, is_so: bool) -> None:
    assert is_home(path) is is_so


async def test_an_error_of_one_change_does_not_stop_the_next(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    async def fail_first() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise Busy("the trail is busy")

    async with FileWatch(root, fail_first):
        assert "the trail is busy" in caplog.text
        write(root, {".claude/skills/plots/SKILL.md": skill("Changed")})

        async def is_noticed() -> bool:
            return len(calls) >= 2

        await until(is_noticed)


async def test_an_error_of_the_program_is_not_swallowed(root: Path) -> None:
    async def break_down() -> None:
        raise ZeroDivisionError

    watch = FileWatch(root, break_down)
    with pytest.raises(ZeroDivisionError):
        await watch.open()
    with pytest.raises(ZeroDivisionError):
        await watch.close()


def test_homes_are_the_parent_folders_of_definitions(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "one/SKILL.md": markdown("x", description="One"),
            "a/skills/two/SKILL.md": markdown("x", description="Two"),
            ".claude/agents/three.md": markdown("x", name="three", description="Three"),
        },
    )
    found = collect(tmp_path)
    assert homes_of((*found.skills, *found.agents)) == {"one", "a/skills", ".claude/agents"}


async def test_folders_with_rules_are_watched(tmp_path: Path) -> None:
    write(tmp_path, {"src/deep/AGENTS.md": "Be brief.", "src/deep/other.py": ""})
    seen: list[str] = []

    async def note() -> None:
        seen.append((tmp_path / "src/deep/AGENTS.md").read_text())

    async with FileWatch(tmp_path, note, rules=lambda: ("src/deep", "gone")):
        assert seen == ["Be brief."]
        write(tmp_path, {"src/deep/AGENTS.md": "Be kind."})

        async def is_noticed() -> bool:
            return seen[-1] == "Be kind."

        await until(is_noticed)


async def test_an_interrupted_open_leaves_nothing_behind(root: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        await go_on.wait()

    opening = asyncio.create_task(FileWatch(root, wait).open())
    await begun.wait()
    opening.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "clew-watch"]
