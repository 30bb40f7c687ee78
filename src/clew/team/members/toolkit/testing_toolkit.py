"""Tools of the Tester: plans, runs, failures, results, test code and coverage."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import msgspec

from clew.errors import InvalidInput
from clew.team.members.toolkit.file_toolkit import TreeFiles
from clew.team.members.toolkit.inspection_toolkit import CHECKS, LIMITS, around, check_with_discovery, checked
from clew.team.members.toolkit.member_deps import READS, SENDS, MemberDeps
from clew.team.messages.conversation import get_conversation
from clew.team.messages.message_types import USER, MessageType
from clew.team.messages.payloads import TestFailure, TestReport, TextPayload
from clew.tools.content import GuidedContent
from clew.tools.tool import Effects, Tool, ToolContext, tool

_T = MessageType
Count = Annotated[int, msgspec.Meta(ge=0)]
TEST_FOLDERS = ("test", "tests", "__tests__", "spec", "specs", "e2e")


class PlannedTest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case of a test plan."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    shows: Annotated[str, msgspec.Meta(min_length=1)]
    kind: Literal["unit", "integration", "e2e"] = "unit"
    file: str = ""


class ReportedFailure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One failed test with its cause."""

    test_name: Annotated[str, msgspec.Meta(min_length=1)]
    message: str
    file: str = ""
    expected: str = ""
    actual: str = ""


def testing_toolkit(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    """Return the tools of the Tester."""
    return (*_planning(deps), *_running(deps, files), *_writing(deps, files))


def _planning(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="plan_tests", searchable=False, effects=SENDS)
    async def plan_tests(cases: tuple[PlannedTest, ...], ctx: ToolContext) -> str:
        """Propose the tests of a change to the user.

        Args:
            cases: name, what it shows, kind and file of each test
        """
        if not cases:
            raise InvalidInput("cases", "are empty", hint="Name at least one test")
        lines = [f"- {each.name} ({each.kind}{f', {each.file}' if each.file else ''}): {each.shows}" for each in cases]
        await deps.tell(_T.TEST_PLAN_RESPONSE, TextPayload(text="\n".join(lines)), ctx, target=USER)
        return f"Proposed {len(cases)} tests. End your turn."

    @tool(name="report_results", searchable=False, effects=SENDS)
    async def report_results(
        passed: bool,
        tests_run: Count,
        tests_passed: Count,
        ctx: ToolContext,
        failures: tuple[ReportedFailure, ...] = (),
        note: str = "",
    ) -> str:
        """Report the results of the tests, once. The runtime runs the tests itself, so report what you saw.

        Args:
            passed: whether every test passed
            tests_run: number of tests
            tests_passed: number of tests that passed
            failures: each failed test with its cause
            note: a sentence for the record
        """
        if tests_passed > tests_run or (passed and (failures or tests_passed < tests_run)):
            hint = "passed needs tests_passed == tests_run and no failures"
            raise InvalidInput("passed", "contradicts the counts", hint=hint)
        report = TestReport(
            passed=passed,
            tests_run=tests_run,
            tests_passed=tests_passed,
            failures=tuple(TestFailure(**msgspec.structs.asdict(each)) for each in failures),
            pipeline=get_conversation(ctx.by.session).pipeline,
            timestamp=deps.clock.now(),
            note=note,
        )
        await deps.tell(_T.TEST_RESULTS, report, ctx, target=USER)
        return f"Reported {tests_passed} of {tests_run}. End your turn."

    return plan_tests, report_results


def _running(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="run_tests", searchable=False, effects=CHECKS, limits=LIMITS)
    async def run_tests(
        ctx: ToolContext, scope: Literal["covering", "all"] = "covering", commands: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Run the tests of the project on the committed work.

        Args:
            scope: the tests that cover the change, or all
            commands: further commands that must pass
        """
        return checked(await check_with_discovery(deps, ctx, "test", scope, commands))

    @tool(name="analyze_failures", searchable=False, effects=READS)
    async def analyze_failures(ctx: ToolContext) -> list[dict[str, Any]]:
        """Return each failed test of the last run with its message and the code around its place."""
        place = get_conversation(ctx.by.session)
        state = await deps.state_of(place.session)
        pipeline = state.pipelines.get(place.pipeline)
        report = pipeline.tester_result if pipeline is not None else state.tests
        failures = report.failures if report is not None else ()
        return [{**msgspec.to_builtins(each), "code": await _code(files, each, ctx)} for each in failures]

    return run_tests, analyze_failures


def _writing(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="generate_test_code", searchable=False, effects=Effects(repeats_safely=True, reaches_out=False))
    async def generate_test_code(path: str, content: str, ctx: ToolContext) -> GuidedContent:
        """Write a test file into the work tree.

        Args:
            path: path of a test file, relative to the work tree
            content: its complete text
        """
        if not is_test_path(path):
            raise InvalidInput("path", f"{path[:200]!r} is not a test file", hint="For example tests/test_parser.py")
        return await files.call("write-file", {"file_path": path, "content": content}, ctx, judged="write-file")

    @tool(name="coverage_analysis", searchable=False, effects=READS)
    async def coverage_analysis(paths: tuple[str, ...], ctx: ToolContext) -> dict[str, list[str]]:
        """Return for each file its functions and classes that no test file uses, as the code graph knows them.

        Args:
            paths: the files that changed
        """
        code = (await deps.knowledge()).code
        found: dict[str, list[str]] = {}
        for path in paths:
            symbols = await code.symbols_of(path)
            found[path] = [each.name for each in symbols if not await _is_tested(code, each.id)]
        return found

    return generate_test_code, coverage_analysis


async def _is_tested(code: Any, symbol: str) -> bool:
    return any(is_test_path(each.node.path or "") for each in await code.dependents(symbol, depth=2))


async def _code(files: TreeFiles, failure: TestFailure, ctx: ToolContext) -> str:
    path, _, line = failure.file.partition(":")
    if not path:
        return ""
    try:
        return await around(files, path, int(line) if line.isdecimal() else 1, ctx)
    except InvalidInput:
        return ""


def is_test_path(path: str) -> bool:
    """Whether a file is a test by its folder or its name."""
    pure = PurePosixPath(path)
    stem = pure.name.lower()
    named = stem.startswith("test_") or any(f"{mark}." in stem for mark in ("_test", ".test", ".spec", "_spec"))
    return named or any(part.lower() in TEST_FOLDERS for part in pure.parts[:-1])
