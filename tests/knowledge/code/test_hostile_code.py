"""Code that attacks its parser: without the limits, each sample takes minutes or kills the process."""

from __future__ import annotations

import gc
import io
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from clew.errors import NotFound
from clew.knowledge.code import index, pool
from clew.knowledge.code.file_content import ParseJob
from clew.knowledge.code.languages.extract import extract, is_hard
from clew.knowledge.code.languages.fact_builder import MAX_SYMBOLS
from clew.knowledge.code.linking.link_worker import Links, serve
from clew.knowledge.code.linking.linker import Linker
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.pool import GIVEN_UP, MORE_MEMORY, NOT_SURVIVED, POOL_FROM, Pool, run_job, run_jobs
from clew.knowledge.code.python_calls.program import PythonFlow
from clew.knowledge.code.python_calls.summary import FlowSummary
from clew.knowledge.code.rows import decode_facts
from clew.knowledge.code.search.passages import split_comments
from clew.knowledge.code.search.words import parse_issue_text
from clew.knowledge.code.watch import CodeWatch
from clew.knowledge.project.style import _CASES
from tests.knowledge.code.linked_projects import edges_of, facts
from tests.knowledge.code.programs import callers, flow_of
from tests.knowledge.code.repositories import make_repository, write
from tests.knowledge.code.sample_project import opened

PATIENCE = 1_000
"""A worker may take this many times its processor time on the clock, since the machine may be busy."""


def test_1_000_classes_above_each_other_are_followed() -> None:
    chain = "".join(f"class A{at}(A{at - 1}):\n    pass\n" for at in range(1, 1_000))
    main = f"class A0:\n    def run(self): pass\n{chain}def near():\n    A9().run()\ndef far():\n    A999().run()\n"
    assert callers(main)["A0.run"] == {"near"}


def test_classes_in_a_circle_are_followed() -> None:
    assert callers("class A(B):\n    def run(self): pass\nclass B(A): pass\nB().run()\n")["A.run"] == {"<main>"}


def test_modules_that_take_everything_from_each_other_are_asked_once() -> None:
    everything = "".join(f"from m{at} import *\n" for at in range(30))
    flow = flow_of(**{f"m{at}": f"{everything}missing()\n" for at in range(30)})
    assert flow.calls("m0.py") == []


def test_a_name_that_1_000_files_pass_on_is_linked() -> None:
    files = {f"r{at}.py": facts("python", imports=[(f"r{at + 1}", "g", "g")]) for at in range(1_000)}
    files["r1000.py"] = facts("python", symbols={"g": "function"})
    found = edges_of(files, "imports")
    assert "r980.py# -> r1000.py#g" in found


def test_classes_with_many_ways_upwards_are_asked_once() -> None:
    rows = range(9)
    symbols = {f"B{row}_{at}": "interface" for row in rows for at in range(9)}
    uses = [
        ("inherit", f"B{row - 1}_{above}", f"B{row}_{at}") for row in rows[1:] for at in range(9) for above in range(9)
    ]
    calls = [("call", "this.nothing", f"B8_{at}") for at in range(9)]
    assert edges_of({"A.java": facts("java", symbols=symbols, uses=[*uses, *calls])}, "calls") == set()


async def test_a_method_is_looked_for_once_in_classes_with_many_ways_upwards(tmp_path: Path) -> None:
    rows = [", ".join(f"B{row}_{at}" for at in range(9)) for row in range(9)]
    text = "".join(f"class B{row}_{at}({rows[row - 1] if row else ''}): pass\n" for row in range(9) for at in range(9))
    async with opened(make_repository(tmp_path / "r", {"a.py": text})) as graph:
        await graph.refresh()
        with pytest.raises(NotFound):
            await graph.symbol("B8_0.nothing")


async def test_names_are_followed_where_values_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: PythonFlow, summaries: object, **_: object) -> None:
        if summaries:
            raise RecursionError
        begin(self, {})

    begin = PythonFlow.__init__
    monkeypatch.setattr(PythonFlow, "__init__", fail)
    root = make_repository(tmp_path / "r", {"a.py": "def f(): pass\ndef g():\n    f()\n"})
    async with opened(root) as graph:
        await graph.refresh()
        found = await graph.callers("a.py#f")
        assert "g" in str(found)


async def test_watching_goes_on_after_what_nobody_foresaw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError

    async def told(paths: Sequence[str], is_bulk: bool) -> None:
        return None

    root = make_repository(tmp_path / "r", {"a.py": "def f(): pass\n"})
    async with opened(root) as graph:
        with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
            broken.setattr(Linker, "__init__", fail)
            async with CodeWatch(graph, told):
                assert "RecursionError" in caplog.text
        async with CodeWatch(graph, told):
            write(root, "b.py", "def late(): pass\n")
            await graph.refresh()
            assert await graph.locate("late")


@pytest.mark.parametrize("language", ["python", "javascript", "rust", "ruby"])
@pytest.mark.parametrize("text", ['x = "' + '\\"' * 150_000, "x = '" + "\\'" * 150_000, '"\\' * 150_000])
def test_a_string_without_an_end_is_split_from_the_code(language: str, text: str) -> None:
    code, prose = split_comments(text, language)
    assert len(code) + len(prose) >= len(text)


def test_a_string_without_an_end_ends_with_its_line() -> None:
    assert split_comments("a = 'open\nb = 1", "python") == ("a =  \nb = 1", "'open")
    assert split_comments("let a = '\"'; let b = 1;", "rust") == ("let a =  ; let b = 1;", "'\"'")


def test_decorators_without_end_are_read() -> None:
    assert extract(b"@a\n" * 90_000 + b"function f() {}", "javascript").symbols


def test_more_symbols_than_anybody_writes_are_cut_and_that_is_said() -> None:
    found = extract(b"def f(): pass\n" * (MAX_SYMBOLS + 10), "python")
    assert len(found.symbols) == MAX_SYMBOLS
    assert "than the limit" in found.error


@pytest.mark.parametrize("before", [b"", b"class A { void f() { g(); } }\n" * 500])
def test_a_content_that_takes_a_parser_long_costs_its_worker(before: bytes) -> None:
    easy = ParseJob(b"def f(): pass\n", "python")
    hard = ParseJob(before + b"a<\n" * 60_000, "java")
    with Pool(1, seconds=0.5, patience=PATIENCE) as workers:
        first, found, last = run_jobs([easy, hard, easy], workers)
    assert first == last == run_job(easy)
    assert decode_facts(found.facts).error == "its parser did not survive it"


def bomb(number: int, unit: str = "%w(") -> str:
    """Code for which a Go parser needs a minute and 4 GB."""
    text = unit * 20_000
    return "\n".join(text[at : at + 1_000] for at in range(0, len(text), 1_000)) + f"//{number}\n"


def test_a_file_that_kills_the_parser_is_tried_three_times() -> None:
    hard = [ParseJob(bomb(at).encode(), "go") for at in range(6)]
    easy = [ParseJob(b"package a\n\nfunc F() {}\n", "go"), ParseJob(b"def f(): pass\n", "python")]
    with Pool(1, seconds=0.5, patience=PATIENCE) as workers:
        found = workers.submit([*hard, *easy]).result()
    assert [decode_facts(each.facts).error for each in found[:6]] == [NOT_SURVIVED] * 3 + [GIVEN_UP] * 3
    assert found[6:] == [run_job(job) for job in easy]


def test_a_worker_answers_in_time_or_not_at_all_for_the_flow_too() -> None:
    with Pool(1, seconds=0.0) as workers:
        (found,) = workers.submit([ParseJob(b"x = 1\n", "python", has_facts=False, has_flow=True)]).result()
    summary = msgspec.msgpack.decode(found.summary, type=FlowSummary)
    assert summary.error in ("", NOT_SURVIVED)
    assert found.summary


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of a process are read from /proc")
def test_a_worker_may_take_a_gigabyte_more_than_it_has() -> None:
    with Pool(1) as workers:
        workers.submit([ParseJob(b"x = 1\n", "python")]).result()
        limits = Path(f"/proc/{workers._all[0].process.pid}/limits").read_text("ascii")
    (line,) = (line for line in limits.split("\n") if line.startswith("Max address space"))
    assert MORE_MEMORY < int(line.split()[3]) < 2 * MORE_MEMORY


@pytest.mark.parametrize(("files", "easy"), [(1, 1), (4, POOL_FROM)], ids=["one", "in a pool"])
async def test_files_that_no_parser_survives_are_reported_once_and_remembered(
    files: int, easy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "Pool", partial(Pool, 1, 0.5, PATIENCE))
    root = make_repository(tmp_path / "r", {f"f{at}.go": bomb(at) for at in range(files)})
    for at in range(easy):
        write(root, f"easy{at}.go", f"package a\n\nfunc Easy{at}() {{}}\n")
    async with opened(root) as graph:
        assert (await graph.refresh()).parsed == files + easy
        told = [record.getMessage() for record in caplog.records]
        assert [line.partition(":")[0] for line in told] == ["f0.go" + (f" and {files - 1} more" if files > 1 else "")]
        assert NOT_SURVIVED in told[0]
        assert (await graph.symbol("easy0.go#Easy0")).line_start == 3
        write(root, "copy.go", bomb(0))
        assert (await graph.refresh()).parsed == 0


def test_code_is_not_taken_for_hard() -> None:
    place = Path(index.__file__)
    assert not [path for path in place.parent.glob("*.py") if is_hard(path.read_bytes(), "python")]
    assert not is_hard(b"", "python")
    assert not is_hard(b"x", "")
    assert is_hard(b"x = 1\n" * 100_000, "python")


@pytest.mark.parametrize("text", ["a\n" + "\n" * 19_000 + "b", "```\n" + "1" * 19_000 + "\n```"])
def test_a_question_of_any_shape_is_read(text: str) -> None:
    assert parse_issue_text(text).frames == ()


def test_a_name_of_capitals_has_a_case_or_none() -> None:
    assert not any(shape.fullmatch("a" + "A" * 190 + "$") for shape in _CASES.values())


def test_facts_of_nothing_are_nothing() -> None:
    assert run_jobs([]) == []
    assert isinstance(decode_facts(run_jobs([ParseJob(b"x", "")])[0].facts), FileFacts)


def test_the_link_process_always_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Links) -> None:
        raise KeyError("a\nb")

    monkeypatch.setattr(Links, "follow", fail)
    monkeypatch.setattr("sys.stdin", io.StringIO("follow\nlink\n"))
    try:
        serve(str(tmp_path / "code.db"), str(tmp_path))
    finally:
        gc.unfreeze()
        gc.enable()
    assert capsys.readouterr().out == "unforeseen KeyError\ndone\n"
