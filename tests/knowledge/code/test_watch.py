"""Files that change while a program runs: one call for each change, and no missed change."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.errors import NotFound
from clew.knowledge.code.graph import DENIAL_SECONDS, CodeGraph
from clew.knowledge.code.watch import CodeWatch
from tests.knowledge.code.repositories import git, make_repository, write
from tests.knowledge.code.sample_project import SAMPLE, opened

SECONDS = 30.0


class Heard:
    """The reports of a watch, and waits for them."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], bool]] = []
        self._more = asyncio.Condition()

    async def __call__(self, paths: Sequence[str], bulk: bool) -> None:
        async with self._more:
            self.calls.append((list(paths), bulk))
            self._more.notify_all()

    async def until(self, path: str) -> None:
        """Wait until a file was told of."""
        async with asyncio.timeout(SECONDS), self._more:
            await self._more.wait_for(lambda: any(path in paths for paths, _ in self.calls))

    def times(self, path: str) -> int:
        return sum(path in paths for paths, _ in self.calls)


async def is_gone(graph: CodeGraph, ref: str) -> bool:
    try:
        await graph.symbol(ref)
    except NotFound:
        return True
    return False


@pytest.mark.req("SYL-62")
async def test_files_that_are_written_added_and_removed_are_kept_in_step(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        heard.calls.clear()
        write(root, "shop/prices.py", "def cheaper():\n    pass\n")
        await heard.until("shop/prices.py")
        assert (await graph.search("cheaper"))[0].node.path == "shop/prices.py"
        write(root, "shop/fresh.py", "def brand_new():\n    pass\n")
        await heard.until("shop/fresh.py")
        assert (await graph.search("brand_new"))[0].node.path == "shop/fresh.py"
        os.unlink(root / "shop/fresh.py")
        write(root, "end.py")
        await heard.until("end.py")
        assert await is_gone(graph, "shop/fresh.py#brand_new")
        assert not any(bulk for _, bulk in heard.calls)


@pytest.mark.req("SYL-62")
async def test_five_rapid_writes_are_one_change_and_a_touch_is_none(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        heard.calls.clear()
        for at in range(5):
            write(root, "shop/prices.py", f"def f{at}():\n    pass\n")
        (root / "shop/basket.py").chmod(0o755)
        os.utime(root / "shop/checkout.py")
        await heard.until("shop/prices.py")
        write(root, "end.py")
        await heard.until("end.py")
        assert heard.times("shop/prices.py") == 1
        assert heard.times("shop/basket.py") == heard.times("shop/checkout.py") == 0


@pytest.mark.req("SYL-62")
async def test_folders_that_are_left_out_are_not_heard_of(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "", ".gitignore": "*.log\nout/\n"})
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        heard.calls.clear()
        for name in (".git", "node_modules", "vendor", "__pycache__", ".idea", ".vscode", "dist", "build", ".cache"):
            write(root, f"{name}/x.py")
        write(root, "out/y.py")
        write(root, "z.log")
        write(root, "end.py")
        await heard.until("end.py")
        assert heard.calls == [(["end.py"], False)]


@pytest.mark.req("SYL-62")
async def test_new_folders_and_moved_ones_are_followed(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        heard.calls.clear()
        (root / "empty").mkdir()
        write(root, "one/two/deep.py", "def deep():\n    pass\n")
        await heard.until("one/two/deep.py")
        write(root, "one/two/later.py", "def later():\n    pass\n")
        await heard.until("one/two/later.py")
        write(root, "empty/first.py", "def first():\n    pass\n")
        await heard.until("empty/first.py")
        os.rename(root / "shop", root / "store")
        await heard.until("store/prices.py")
        assert (await graph.symbol("store/prices.py#add_tax")).name == "add_tax"
        assert await is_gone(graph, "shop/prices.py#add_tax")


@pytest.mark.req("SYL-62")
async def test_a_folder_that_goes_and_comes_back_is_followed_every_time(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        for at in range(3):
            heard.calls.clear()
            write(root, "z/x.py", f"def in_z_{at}():\n    pass\n")
            await heard.until("z/x.py")
            assert (await graph.symbol(f"in_z_{at}")).path == "z/x.py"
            heard.calls.clear()
            shutil.rmtree(root / "z")
            await heard.until("z/x.py")
            assert await is_gone(graph, f"in_z_{at}")


@pytest.mark.req("SYL-62")
async def test_a_folder_that_another_takes_the_place_of_is_watched_anew(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "x = 1\n", "z/x.py": "def first():\n    pass\n"})
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        for at in range(3):
            heard.calls.clear()
            shutil.rmtree(root / "z")
            write(root, f"z/y{at}.py", f"def in_place_{at}():\n    pass\n")
            await heard.until(f"z/y{at}.py")
            assert (await graph.symbol(f"in_place_{at}")).path == f"z/y{at}.py"


@pytest.mark.req("SYL-63")
@pytest.mark.parametrize(("count", "bulk"), [(101, True), (99, False)])
async def test_more_than_a_hundred_files_are_one_bulk_change(tmp_path: Path, count: int, bulk: bool) -> None:
    root = make_repository(tmp_path / "r", {f"m{at}.py": f"a = {at}\n" for at in range(count)})
    git(root, "checkout", "-q", "-b", "other")
    for at in range(count):
        write(root, f"m{at}.py", f"def f{at}():\n    pass\n")
    git(root, "commit", "-qam", "other")
    git(root, "checkout", "-q", "main")
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        heard.calls.clear()
        git(root, "checkout", "-q", "other")
        for at in (0, count - 1):
            await heard.until(f"m{at}.py")
        told = sorted(path for paths, _ in heard.calls for path in paths)
        assert told == sorted(f"m{at}.py" for at in range(count))
        assert [was_bulk for _, was_bulk in heard.calls] == [bulk] * len(heard.calls)
        assert len(heard.calls) == 1 or not bulk
        assert (await graph.symbol("m7.py#f7")).line_end == 2


async def test_a_rule_that_changes_changes_what_counts(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    write(root, "made.py", "def made():\n    pass\n")
    heard = Heard()
    async with opened(root) as graph, CodeWatch(graph, heard):
        heard.calls.clear()
        write(root, ".gitignore", "made.py\n")
        await heard.until("made.py")
        assert await is_gone(graph, "made.py#made")


async def test_without_watches_the_graph_looks_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})

    def refuse(*places: str, **options: object) -> object:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr("watchfiles.awatch", refuse)
    async with opened(root) as graph, CodeWatch(graph, Heard()):
        assert not graph.is_watched
        write(root, "a.py", "def seen():\n    pass\n")
        assert (await graph.symbol("a.py#seen")).line_start == 1


async def test_a_watch_that_is_closed_twice_says_nothing_more(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    heard = Heard()
    async with opened(root) as graph:
        watch = CodeWatch(graph, heard)
        await watch.open()
        await watch.close()
        await watch.close()
        heard.calls.clear()
        assert not graph.is_watched
        write(root, "a.py", "x = 2\n")
        await graph.refresh()
        assert heard.calls == []


async def test_a_name_that_was_just_given_is_not_denied_before_the_watch_tells_of_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"shop.py": "def old():\n    pass\n"})
    async with opened(root) as graph, CodeWatch(graph, Heard()):
        await asyncio.sleep(DENIAL_SECONDS)
        write(root, "shop.py", "def just_renamed():\n    pass\n\n\njust_renamed()\n")
        assert (await graph.symbol("just_renamed")).path == "shop.py"
        assert (await graph.callers("just_renamed")).symbols[0].node.path == "shop.py"
