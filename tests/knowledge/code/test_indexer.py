"""Indexing: only changed files, any content, and continuation after any interruption."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from clew.errors import NotFound
from clew.knowledge.code.file_content import MAX_BYTES, ParseJob, readable_text
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.pool import BATCH, IN_FLIGHT, POOL_FROM, Pool
from clew.knowledge.code.rows import decode_facts, find_files
from clew.secrecy import mask_in_place
from tests.knowledge.code.repositories import git, make_repository, write
from tests.knowledge.code.sample_project import SAMPLE, opened


def many(count: int) -> dict[str, str]:
    return {f"pkg/m{at}.py": f"def f{at}():\n    return {at}\n" for at in range(count)}


async def test_all_files_are_taken_in_and_then_only_what_changed(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    async with opened(root) as graph:
        first = await graph.refresh()
        assert (first.files, len(first.changed), first.parsed) == (6, 6, 6)
        again = await graph.refresh()
        assert (again.changed, again.gone, again.parsed) == ([], [], 0)
        write(root, "shop/prices.py", "def other():\n    pass\n")
        (root / "web/app.js").unlink()
        changed = await graph.refresh()
        assert (changed.changed, changed.gone) == (["shop/prices.py"], ["web/app.js"])


@pytest.mark.req("SYL-62")
async def test_touching_a_file_changes_nothing(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    async with opened(root) as graph:
        await graph.refresh()
        os.utime(root / "shop/prices.py")
        (root / "shop/basket.py").chmod(0o755)
        assert (await graph.refresh()).changed == []
        assert await graph.update(["shop/prices.py", "shop/basket.py"]) == []


async def test_a_content_that_was_seen_is_never_parsed_again(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", many(40))
    git(root, "checkout", "-q", "-b", "other")
    for at in range(40):
        write(root, f"pkg/m{at}.py", f"def g{at}():\n    return {at}\n")
    git(root, "commit", "-qam", "other")
    async with opened(root) as graph:
        assert (await graph.refresh()).parsed == 40
        git(root, "checkout", "-q", "main")
        assert (await graph.refresh()).parsed == 40
        for branch in ("other", "main", "other"):
            git(root, "checkout", "-q", branch)
            done = await graph.refresh()
            assert (len(done.changed), done.parsed) == (40, 0)
        os.rename(root / "pkg/m1.py", root / "pkg/moved.py")
        assert (await graph.refresh()).parsed == 0
        assert (await graph.symbol("pkg/moved.py#g1")).line_start == 1


async def test_progress_is_reported_with_counts(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", many(70))
    told: list[tuple[int, int, str]] = []
    async with opened(root) as graph:
        await graph.refresh(lambda done, total, what: told.append((done, total, what)))
    reading = [(done, total) for done, total, what in told if what == "reading"]
    assert reading == [(18, 70), (36, 70), (54, 70), (70, 70)]
    assert told[0][2] == "looking"


async def test_files_that_are_not_for_reading_are_left_out_and_come_back(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "def f():\n    pass\n"})
    write(root, "big.py", b"x = 1\n" * (MAX_BYTES // 6 + 1))
    write(root, "binary.py", b"def f():\n\0\0\xff\xfe")
    write(root, "empty.py")
    async with opened(root) as graph:
        await graph.refresh()
        assert {file.path for file in await graph.files()} == {"a.py", "empty.py"}
        write(root, "binary.py", "def now_text():\n    pass\n")
        assert (await graph.symbol("binary.py#now_text")).line_start == 1


async def test_a_file_that_comes_to_hold_a_private_key_is_forgotten(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"deploy.py": "def connect_quickly():\n    pass\n"})
    async with opened(root) as graph:
        await graph.refresh()
        assert await graph.search("connect_quickly")
        body = "\n".join("MIIEowIBAAKCAQEA" + "abcdefgh" * 6 for _ in range(20))
        write(root, "deploy.py", f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n")
        await graph.refresh()
        assert await graph.search("connect_quickly") == []
        for secret in ("MIIEowIBAAKCAQEA", "abcdefgh" * 6):
            assert all(secret not in repr(hit) for hit in await graph.search(secret))


@pytest.mark.parametrize(
    "key",
    [
        "sk-" + "a1B2" * 6,
        *(f"gh{kind}_" + "a1B2" * 9 for kind in "pousr"),
        "github_pat_" + "a1B2" * 9,
        "xoxb-" + "1234567890-abc",
        "AKIA" + "ABCD" * 4,
        "eyJ" + "abcd" * 4 + "." + "abcd" * 4 + ".abcd",
        "AIza" + "a1B2" * 9,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAabcdefgh\n-----END RSA PRIVATE KEY-----",
        "postgres://ann:geheim-word@db.example.org/x",
        "https://0123456789abcdef0123456789@example.org/x",
    ],
)
def test_every_kind_of_key_is_masked_before_anything_is_kept(key: str) -> None:
    text = f"# about\nVALUE = '{key}'\nend = 1\n"
    shown = readable_text(text.encode())
    assert shown == mask_in_place(text) != text
    assert shown.count("\n") == text.count("\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
async def test_a_file_that_may_not_be_read_is_read_once_it_may(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "def f():\n    pass\n"})
    (root / "a.py").chmod(0)
    async with opened(root) as graph:
        await graph.refresh()
        assert await graph.files() == []
        (root / "a.py").chmod(0o644)
        assert (await graph.symbol("a.py#f")).name == "f"


async def test_files_that_vanish_while_all_are_read_are_not_there(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", many(80))

    def meddle(done: int, total: int, what: str) -> None:
        if what == "looking":
            return
        for at in range(60, 80):
            (root / f"pkg/m{at}.py").unlink(missing_ok=True)

    async with opened(root) as graph:
        await graph.refresh(meddle)
        await graph.refresh()
        assert len(await graph.files()) == 60
        with pytest.raises(NotFound):
            await graph.symbol("pkg/m70.py#f70")


async def test_hostile_contents_harm_nobody(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"good.py": "def good():\n    pass\n"})
    write(root, "deep.py", "(" * 20_000)
    write(root, "cut.py", "def f(:\n  '''")
    write(root, "latin.py", "# caf\xe9\ndef latin():\n    pass\n".encode("latin-1"))
    write(root, "long.js", "var a=" + "1+" * 200_000 + "1;")
    write(root, "crlf.py", "def windows():\r\n    pass\r\n")
    write(root, "bom.py", b"\xef\xbb\xbfdef marked():\n    pass\n")
    async with opened(root) as graph:
        await graph.refresh()
        assert (await graph.symbol("good.py#good")).line_end == 2
        assert (await graph.symbol("latin.py#latin")).line_start == 2
        assert (await graph.symbol("crlf.py#windows")).line_start == 1


def test_a_worker_that_dies_takes_one_file_with_it() -> None:
    pool = Pool(workers=1)
    try:
        jobs = [ParseJob(b"def f():\n    pass\n", "python"), ParseJob(b"def g():\n    pass\n", "python")]
        pool.submit(jobs[:1]).result()
        os.kill(pool._all[0].process.pid, signal.SIGKILL)
        found = [decode_facts(parsed.facts) for parsed in pool.submit(jobs).result()]
        assert [facts.symbols[0].name for facts in found] == ["f", "g"]
    finally:
        pool.close()


def test_a_worker_that_dies_of_a_flow_still_gives_the_facts() -> None:
    with Pool(workers=1) as pool:
        job = ParseJob(b"def f():\n    pass\n", "python", has_flow=True)
        (whole,) = pool.submit([job]).result()
        os.kill(pool._all[0].process.pid, signal.SIGKILL)
        (parsed,) = pool.submit([job]).result()
    assert whole.summary
    assert parsed == whole._replace(summary=b"")


@pytest.mark.parametrize("files", [2, POOL_FROM])
async def test_reading_before_following_gives_the_same_calls(files: int, tmp_path: Path) -> None:
    code = {f"pkg/m{at}.py": f"def f{at}():\n    pass\n" for at in range(files)}
    code["main.py"] = "from pkg import m1\n\n\ndef run():\n    call = m1.f1\n    call()\n"
    root = make_repository(tmp_path / "r", code)
    async with opened(root) as graph:
        await graph.refresh(until="read")
        with graph.store.reading() as sql:
            assert not sql.execute("SELECT count(*) FROM blobs WHERE summary = x''").fetchone()[0]
        await graph.follow()
        (called,) = (await graph.callers("f1")).symbols
        assert [link.node.name for link in called.callers] == ["run"]
        assert graph.is_current


def test_a_content_that_no_worker_survives_has_an_error() -> None:
    pool = Pool(workers=1, seconds=0.0)
    try:
        (parsed,) = pool.submit([ParseJob(b"x = 1\n" * 10, "python")]).result()
        facts: FileFacts = decode_facts(parsed.facts)
        assert "survive" in facts.error or facts.lines >= 10
    finally:
        pool.close()


_INDEX = """
import asyncio, sys
from pathlib import Path
from clew.clock import ManualClock
from clew.knowledge.code.graph import open_code

async def main(root):
    def report(done, total, what):
        print(what, done, flush=True)
    async with open_code(root / ".clew", root, ManualClock(), None) as graph:
        print("done", (await graph.refresh(report)).parsed, flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


def start(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _INDEX, str(root)], stdout=subprocess.PIPE, text=True)


@pytest.mark.req("BEY-11")
async def test_a_killed_index_pass_continues_where_it_was(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", many(240))
    with start(root) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("reading"):
                process.kill()
                break
    async with opened(root) as graph:
        with graph.store.reading() as sql:
            known = list(find_files(sql, many(240)))
        assert known
        assert not graph.is_whole
        done = await graph.refresh()
        assert done.parsed == 240 - len(known)
        assert (await graph.symbol(f"{known[0]}#f{known[0][5:-3]}")).line_start == 1
        assert graph.is_whole
        assert len(await graph.files()) == 240


async def test_two_processes_parse_every_file_once(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", many(200))
    with start(root) as first, start(root) as second:
        outputs = [process.communicate()[0].split("\n") for process in (first, second)]
    parsed = sorted(int(line.split()[1]) for lines in outputs for line in lines if line.startswith("done"))
    assert parsed == [0, 200]


async def test_questions_are_answered_while_all_is_still_being_read(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", many(300))
    has_begun, may_go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def report(done: int, total: int, what: str) -> None:
        if what == "reading" and not has_begun.is_set():
            loop.call_soon_threadsafe(has_begun.set)
            asyncio.run_coroutine_threadsafe(may_go_on.wait(), loop).result()

    async with opened(root) as graph:
        refreshing = asyncio.create_task(graph.refresh(report))
        await has_begun.wait()
        assert not graph.is_whole
        assert (await graph.symbol("pkg/m0.py#f0")).line_start == 1
        assert await graph.search("f0")
        assert await graph.dependents("pkg/m0.py#f0") == []
        may_go_on.set()
        assert (await refreshing).files == 300


async def test_a_large_project_is_linked_elsewhere_and_stays_right(tmp_path: Path) -> None:
    chain = {f"pkg/m{at}.py": f"from pkg.m{at + 1} import f as g\n\n\ndef f():\n    return g()\n" for at in range(250)}
    root = make_repository(tmp_path / "r", {**chain, "pkg/__init__.py": "", "pkg/m250.py": "def f():\n    pass\n"})
    async with opened(root) as graph:
        await graph.refresh()
        links = await graph.dependents("pkg/m250.py#f", edge_type="calls", depth=3)
        assert [(link.node.path, link.depth) for link in links] == [
            ("pkg/m249.py", 1),
            ("pkg/m248.py", 2),
            ("pkg/m247.py", 3),
        ]
        write(root, "pkg/m248.py", "def f():\n    pass\n")
        links = await graph.dependents("pkg/m250.py#f", edge_type="calls", depth=3)
        assert [link.node.path for link in links] == ["pkg/m249.py"]


async def test_closing_ends_a_refresh_that_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repository(tmp_path / "r", many(300))
    reading, release, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]  # a real one, kept to be looked at
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            started.append(self)

    def hold(done: int, total: int, what: str) -> None:
        if what == "reading":
            loop.call_soon_threadsafe(reading.set)
            assert release.wait(30)

    async with AsyncExitStack() as stack:
        graph = await stack.enter_async_context(opened(root))
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", Noted)
            refreshing = asyncio.create_task(graph.refresh(hold))
            await reading.wait()
        workers = [each for each in started if "pool import serve" in str(each.args)]
        assert workers
        assert [each.poll() for each in workers] == [None] * len(workers)
        closing = asyncio.create_task(stack.aclose())
        await asyncio.sleep(0)  # it has asked the refresh to end by now, and waits for it
        assert not refreshing.done()
        release.set()
        await closing
        ended = await refreshing
    assert 0 < ended.parsed <= (IN_FLIGHT + 1) * BATCH < 300
    assert all(each.poll() is not None for each in workers)
    async with opened(root) as graph:
        assert not graph.is_whole
        assert (await graph.refresh()).parsed == 300 - ended.parsed
        assert graph.is_whole
