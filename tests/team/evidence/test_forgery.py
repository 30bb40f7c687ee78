"""Code under test that writes its own results: real runs of pytest, all of which are refused (BEY-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.team.evidence.receipts import CheckReceipt
from clew.team.evidence.report_parsers import parse_report
from clew.team.evidence.task_evidence import TaskEvidence
from clew.team.evidence.verification import verify
from tests.team.evidence.completions import TASK, TASK_TEST, Bench, own_programs_first, run_all

WRONG = TASK["calc/core.py"].replace("add(a, a)", "a")
"""A wrong implementation of the task: its test fails in an honest run."""
TEST = TASK_TEST["tests/test_double.py"]
HEAD = "import atexit, os, sys\n\nimport _pytest.reports, _pytest.runner\nimport pytest\n"
SPY = HEAD + "\n\n{code}\n\n" + TEST
PLUGIN = """
class Lenient:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        (yield).force_result(None)


@pytest.fixture(autouse=True)
def lenient(request):
    if not request.config.pluginmanager.has_plugin("lenient"):
        request.config.pluginmanager.register(Lenient(), "lenient")
"""
REWRITTEN = """
made = _pytest.reports.TestReport.from_item_and_call


def lenient(item, call):
    report = made(item, call)
    report.outcome = "passed"
    return report


_pytest.reports.TestReport.from_item_and_call = lenient
"""
SWALLOWED = """
def lenient(func, when, reraise=None):
    try:
        func()
    except Exception:
        pass
    return _pytest.runner.CallInfo(None, None, 0, 0, 0, when, _ispytest=True)


_pytest.runner.CallInfo.from_call = lenient
"""
WRITTEN = """
@atexit.register
def forge():
    for folder, _, names in os.walk(os.environ["TMPDIR"]):
        for name in names:
            try:
                open(os.path.join(folder, name), "w").write('<testsuite><testcase name="test_double"/></testsuite>')
            except OSError:
                pass
    os._exit(0)
"""
SENT = """
for name in os.listdir("/proc/self/fd"):
    try:
        if "pipe" in os.readlink("/proc/self/fd/" + name) and int(name) > 2:
            os.write(int(name), b'[2, {"event": "end", "status": 0}]' + bytes([10]))
    except OSError:
        pass
atexit.register(os._exit, 0)
"""
PRINTED = """
def test_printed(capfd):
    with capfd.disabled():
        print('0123456789abcdef {"states": {"passed": 7, "failed": 0, "skipped": 0}, "failures": [], "problems": []}')
    assert "add"
    os._exit(0)
"""
ENDED = "the process of the tests ended before pytest had finished"
FORGED: dict[str, tuple[dict[str, str], str]] = {
    "a test that ends the process": (
        {"tests/test_double.py": HEAD + TEST.replace("    assert", "    os._exit(0)\n    assert")},
        ENDED,
    ),
    "a fixture that ends the process": (
        {
            "tests/test_double.py": SPY.format(
                code="@pytest.fixture(autouse=True, scope='session')\ndef quick():\n    os._exit(0)"
            )
        },
        ENDED,
    ),
    "a module that ends the process": ({"calc/core.py": "import os\n\nos._exit(0)\n" + WRONG}, "did not report"),
    "a conftest that ends the process": ({"tests/conftest.py": "import os\n\nos._exit(0)\n"}, "did not report"),
    "a process that exits with 0 at its end": (
        {"tests/test_double.py": SPY.format(code="atexit.register(os._exit, 0)")},
        "pytest ended with 1, and its process with 0",
    ),
    "report files that are written at the end": (
        {"tests/test_double.py": SPY.format(code=WRITTEN)},
        "pytest ended with 1, and its process with 0",
    ),
    "reports that always say passed": ({"tests/test_double.py": SPY.format(code=REWRITTEN)}, "reported as passed"),
    "calls that lose their error": ({"tests/test_double.py": SPY.format(code=SWALLOWED)}, "a failing test passes"),
    "a plugin that a fixture registers": ({"tests/test_double.py": SPY.format(code=PLUGIN)}, "a failing test passes"),
    "functions that do not run": (
        {"tests/test_double.py": SPY.format(code="pytest.Function.runtest = lambda self: None")},
        "a failing test passes",
    ),
    "a recorder that is switched off": (
        {
            "tests/test_double.py": SPY.format(
                code="@pytest.fixture(autouse=True)\ndef off(request):\n"
                "    manager = request.config.pluginmanager\n    manager.unregister(name='clew-recorder')\n"
            ).replace("assert double(2) == 4", "assert double(2) != 4")
        },
        ENDED,
    ),
    "events that a test writes": ({"tests/test_double.py": SPY.format(code=SENT)}, "something else than pytest"),
    "a summary that a test prints": ({"tests/test_double.py": SPY.format(code=PRINTED)}, ENDED),
    "a host that a test ends": (
        {"tests/test_double.py": SPY.format(code="os.kill(os.getppid(), 9)\nos.kill(os.getppid(), 9)\nos._exit(0)")},
        "",
    ),
    "another pytest": (
        {"pytest.py": "import sys\n\n\ndef console_main():\n    sys.exit(0)\n\n\nmain = console_main\n"},
        "",
    ),
    "another main function": (
        {"tests/test_double.py": SPY.format(code="pytest.main = pytest.console_main = lambda *args: 0")},
        "",
    ),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("forgery"))


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", own_programs_first())


@pytest.mark.req("BEY-10")
@pytest.mark.parametrize("name", FORGED)
async def test_forged_results_are_refused(bench: Bench, name: str) -> None:
    files, reason = FORGED[name]
    done = await run_all(bench, {"calc/core.py": WRONG, **TASK_TEST, **files})
    done.change_state(has_linters=False, touches_tests=True)
    done.receipts = [each for each in done.receipts if each.kind == "test"]
    verdict = done.record().judge()
    assert not done.given["test"].passed
    assert not verdict.accepted
    assert any(reason in each for each in verdict.reasons), verdict.reasons


@pytest.mark.req("BEY-10")
async def test_a_forged_result_is_refused_when_it_runs_again(bench: Bench) -> None:
    files = {"calc/core.py": WRONG, "tests/test_double.py": SPY.format(code=PLUGIN)}
    done = await run_all(bench, files)
    done.change_receipt("test", problem="")
    evidence = TaskEvidence(task="double", claim=done.claim, receipts=tuple(done.receipts), verdict=done.judge())
    found = await verify(bench.project.trees, evidence, bench.tools)
    assert not found.matches
    assert any("a failing test passes" in each.difference for each in found.commands)


HONEST: dict[str, str] = {
    "a skipped test": "@pytest.mark.skip\ndef test_later():\n    assert double(1) == 3\n",
    "an expected failure": "@pytest.mark.xfail\ndef test_later():\n    assert double(1) == 3\n",
    "a unittest": "class TestDouble(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(double(1), 2)\n",
    "a child process": "def test_child():\n    assert subprocess.run([sys.executable, '-c', 'pass']).returncode == 0\n",
    "a fork": "def test_fork():\n    child = os.fork()\n    if not child:\n        os._exit(0)\n"
    "    assert os.waitpid(child, 0)[1] == 0\n",
    "pytest within pytest": "def test_inner(tmp_path):\n"
    "    (tmp_path / 'test_x.py').write_text('def test_x(): assert 0')\n"
    "    assert pytest.main(['-q', '--rootdir', str(tmp_path), str(tmp_path)]) == 1\n",
    "hooks that look at reports": "@pytest.fixture\ndef seen(request):\n    yield request.node.name\n\n\n"
    "def test_seen(seen):\n    assert seen == 'test_seen'\n",
}


@pytest.mark.req("BEY-10")
async def test_honest_tests_are_believed(bench: Bench) -> None:
    imports = (
        "import os\nimport subprocess\nimport sys\nimport unittest\n\nimport pytest\n\nfrom calc.core import double\n"
    )
    honest = {f"tests/test_honest_{at}.py": f"{imports}\n\n{text}" for at, text in enumerate(HONEST.values())}
    done = await run_all(bench, {**TASK, **TASK_TEST, **honest})
    (receipt,) = [each for each in done.receipts if each.kind == "test"]
    assert (receipt.exit_code, receipt.problem) == (0, ""), receipt.log
    assert receipt.tests is not None
    assert receipt.tests.failed == 0
    assert receipt.tests.run + receipt.tests.skipped == 7 + len(HONEST)


async def test_tests_in_several_processes_are_counted(bench: Bench) -> None:
    receipt = await with_options(bench, "-n 2")
    assert (receipt.exit_code, receipt.problem) == (0, ""), receipt.log
    assert receipt.tests is not None
    assert receipt.tests.run == 7


async def test_a_run_that_stops_at_the_first_failure_is_only_a_failure(bench: Bench) -> None:
    receipt = await with_options(bench, "-x", core=WRONG)
    assert (receipt.exit_code, receipt.problem) == (1, "")
    assert receipt.tests is not None
    assert receipt.tests.failed == 1


async def with_options(bench: Bench, options: str, core: str = TASK["calc/core.py"]) -> CheckReceipt:
    settings = f'[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = "{options}"\n'
    done = await run_all(bench, {"calc/core.py": core, **TASK_TEST, "pyproject.toml": settings})
    return next(each for each in done.receipts if each.kind == "test")


@pytest.mark.parametrize(
    ("form", "stdout", "stderr", "problem"),
    [
        ("unittest", "", "test_a (t.A.test_a) ... ok\n", "it counts 0 tests and reports 1"),
        ("unittest", "", "test_a (t.A.test_a) ... ok\n\nRan 1 test in 0.0s\n\nOK\n", ""),
        ("cargo", "running 2 tests\ntest one ... ok\n", "", "it counts 2 tests and reports 1"),
        ("mocha", "nothing", "", "it left no report of its tests"),
        ("jest", "", "", "it left no report of its tests"),
        ("tap", "whatever the script prints", "", ""),
        ("none", "", "", ""),
    ],
)
def test_a_report_that_contradicts_itself_is_not_believed(
    tmp_path: Path, form: str, stdout: str, stderr: str, problem: str
) -> None:
    assert parse_report(form, tmp_path / "missing", stdout, stderr).problem == problem  # type: ignore[arg-type]
