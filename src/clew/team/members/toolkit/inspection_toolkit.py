"""Tools of the Inspector: checks of a task and of the session, the verdict, and a closer look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from clew.errors import InvalidInput
from clew.team.members.toolkit.file_toolkit import TreeFiles, read_text
from clew.team.members.toolkit.member_deps import READS, SENDS, MemberDeps, in_session
from clew.team.members.toolkit.task_toolkit import brief_of, require_pipeline
from clew.team.messages.conversation import get_conversation
from clew.team.messages.message_types import LIBRARIAN, MessageType
from clew.team.messages.payloads import CheckIssue, Findings, TeamQuery, TeamReply
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

CHECK_SECONDS = 900.0
AROUND = 5
"""Lines of code before and after a finding."""
CHECKS = Effects(reads_only=True, repeats_safely=True, reaches_out=False)
LIMITS = ToolLimits(seconds=CHECK_SECONDS)
_T = MessageType
Concern = Literal["race", "leak", "deadlock", "security", "other"]


class InspectionIssue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One finding at a line of a file."""

    file: Annotated[str, msgspec.Meta(min_length=1)]
    line: Annotated[int, msgspec.Meta(ge=0)]
    message: Annotated[str, msgspec.Meta(min_length=1)]
    category: Literal["lint", "format", "type", "compliance"] = "compliance"
    severity: Literal["error", "warning"] = "error"
    suggestion: str = ""


def inspection_toolkit(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    """Return the tools of the Inspector."""
    return (*_checks(deps), _report(deps), *_closer_looks(deps, files))


def _checks(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="validate_task", searchable=False, effects=CHECKS, limits=LIMITS)
    async def validate_task(ctx: ToolContext) -> dict[str, Any]:
        """Run the linters, formatters and type checkers of the project on the changed files of this task, and return
        their findings with the criteria that you judge."""
        place = get_conversation(ctx.by.session)
        pipeline = require_pipeline(place)
        brief = brief_of(await deps.state_of(place.session), pipeline)
        found = await check_with_discovery(deps, ctx, "lint", "changed")
        return {**checked(found), "criteria": list(brief.criteria), "checks": list(brief.checks)}

    @tool(name="validate_full", searchable=False, effects=CHECKS, limits=LIMITS)
    async def validate_full(ctx: ToolContext) -> dict[str, Any]:
        """Run the linters, formatters and type checkers of the project on the whole session."""
        return checked(await check_with_discovery(deps, ctx, "lint", "all", is_whole=True))

    @tool(name="check_style", searchable=False, effects=CHECKS, limits=LIMITS)
    async def check_style(ctx: ToolContext, scope: Literal["changed", "all"] = "changed") -> dict[str, Any]:
        """Run the linters and formatters of the project.

        Args:
            scope: the changed files, or all
        """
        return checked(await check_with_discovery(deps, ctx, "lint", scope))

    return validate_task, validate_full, check_style


async def check_with_discovery(
    deps: MemberDeps,
    ctx: ToolContext,
    kind: Literal["lint", "test"],
    scope: str,
    commands: Sequence[str] = (),
    *,
    is_whole: bool = False,
) -> Mapping[str, Any]:
    """Run a check of the caller's task, or of the whole session. The log of the team shows it as a question to the
    Librarian for the project's tools; the answer names the tools that ran."""
    place = get_conversation(ctx.by.session)
    pipeline = "" if is_whole else place.pipeline
    query = f"{'test runner' if kind == 'test' else 'linters, formatters and type checkers'} of the project"
    asked = await deps.tell(_T.TOOL_DISCOVERY_REQUEST, TeamQuery(query=query, pipeline=pipeline), ctx)
    found = await deps.check(place.session, pipeline, kind, scope, commands)
    names = dict.fromkeys(str(each.get("tool")) for each in found.get("receipts") or ())
    text = ", ".join(names) or str(found.get("skipped_reason") or "none")
    reply = TeamReply(text=text, request=asked.id, pipeline=pipeline)
    await deps.tell(_T.TOOL_DISCOVERY_RESPONSE, reply, ctx, target=ctx.by.agent_id, source=LIBRARIAN)
    return found


def _report(deps: MemberDeps) -> Tool:
    @tool(name="report_issues", searchable=False, effects=SENDS)
    async def report_issues(
        ctx: ToolContext, issues: tuple[InspectionIssue, ...] = (), passed: bool | None = None, note: str = ""
    ) -> str:
        """Report your verdict, once. Without issues that are errors the change passes.

        Args:
            issues: file, line, message, category, severity and suggestion of each finding
            passed: whether the change passes; it cannot pass with an error
            note: a sentence for the record
        """
        has_errors = any(each.severity == "error" for each in issues)
        if passed and has_errors:
            raise InvalidInput("passed", "is true, but an issue is an error", hint="Lower its severity, or do not pass")
        place = get_conversation(ctx.by.session)
        findings = Findings(
            passed=not has_errors if passed is None else passed,
            issues=tuple(CheckIssue(**msgspec.structs.asdict(each)) for each in issues),
            pipeline=place.pipeline,
            timestamp=deps.clock.now(),
            note=note,
        )
        await deps.tell(_T.VALIDATION_RESULT if place.pipeline else _T.INSPECTION_RESULTS, findings, ctx)
        return f"Reported: {'passed' if findings.passed else 'not passed'}, {len(issues)} issues. End your turn."

    return report_issues


def _closer_looks(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="deep_analysis", searchable=False, effects=READS)
    async def deep_analysis(symbol: str, ctx: ToolContext, concern: Concern = "other") -> str:
        """Return what is needed to judge a function for races, leaks, deadlocks or holes: its source, what uses it,
        what it uses, and past issues of it.

        Args:
            symbol: path, or path#name
            concern: what you suspect
        """
        knowledge, by = await deps.knowledge(), in_session(ctx).by
        code = knowledge.code
        node = await code.symbol(symbol)
        used_by = [f"- {each.node.path}#{each.node.name}" for each in await code.dependents(node.id)]
        uses = [f"- {each.node.path}#{each.node.name}" for each in await code.dependencies(node.id)]
        past = await knowledge.archive(by).find_failures(f"{concern} {node.name}", 5)
        parts = {
            "Source": await code.source(node.id),
            "Used by": "\n".join(used_by) or "nothing",
            "Uses": "\n".join(uses) or "nothing",
            "Known failures": "\n".join(f"- {each.node.content[:300]}" for each in past) or "none",
            "Look for": QUESTIONS[concern],
        }
        return "\n\n".join(f"## {name}\n\n{text}" for name, text in parts.items())

    @tool(name="explain_issue", searchable=False, effects=READS)
    async def explain_issue(number: Annotated[int, msgspec.Meta(ge=1)], ctx: ToolContext) -> str:
        """Return an open issue of this task or session with the code around it.

        Args:
            number: the number of the issue, from 1
        """
        place = get_conversation(ctx.by.session)
        state = await deps.state_of(place.session)
        found = (
            state.pipelines[place.pipeline].inspector_result if place.pipeline in state.pipelines else state.findings
        )
        issues = found.issues if found is not None else ()
        if number > len(issues):
            raise InvalidInput("number", f"{number} does not exist", hint=f"There are {len(issues)} issues")
        issue = issues[number - 1]
        return f"{issue.severity} {issue.category} at {issue.file}:{issue.line}: {issue.message}\n\n" + await around(
            files, issue.file, issue.line, ctx
        )

    return deep_analysis, explain_issue


QUESTIONS: Mapping[Concern, str] = {
    "race": "State that two tasks or threads change without a lock, and conditions that may change after their check.",
    "leak": "Files, connections, tasks and locks that are not released on every path, including errors.",
    "deadlock": "Locks that are taken in different orders, and waits while a lock is held.",
    "security": "Input of others that reaches a command, a query, a path, a template or a log.",
    "other": "Cases that the callers expect and the code does not handle.",
}


def checked(found: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a check for a model: the verdict, the findings and the commands, without logs."""
    receipts = [each for each in found.get("receipts") or () if isinstance(each, Mapping)]
    commands = [{"command": each.get("command"), "exit_code": each.get("exit_code")} for each in receipts]
    shown = {name: found[name] for name in ("passed", "issues", "failures", "skipped_reason") if found.get(name)}
    return {"passed": bool(found.get("passed")), **shown, "commands": commands}


async def around(files: TreeFiles, path: str, line: int, ctx: ToolContext) -> str:
    """The lines around a place, each with its number."""
    lines = (await read_text(files, path, ctx)).splitlines()
    first = max(0, line - 1 - AROUND)
    return "\n".join(f"{at:>5} {text}" for at, text in enumerate(lines[first : line + AROUND], first + 1))
