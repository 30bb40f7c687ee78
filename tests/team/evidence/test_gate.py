"""The completion gate refuses every false "done" and accepts every true one (BEY-10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clew.errors import InvalidInput
from clew.team.evidence.gate import TaskReview
from clew.team.evidence.masked_commands import find_mask
from tests.team.evidence.completions import (
    CORE,
    FILES,
    TASK,
    TASK_TEST,
    TEST_CORE,
    TEST_TEXT,
    TEXT,
    Bench,
    Completion,
    own_programs_first,
    run_all,
)

DONE: dict[str, str | bytes | None] = {**TASK, **TASK_TEST}
FalseCase = Callable[[Bench], Completion]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("gate"))


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", own_programs_first())


def edited(name: str, old: str, new: str) -> dict[str, str | bytes | None]:
    """The task, with one more file changed."""
    assert old in FILES[name]
    return {**DONE, name: FILES[name].replace(old, new)}


def other_task(bench: Bench) -> Completion:
    return bench.complete({**TASK, "tests/test_other.py": TASK_TEST["tests/test_double.py"]})


def with_receipts_of(bench: Bench, other: Completion, *, is_recorded: bool = True) -> Completion:
    done = bench.complete_once(DONE)
    done.receipts = other.receipts
    return done.record() if is_recorded else done


def older_version(bench: Bench) -> Completion:
    """Receipts of the first commit of a pipeline, which has a second one."""
    first = bench.complete(DONE)
    pipeline = first.claim.pipeline
    _, commit = bench.commit({"calc/core.py": CORE + "\nBROKEN = 1\n"}, pipeline)
    return bench.completion(pipeline, commit, first.receipts)


def moved_branch(bench: Bench) -> Completion:
    done = bench.complete(DONE)
    _, commit = bench.commit({"calc/core.py": CORE + "\nLATER = 1\n"}, done.claim.pipeline)
    return done.change_state(commit=commit.commit, tree=commit.tree)


def dirty_tree(bench: Bench) -> Completion:
    done = bench.complete(DONE)
    folder = Path(bench.project.trees.tree(done.claim.pipeline).folder)
    (folder / "calc/core.py").write_text("broken(")
    return done.change_claim(is_clean=bench.project.trees.status(done.claim.pipeline)[2])


def empty_change(bench: Bench) -> Completion:
    done = bench.complete({"calc/core.py": CORE})
    assert done.claim.changed == ()
    return done


def reverted_change(bench: Bench) -> Completion:
    first = bench.complete(DONE)
    pipeline = first.claim.pipeline
    files: dict[str, str | bytes | None] = {"calc/core.py": CORE, "tests/test_double.py": None}
    _, commit = bench.commit(files, pipeline)
    receipts = [msgspec.structs.replace(each, tree=commit.tree, commit=commit.commit) for each in first.receipts]
    return bench.completion(pipeline, commit, receipts)


def late_review(bench: Bench, **values: object) -> Completion:
    return bench.complete_once(DONE).change_review(**values)


FALSE: dict[str, tuple[FalseCase, str]] = {
    # reviewers
    "a crashed reviewer": (lambda b: late_review(b, status="crashed"), "did not pass"),
    "a cancelled reviewer": (lambda b: late_review(b, status="cancelled"), "did not pass"),
    "a reviewer who found defects": (lambda b: late_review(b, status="failed"), "did not pass"),
    "no reviewer": (lambda b: b.complete_once(DONE).change_state(reviews=()), "gave no verdict"),
    "a verdict on an older tree": (lambda b: late_review(b, tree="0" * 40), "older than the last change"),
    "a verdict before the last change": (
        lambda b: late_review(b, at=b.clock.now() - timedelta(days=1)),
        "older than the last change",
    ),
    "a verdict of another session": (lambda b: late_review(b, session="s2"), "another task"),
    "a verdict of another pipeline": (lambda b: late_review(b, pipeline="other.1"), "another task"),
    "a pass before a later failure": (
        lambda b: (done := b.complete_once(DONE)).change_state(
            reviews=(
                *done.state.reviews,
                msgspec.structs.replace(
                    done.state.reviews[0], status="failed", at=done.state.reviews[0].at + timedelta(seconds=1)
                ),
            )
        ),
        "did not pass",
    ),
    # receipts that are not of this run
    "no receipt": (lambda b: with_receipts_of(b, Completion(None, [], None)), "no receipt at all"),  # type: ignore[arg-type]
    "no receipt of tests": (lambda b: _only(b, "lint"), "no receipt shows that they ran"),
    "no receipt of linters": (lambda b: _only(b, "test"), "no receipt shows that they ran"),
    "receipts of another pipeline": (lambda b: with_receipts_of(b, other_task(b)), "another task"),
    "receipts of another session": (
        lambda b: b.complete_once(DONE).change_receipt("test", session="s2"),
        "another task",
    ),
    "receipts of an older commit": (older_version, "another version"),
    "receipts of another run": (
        lambda b: b.complete_once(DONE).change_state(requests=frozenset({"run-of-yesterday"})),
        "another run",
    ),
    "a receipt that nobody recorded": (
        lambda b: b.complete_once(DONE).change_state(recorded={}),
        "not written by the tools runner",
    ),
    "a receipt that the agent wrote": (
        lambda b: b.complete_once(DONE).change_receipt("test", is_recorded=False, id="made-up"),
        "not written by the tools runner",
    ),
    "an exit code that the agent changed": (
        lambda b: (
            b.complete_once(DONE)
            .change_receipt("test", exit_code=1)
            .change_receipt("test", is_recorded=False, exit_code=0)
        ),
        "not written by the tools runner",
    ),
    "counts that the agent changed": (
        lambda b: b.complete_once(DONE).change_receipt("test", is_recorded=False, tests=None),
        "not written by the tools runner",
    ),
    "a log that the agent wrote": (
        lambda b: b.complete_once(DONE).change_receipt("test", log="5 passed, written by hand"),
        "not the one that was recorded",
    ),
    "a log of another commit": (
        lambda b: b.complete_once(DONE).change_receipt("test", tree="0" * 40),
        "another version",
    ),
    # results
    "an exit code of 1": (lambda b: b.complete_once(DONE).change_receipt("test", exit_code=1), "exit code 1"),
    "a linter that fails": (lambda b: b.complete_once(DONE).change_receipt("lint", exit_code=2), "exit code 2"),
    "a run that was killed": (
        lambda b: b.complete_once(DONE).change_receipt("test", killed_by="timeout"),
        "was killed",
    ),
    "a run that a signal ended": (lambda b: b.complete_once(DONE).change_receipt("test", exit_code=-9), "exit code -9"),
    "failed tests with exit code 0": (lambda b: b.complete_once(DONE).change_tests(failed=1, passed=4), "1 of 5 tests"),
    "no test ran": (lambda b: b.complete_once(DONE).change_tests(run=0, passed=0), "ran no test"),
    "only skipped tests": (lambda b: b.complete_once(DONE).change_tests(run=0, passed=0, skipped=5), "ran no test"),
    "counts that contradict each other": (lambda b: b.complete_once(DONE).change_tests(run=9), "contradict"),
    "a check that rewrote the files": (
        lambda b: b.complete_once(DONE).change_receipt("lint", changed_tree=True),
        "changed files",
    ),
    # the change itself
    "an empty diff": (empty_change, "Nothing was changed"),
    "a change that was reverted": (reverted_change, "Nothing was changed"),
    "a dirty tree": (dirty_tree, "not committed"),
    "a branch that moved on": (moved_branch, "another commit"),
    "a claim for another task": (lambda b: b.complete_once(DONE).change_claim(pipeline="other.1"), "not for this task"),
    "tests that never import the change": (
        lambda b: b.complete({"calc/extra.py": "VALUE = 1\n"}),
        "No test loads calc/extra.py",
    ),
    "a script that no test names": (lambda b: b.complete({"web/other.js": "export const x = 1;\n"}), "No test loads"),
    # tests
    "a deleted test": (
        lambda b: b.complete(edited("tests/test_core.py", TEST_CORE[TEST_CORE.index("def test_mean_of") :], "")),
        "was deleted",
    ),
    "a deleted test file": (lambda b: b.complete({**DONE, "tests/test_text.py": None}), "test_shout was deleted"),
    "a skipped test": (
        lambda b: b.complete(edited("tests/test_core.py", "def test_add", "@pytest.mark.skip\ndef test_add")),
        "is skipped now",
    ),
    "a test that is expected to fail": (
        lambda b: b.complete(edited("tests/test_core.py", "def test_add", "@pytest.mark.xfail\ndef test_add")),
        "is skipped now",
    ),
    "a test that is skipped by a condition": (
        lambda b: b.complete(
            edited("tests/test_core.py", "def test_add", '@pytest.mark.skipif(True, reason="x")\ndef test_add')
        ),
        "is skipped now",
    ),
    "a test that skips itself": (
        lambda b: b.complete(
            edited("tests/test_core.py", "    assert add(1, 2)", "    pytest.skip()\n    assert add(1, 2)")
        ),
        "is skipped now",
    ),
    "a module that skips itself": (
        lambda b: b.complete(
            edited("tests/test_core.py", "import pytest\n", "import pytest\npytestmark = pytest.mark.skip\n")
        ),
        "is skipped now",
    ),
    "a test that returns at once": (
        lambda b: b.complete(edited("tests/test_core.py", "    assert add(1, 2)", "    return\n    assert add(1, 2)")),
        "is skipped now",
    ),
    "an assertion less": (
        lambda b: b.complete(edited("tests/test_core.py", "    assert add(-1, 1) == 0\n", "")),
        "1 assertions instead of 2",
    ),
    "an assertion that always holds": (
        lambda b: b.complete(edited("tests/test_core.py", "add(-1, 1) == 0", "True")),
        "1 assertions instead of 2",
    ),
    "an assertion with `or True`": (
        lambda b: b.complete(edited("tests/test_core.py", "add(-1, 1) == 0", "add(-1, 1) == 0 or True")),
        "1 assertions instead of 2",
    ),
    "an assertion of truth instead of a value": (
        lambda b: b.complete(edited("tests/test_core.py", "add(1, 2) == 3", "add(1, 2)")),
        "exactly",
    ),
    "fewer parameter sets": (
        lambda b: b.complete(edited("tests/test_core.py", "[1.0], [1.0, 1.0], [0.0, 2.0]", "[1.0]")),
        "1 parameter sets instead of 3",
    ),
    "a weaker unittest": (
        lambda b: b.complete(edited("tests/test_core.py", "self.assertEqual(add(0, 0), 0)", "add(0, 0)")),
        "0 assertions instead of 1",
    ),
    "a new test that asserts nothing": (
        lambda b: b.complete({**TASK, "tests/test_double.py": "import calc.core\n\n\ndef test_double():\n    pass\n"}),
        "asserts nothing",
    ),
    "a new test that is skipped": (
        lambda b: b.complete(
            {
                **TASK,
                "tests/test_double.py": "import calc.core\nimport pytest\n\n\n@pytest.mark.skip\n"
                "def test_double():\n    assert calc.core.add(1, 1) == 2\n",
            }
        ),
        "is skipped",
    ),
    "a test file that does not parse": (lambda b: b.complete({**DONE, "tests/test_text.py": "def ("}), "was deleted"),
    "a test of JavaScript that is skipped": (
        lambda b: b.complete(edited("web/sum.test.js", "test('adds'", "test.skip('adds'")),
        "is skipped now",
    ),
    "a test of JavaScript that expects nothing": (
        lambda b: b.complete(edited("web/sum.test.js", "expect(sum(1, 2)).toBe(3);", "sum(1, 2);")),
        "0 assertions",
    ),
    "a test of Go that is skipped": (
        lambda b: b.complete(edited("srv/sum_test.go", "\tif Sum", "\tt.Skip()\n\tif Sum")),
        "is skipped now",
    ),
    "a test of Rust that is ignored": (
        lambda b: b.complete(edited("rs/sum.rs", "#[test]\n", "#[test]\n#[ignore]\n")),
        "is skipped now",
    ),
    # settings of checks
    "a conftest that drops tests": (
        lambda b: b.complete(
            {**DONE, "tests/conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"}
        ),
        "decides what tests count",
    ),
    "a conftest that forces success": (
        lambda b: b.complete(
            {**DONE, "tests/conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"}
        ),
        "decides what tests count",
    ),
    "a conftest that skips what fails": (
        lambda b: b.complete(
            {
                **DONE,
                "tests/conftest.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef quick(request):\n"
                "    if 'slow' in request.node.name:\n        pytest.skip('slow')\n",
            }
        ),
        "decides what tests count",
    ),
    "a module in place of pytest": (
        lambda b: b.complete({**DONE, "pytest.py": "def console_main():\n    return 0\n"}),
        "in place of a tool",
    ),
    "a pytest.toml": (lambda b: b.complete({**DONE, "pytest.toml": '[pytest]\naddopts = ["-k", "x"]\n'}), "settings"),
    "options of pytest in pyproject.toml": (
        lambda b: b.complete(edited("pyproject.toml", "testpaths", 'addopts = "-k nothing"\ntestpaths')),
        "settings of checks",
    ),
    "rules of ruff switched off": (
        lambda b: b.complete(edited("pyproject.toml", "line-length = 100", 'line-length = 100\nexclude = ["calc"]')),
        "settings of checks",
    ),
    "a pytest.ini": (lambda b: b.complete({**DONE, "pytest.ini": "[pytest]\naddopts = --ignore=tests\n"}), "settings"),
    "another test script": (
        lambda b: b.complete(edited("package.json", '"jest"', '"true"')),
        "scripts of checks",
    ),
    # commands of the plan
    "a check of the plan that did not run": (
        lambda b: b.complete_once(DONE).change_state(checks=("make docs",)),
        "did not run",
    ),
    "a check of the plan that failed": (lambda b: b.complete_once(DONE).add_command("make docs", 2), "exit code 2"),
}
MASKED = (
    *("ruff check '--exit-zero' .", 'pytest "--collect-only"', 'test "$(pytest; echo 0)" = 0'),
    *("pytest || true", "pytest || :", "pytest; exit 0", "pytest; true", "set +e; pytest", "pytest | tee log.txt"),
    *("ruff check --exit-zero .", "pytest --continue-on-error=1 # continue-on-error", "pytest --collect-only"),
    *("cargo test --no-run", "pytest &", "bash -c 'pytest; exit 0'", 'sh -c "pytest || true"', "echo 5 passed"),
    *("pytest || echo failed", "true", "pytest\nexit 0", "trap 'exit 0' EXIT; pytest", "jest --passWithNoTests"),
    *("if pytest; then echo ok; fi", "! pytest", "pytest --co -q", "pytest --deselect tests/test_core.py::test_add"),
    *("pytest; echo done", "eval 'pytest || true'", "pytest tests --ignore=tests/test_core.py", "nohup pytest"),
)
HONEST = (
    *("pytest", "pytest -q tests", "ruff check .", "cd calc && pytest", "set -eo pipefail; pytest | tee log.txt"),
    *(
        "python -m pytest -k 'add or true'",
        "npm test",
        "go test ./...",
        "cargo test --offline",
        "make check && make docs",
    ),
    *("test -f README.md", "grep -q calc README.md", "python -c 'print(1); exit(0)'", "! gofmt -l . | grep ."),
    *('python3 -c "import calc; calc.add(1, 2)"', 'grep -q "a | b" README.md', 'python3 -c "a = 1 # one\nb = 2"'),
    *("pytest 2>&1", "FOO=1 pytest tests/test_core.py::test_add", "set -e\npytest\nruff check ."),
)


def _only(bench: Bench, kind: str) -> Completion:
    done = bench.complete_once(DONE)
    done.receipts = [each for each in done.receipts if each.kind == kind]
    return done


@pytest.mark.req("BEY-10")
@pytest.mark.parametrize("name", FALSE)
def test_a_false_completion_is_refused_with_its_reason(bench: Bench, name: str) -> None:
    make, reason = FALSE[name]
    verdict = make(bench).judge()
    assert not verdict.accepted
    assert any(reason in each for each in verdict.reasons), verdict.reasons
    assert all(each.endswith(".") and "\n" not in each for each in verdict.reasons)


@pytest.mark.req("BEY-10")
@pytest.mark.parametrize("command", MASKED)
def test_a_command_that_hides_its_failure_proves_nothing(bench: Bench, command: str) -> None:
    verdict = bench.complete_once(DONE).add_command(command).judge()
    assert not verdict.accepted
    assert any("proves nothing" in each for each in verdict.reasons)


@pytest.mark.parametrize("command", HONEST)
def test_an_honest_command_is_not_taken_for_a_masked_one(command: str) -> None:
    assert find_mask(command) == ""


SPLIT = TEST_TEXT.replace('    assert shout("a") == "A!"', '    assert shout("b") == "B!"').replace(
    "test_shout", "test_shout_b"
)
TRUE: dict[str, dict[str, str | bytes | None]] = {
    "a function with a test": DONE,
    "a fix that an old test covers": {"calc/core.py": CORE.replace("a + b", "b + a")},
    "documentation": {"README.md": "# calc\n\nAdds numbers.\n"},
    "a new module with tests": {
        "calc/sub.py": "def sub(a, b):\n    return a - b\n",
        "tests/test_sub.py": "from calc import sub\n\n\ndef test_sub():\n    assert sub.sub(2, 1) == 1\n",
    },
    "a renamed test": {"tests/test_text.py": TEST_TEXT.replace("test_shout", "test_text_is_shouted")},
    "a moved test": {"tests/test_text.py": None, "tests/text/test_shout.py": TEST_TEXT},
    "a stronger assertion": {"tests/test_text.py": TEST_TEXT + '    assert shout("") == "!"\n'},
    "more parameter sets": {"tests/test_core.py": TEST_CORE.replace("[[1.0],", "[[1.0], [1.0, 1.0, 1.0],")},
    "another style of assertion": {
        "tests/test_core.py": TEST_CORE.replace("self.assertEqual(add(0, 0), 0)", "assert add(0, 0) == 0")
    },
    "a script with its test": {
        "web/sum.js": "export const sum = (a, b) => b + a;\n",
        "web/sum.test.js": FILES["web/sum.test.js"].replace("});\n", "  expect(sum(0, 0)).toBe(0);\n});\n"),
    },
    "a script alone": {"web/sum.js": "export const sum = (a, b) => b + a;\n"},
    "a function of Go": {"srv/sum.go": FILES["srv/sum.go"].replace("a + b", "b + a")},
    "a test of Go": {
        "srv/sum_test.go": FILES["srv/sum_test.go"]
        + '\nfunc TestZero(t *testing.T) {\n\tif Sum(0, 0) != 0 {\n\t\tt.Error("x")\n\t}\n}\n'
    },
    "a test of Rust": {"rs/sum.rs": FILES["rs/sum.rs"] + "\n#[test]\nfn zero() {\n    assert_eq!(sum(0, 0), 0);\n}\n"},
    "only new tests": {
        "tests/test_more.py": "from calc.core import add\n\n\ndef test_more():\n    assert add(2, 2) == 4\n"
    },
    "types": {"calc/text.py": TEXT.replace("text: str", "text: 'str'")},
    "a renamed variable": {"calc/core.py": CORE.replace("values", "numbers")},
    "a dependency": {
        "pyproject.toml": FILES["pyproject.toml"].replace("dependencies = []", 'dependencies = ["attrs"]')
    },
    "a version": {"pyproject.toml": FILES["pyproject.toml"].replace('version = "1"', 'version = "2"')},
    "a data file": {"calc/data.json": "{}\n"},
    "a docstring": {"calc/text.py": TEXT.replace("    return", '    """Shout."""\n    return')},
    "code and documentation": {**DONE, "README.md": "# calc\n\ndouble\n"},
    "a changelog": {"CHANGELOG.md": "# Changes\n"},
    "an export": {"calc/__init__.py": "from calc.core import add\n\n__all__ = ['add']\n"},
    "a comment": {"calc/core.py": CORE.replace('"""Sums."""', '"""Sums and means."""')},
    "a class with a test class": {
        "calc/box.py": "class Box:\n    size = 1\n",
        "tests/test_box.py": "from calc.box import Box\n\n\nclass TestBox:\n"
        "    def test_size(self):\n        assert Box.size == 1\n",
    },
    "an asynchronous test": {
        "tests/test_later.py": "from calc.core import add\n\n\nasync def test_later():\n    assert add(1, 1) == 2\n"
    },
    "a test of an error": {
        "tests/test_error.py": "import pytest\nfrom calc.core import mean\n\n\ndef test_error():\n"
        "    with pytest.raises(ZeroDivisionError):\n        mean([])\n"
    },
    "a package": {
        "calc/deep/__init__.py": "",
        "calc/deep/one.py": "ONE = 1\n",
        "tests/deep/test_one.py": "from calc.deep.one import ONE\n\n\ndef test_one():\n    assert ONE == 1\n",
    },
    "a name with spaces": {"docs/how to add.md": "add\n"},
    "a name in other letters": {"docs/Größe.md": "x\n"},
    "a name with a leading dash": {"-notes.md": "x\n"},
    "a fixture": {
        "tests/conftest.py": FILES["tests/conftest.py"] + "\n\n@pytest.fixture\ndef two() -> int:\n    return 2\n"
    },
    "a module under a new name": {
        "calc/text.py": None,
        "calc/words.py": TEXT,
        "tests/test_text.py": TEST_TEXT.replace("calc.text", "calc.words"),
    },
    "a binary file": {"logo.png": b"\x89PNG\0\1"},
    "a package of npm": {"package.json": FILES["package.json"].replace("{}", '{"left-pad": "1"}')},
    "a formatted test": {"tests/test_text.py": TEST_TEXT.replace('shout("a") == "A!"', '(shout("a") == "A!")')},
    "metadata": {"setup.cfg": "[metadata]\nname = calc2\n"},
    "ignored files": {".gitignore": "__pycache__/\n*.log\n"},
    "a test in a loop": {
        "tests/test_loop.py": "from calc.core import add\n\n\ndef test_loop():\n"
        "    for n in range(3):\n        assert add(n, 0) == n\n"
    },
    "an import through another module": {
        "calc/base.py": "def base():\n    return 1\n",
        "calc/core.py": CORE.replace('"""Sums."""\n', '"""Sums."""\n\nfrom calc.base import base\n')
        + "\nBASE = base()\n",
    },
    "a deleted module without tests": {
        "calc/text.py": None,
        "tests/test_text.py": SPLIT.replace("calc.text", "calc.core"),
    },
}
STATED = ("a deleted module without tests",)
"""Tasks whose plan states that tests change."""


@pytest.mark.req("BEY-10")
@pytest.mark.parametrize("name", TRUE)
def test_a_true_completion_is_accepted(bench: Bench, name: str) -> None:
    verdict = bench.complete(TRUE[name]).change_state(touches_tests=name in STATED).judge()
    assert verdict.accepted, verdict.reasons


def test_there_are_at_least_forty_of_each() -> None:
    assert len(FALSE) >= 40
    assert len(TRUE) >= 40


# -- receipts of real runs -------------------------------------------------------------------------------------------


@pytest.mark.req("BEY-10")
async def test_a_real_run_of_the_linter_and_the_tests_is_accepted(bench: Bench) -> None:
    done = await run_all(bench, DONE, "test -f calc/core.py")
    assert done.judge().accepted, done.judge().reasons
    tests = next(each for each in done.receipts if each.kind == "test")
    assert tests.tests is not None
    assert (tests.tests.run, tests.tests.passed, tests.tests.is_counted) == (7, 7, True)
    assert tests.imported == ("calc/core.py", "tests/test_double.py")


@pytest.mark.req("BEY-10")
async def test_a_real_failure_behind_a_mask_is_refused(bench: Bench) -> None:
    broken = {**DONE, "calc/core.py": TASK["calc/core.py"].replace("add(a, a)", "a")}
    done = await run_all(bench, broken, "python -m pytest -q tests || true")
    masked = next(each for each in done.receipts if each.kind == "command")
    assert masked.exit_code == 0
    reasons = done.judge().reasons
    assert any("proves nothing" in each for each in reasons)
    assert any("1 of 7 tests failed" in each for each in reasons)


@pytest.mark.req("BEY-10")
async def test_tests_that_pass_without_the_change_are_refused(bench: Bench) -> None:
    """The recorder of imports tells it, although the test file names the module."""
    named = {
        "calc/extra.py": "def extra():\n    return 1\n",
        "tests/test_extra.py": "def test_extra():\n    assert 'calc.extra'.startswith('calc')\n",
    }
    done = await run_all(bench, named)
    assert done.judge().reasons == ("No test loads calc/extra.py or another changed file.",)


async def test_a_tree_with_uncommitted_changes_is_not_checked(bench: Bench) -> None:
    pipeline, _ = bench.commit(DONE)
    (bench.project.pipeline(pipeline) / "calc/core.py").write_text("changed\n")
    with pytest.raises(InvalidInput, match="not committed"):
        await bench.check(pipeline, "lint")


def test_waived_evidence_is_noted_and_not_required(bench: Bench) -> None:
    done = bench.complete_once(DONE).change_state(waived=frozenset({"inspector", "test"}), reviews=())
    done.receipts = [each for each in done.receipts if each.kind == "lint"]
    verdict = done.judge()
    assert verdict.accepted
    assert "The user chose to go on without the inspector." in verdict.notes


def test_a_project_without_tests_is_accepted_and_said_so(bench: Bench) -> None:
    done = bench.complete_once(DONE).change_state(has_tests=False)
    done.receipts = [each for each in done.receipts if each.kind == "lint"]
    verdict = done.judge()
    assert verdict.accepted
    assert "The project has no tests, so none ran." in verdict.notes


def test_a_newer_pass_counts_after_a_crash_of_the_reviewer(bench: Bench) -> None:
    done = bench.complete_once(DONE)
    crashed = msgspec.structs.replace(done.state.reviews[0], status="crashed", at=done.state.changed_at)
    assert isinstance(crashed, TaskReview)
    assert done.change_state(reviews=(crashed, *done.state.reviews)).judge().accepted
