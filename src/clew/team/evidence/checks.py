"""Checks of a work tree: the project's own linters, formatters, type checkers and tests, run in the sandbox, with a
receipt for each command. Only a committed tree is checked, and it is restored afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput
from clew.team.evidence.base_comparison import TestComparison, compare_tests
from clew.team.evidence.check_commands import (
    LINT,
    CheckCommand,
    Discover,
    has_test_files,
    lint_command,
    npm_test,
    runner_command,
    scan_tools,
)
from clew.team.evidence.found_tests import is_test_file
from clew.team.evidence.issue_parsers import parse_issues
from clew.team.evidence.receipts import (
    CheckKind,
    CheckReceipt,
    CheckResult,
    CheckScope,
    CodeIssue,
    TestCounts,
    bounded_log,
    hash_log,
)
from clew.team.evidence.related_tests import find_covering, loaded_statically
from clew.team.evidence.report_parsers import ParsedReport, parse_report, parse_summary
from clew.team.evidence.run_recorder import CheckFolders, host_program, make_folders, split_summary
from clew.team.messages.payloads import TestFailure
from clew.team.worktrees.changes import compare_trees
from clew.team.worktrees.confinement import CommandSetup, find_setup, worktree_confinement
from clew.team.worktrees.session_trees import SessionTrees, WorkTree, restore_files
from clew.tools.sandbox.program import ProgramResult
from clew.tools.shell import CommandRunner

MAX_COMMANDS = 20
MAX_COMPARED = 2_000_000
SHELL = "shell"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """One check. `run` is the id of the request. Changes are compared with `base_commit`."""

    session: str
    pipeline: str
    run: str
    kind: CheckKind
    scope: CheckScope
    commands: tuple[str, ...] = ()
    base_commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTools:
    """The dependencies of checks. `checkout` is the user's project folder, whose installed programs are used."""

    sandbox: CommandRunner
    clock: Clock
    checkout: Path
    wall: str = ""
    discover: Discover = scan_tools
    net: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """A receipt, and the findings in its output."""

    receipt: CheckReceipt
    issues: tuple[CodeIssue, ...] = ()
    failures: tuple[TestFailure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSubject:
    """A tree under test. Paths of `changed` are relative to the project's folder, which is `prefix` in the tree."""

    request: CheckRequest
    tree: WorkTree
    commit: str
    tree_hash: str
    base_commit: str
    changed: tuple[str, ...]
    comparison: TestComparison
    prefix: str = ""

    @property
    def existing(self) -> tuple[str, ...]:
        return tuple(path for path in self.changed if (self.tree.project / path).is_file())


async def run_check(trees: SessionTrees, request: CheckRequest, tools: CheckTools) -> CheckResult:
    """Run a check on the committed tree of a pipeline, or of the session. Raises InvalidInput for a tree with changes
    that are not committed."""
    commit, tree_hash, is_clean = await asyncio.to_thread(trees.status, request.pipeline)
    if not is_clean:
        raise InvalidInput("pipeline", f"{request.pipeline} has changes that are not committed", hint="Commit first")
    tree = await asyncio.to_thread(trees.tree, request.pipeline)
    subject = await asyncio.to_thread(describe_subject, request, tree, commit, tree_hash)
    folders = await asyncio.to_thread(make_folders, trees.place)
    try:
        setup = await asyncio.to_thread(find_setup, tools.checkout, tree.project, scratch=folders.scratch)
        commands, missing, found = await _find_commands(subject, tools, setup)
        outcomes = [await run_command(subject, each, tools, setup, folders) for each in commands]
    finally:
        await asyncio.to_thread(folders.remove)
    return _conclude(subject, outcomes, missing, found)


def describe_subject(request: CheckRequest, tree: WorkTree, commit: str, tree_hash: str) -> CheckSubject:
    base = request.base_commit or tree.base_commit
    changed = compare_trees(tree.git, base, commit).changed
    prefix = tree.project.relative_to(tree.folder).as_posix()
    inner = "" if prefix == "." else f"{prefix}/"
    old, new = read_versions(tree, base, changed), read_versions(tree, commit, changed)
    return CheckSubject(
        request=request,
        tree=tree,
        commit=commit,
        tree_hash=tree_hash,
        base_commit=base,
        changed=tuple(path.removeprefix(inner) for path in changed if path.startswith(inner)),
        comparison=compare_tests(old, new),
        prefix=inner,
    )


def read_versions(tree: WorkTree, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """The texts of these files in a commit. Files that are missing or too long are left out."""
    asked = "".join(f"{commit}:{path}\n" for path in paths if "\n" not in path).encode(errors="replace")
    names = [path for path in paths if "\n" not in path]
    sizes = tree.git.run(["cat-file", "--batch-check=%(objecttype) %(objectsize)"], stdin=asked).stdout.splitlines()
    found = {}
    for path, about in zip(names, sizes, strict=False):
        kind, _, size = about.decode(errors="replace").partition(" ")
        if kind == "blob" and size.isdigit() and int(size) <= MAX_COMPARED:
            found[path] = tree.git.run(["cat-file", "blob", f"{commit}:{path}"]).stdout.decode(errors="replace")
    return found


# -- commands ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolKinds:
    has_tests: bool = False
    has_linters: bool = False


async def _find_commands(
    subject: CheckSubject, tools: CheckTools, setup: CommandSetup
) -> tuple[list[CheckCommand], list[str], _ToolKinds]:
    """The commands of a check, the reasons why other commands cannot run, and whether the project has tests and
    linters."""
    request, project = subject.request, subject.tree.project
    commands: list[CheckCommand] = []
    has_tests = has_linters = False
    if request.kind == "lint":
        files = subject.existing if request.scope != "all" else ()
        for category in LINT if request.scope == "all" or files else ():
            for tool in await tools.discover(project, category):
                has_linters = True
                if (command := lint_command(tool, files)) is not None:
                    commands.append(command)
    elif request.kind == "test":
        has_tests = await asyncio.to_thread(_has_tests, subject)
        covering = await asyncio.to_thread(find_covering, str(project), subject.changed) if has_tests else ()
        chosen = covering if request.scope != "all" else ()
        runners = await tools.discover(project, "test_framework") if has_tests else ()
        commands += [runner_command(each, chosen) for each in runners[:1]] or npm_test(project, has_tests=has_tests)
    missing = [f"{each.tool} is not installed" for each in commands if setup.find(each.program) is None]
    ready = [each for each in commands if setup.find(each.program) is not None]
    unique = list({each.command: each for each in ready}.values())
    extra = [
        CheckCommand(tool=SHELL, category="linter", command=each, program=SHELL)
        for each in request.commands[:MAX_COMMANDS]
    ]
    return [*unique, *extra], list(dict.fromkeys(missing)), _ToolKinds(has_tests=has_tests, has_linters=has_linters)


def _has_tests(subject: CheckSubject) -> bool:
    """Whether the project has or had test files."""
    if has_test_files(str(subject.tree.project)):
        return True
    names = subject.tree.git.run(["ls-tree", "-r", "-z", "--name-only", subject.base_commit]).fields()
    return any(is_test_file(os.fsdecode(name)) for name in names)


async def run_command(
    subject: CheckSubject, check: CheckCommand, tools: CheckTools, setup: CommandSetup, folders: CheckFolders
) -> CommandOutcome:
    """Run one command in the sandbox, and write its receipt."""
    tree, started_at = subject.tree, tools.clock.now()
    ran, parsed = await _execute(subject, check, tools, setup, folders)
    is_test = check.category == "test_framework"
    loaded = await asyncio.to_thread(_find_loaded, subject, folders.imported) if is_test else ()
    was_changed = await asyncio.to_thread(restore_files, tree.git, subject.commit)
    log = bounded_log(ran.stdout, ran.stderr)
    comparison = subject.comparison
    receipt = CheckReceipt(
        id=tools.clock.new_id(),
        session=subject.request.session,
        pipeline=subject.request.pipeline,
        run=subject.request.run,
        kind="command" if check.tool == SHELL else subject.request.kind,
        scope=subject.request.scope,
        tool=check.tool,
        command=check.command,
        exit_code=ran.code,
        tree=subject.tree_hash,
        commit=subject.commit,
        base_commit=subject.base_commit,
        log=log,
        log_hash=hash_log(log),
        started_at=started_at,
        seconds=round(ran.seconds, 3),
        tests=_count(parsed.counts, comparison) if is_test else None,
        imported=loaded,
        test_changes=comparison.sentences if is_test else (),
        changed_tree=was_changed,
        killed_by=ran.killed_by or "",
        environment=_environment(check, tools, setup),
        problem=parsed.problem if is_test and not ran.code and not ran.killed_by else "",
    )
    issues = () if is_test or check.tool == SHELL else _issues(check, ran.stdout, ran.stderr, str(tree.project))
    return CommandOutcome(receipt=receipt, issues=issues, failures=parsed.failures)


async def _execute(
    subject: CheckSubject, check: CheckCommand, tools: CheckTools, setup: CommandSetup, folders: CheckFolders
) -> tuple[ProgramResult, ParsedReport]:
    """Run one command, and read the report of its tests."""
    report = folders.scratch / f"report-{secrets.token_hex(4)}"
    variables = folders.variables(setup.variables.get("PYTHONPATH", ""))
    program = setup.program(check.command, CLEW_REPORT=str(report), **variables)
    readable = await asyncio.to_thread(setup.readable, "" if check.tool == SHELL else check.program)
    is_recorded = check.report == "recorded"
    python = setup.python_beside(check.program) if is_recorded else ""
    nonce = secrets.token_hex(16)
    confinement = worktree_confinement(
        subject.tree.folder,
        scratch=folders.scratch,
        programs=(*readable, str(folders.modules), *(setup.readable(python) if is_recorded else ())),
        cwd=subject.tree.project,
        net=tools.net,
    )
    if not is_recorded:
        ran = await tools.sandbox.run(program, confinement)
        return ran, parse_report(check.report, report, ran.stdout, ran.stderr)
    ran = await tools.sandbox.run(host_program(program, folders, python, nonce), confinement)
    output, summary = split_summary(ran.stdout, nonce)
    return msgspec.structs.replace(ran, stdout=output), parse_summary(summary)


def _count(counts: TestCounts, comparison: TestComparison) -> TestCounts:
    return msgspec.structs.replace(counts, deleted=len(comparison.deleted), weakened=len(comparison.weakened))


def _issues(check: CheckCommand, stdout: str, stderr: str, root: str) -> tuple[CodeIssue, ...]:
    return parse_issues(check.tool, check.category, stdout, stderr, root)


def _environment(check: CheckCommand, tools: CheckTools, setup: CommandSetup) -> str:
    program = setup.find(check.program) or check.program
    shown = os.path.relpath(program, tools.checkout) if program.startswith(f"{tools.checkout}/") else program
    return f"{shown}; sandbox: {tools.wall or 'none'}"


def _find_loaded(subject: CheckSubject, imported: Path) -> tuple[str, ...]:
    """The changed files that a test run loaded, as recorded by its Python processes. Without such a record, the changed
    files that its tests import or name."""
    project = os.path.realpath(subject.tree.project)
    names: set[str] = set()
    for file in imported.glob("*.json") if imported.is_dir() else ():
        try:
            names.update(json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            continue
    inner = {
        os.path.relpath(name, project) for name in names if isinstance(name, str) and name.startswith(f"{project}/")
    }
    is_recorded = any(is_test_file(name) for name in inner)
    loaded = inner if is_recorded else loaded_statically(project, subject.changed)
    return tuple(f"{subject.prefix}{path}" for path in subject.changed if path in loaded)


# -- the result --------------------------------------------------------------------------------------------------


def _conclude(
    subject: CheckSubject, outcomes: Sequence[CommandOutcome], missing: Sequence[str], found: _ToolKinds
) -> CheckResult:
    receipts = tuple(each.receipt for each in outcomes)
    is_unproven = (
        subject.request.kind == "test" and found.has_tests and not any(each.kind == "test" for each in receipts)
    )
    passed = all(map(_is_good, receipts)) and not is_unproven
    return CheckResult(
        passed=passed,
        receipts=receipts,
        issues=tuple(issue for each in outcomes for issue in each.issues),
        failures=tuple(failure for each in outcomes for failure in each.failures),
        skipped_reason=_skipped(subject, receipts, missing, found),
        has_tests=found.has_tests,
        has_linters=found.has_linters,
    )


def _is_good(receipt: CheckReceipt) -> bool:
    is_empty = receipt.tests is not None and receipt.tests.is_counted and receipt.tests.run == 0
    is_sound = not receipt.changed_tree and not receipt.problem
    return receipt.exit_code == 0 and not receipt.killed_by and not is_empty and is_sound


def _skipped(subject: CheckSubject, receipts: Sequence[CheckReceipt], missing: Sequence[str], found: _ToolKinds) -> str:
    """The reason why a part of the check did not run; empty if all of it did."""
    kind = subject.request.kind
    if kind == "lint" and subject.request.scope != "all" and not subject.existing:
        return "no changed file is left to check"
    if kind == "lint" and not found.has_linters:
        return "the project has no linter, formatter or type checker"
    if kind == "lint" and not receipts and not missing:
        return "no linter of the project checks the changed files"
    if kind == "test" and not found.has_tests:
        return "the project has no tests"
    if kind == "test" and not receipts and not missing:
        return "no test runner was found for the tests of the project"
    if kind == "command" and not receipts:
        return "no command was given"
    return "; ".join(missing)
