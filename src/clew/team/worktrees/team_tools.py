"""The `team-*` tools: the effects of the team on the disk. Only the team calls them; a request of an agent or a user is
refused. All calls can be repeated: a finished call returns its result again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from clew.clock import Clock
from clew.errors import SandboxUnavailable, ToolFailure
from clew.files import replace_file
from clew.team.evidence.check_commands import Discover, scan_tools
from clew.team.evidence.checks import CheckRequest, CheckTools, run_check
from clew.team.evidence.receipts import CheckKind, CheckResult, CheckScope
from clew.team.worktrees.merges import PipelineMerge, merge_pipeline
from clew.team.worktrees.repository import find_repository
from clew.team.worktrees.session_trees import (
    OpenedPipeline,
    OpenedSession,
    PipelineCommit,
    PipelineDiff,
    SessionTrees,
    find_session,
    open_session,
)
from clew.tools.sandbox import Sandbox
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

TEAM = "team"
"""The requester of the team's own calls."""
CHECK_SECONDS = 3_600.0
OUTPUT_CHARACTERS = 2_000_000
_EFFECTS = Effects(keyed=True, repeats_safely=True, reaches_out=False)
_LIMITS = ToolLimits(seconds=600.0, characters=OUTPUT_CHARACTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamFolder:
    """The project of a team, and the folder of its work trees. With Landlock a work tree has no `.git` file, because
    Landlock would then not let a command create files in the same folder."""

    root: Path
    state: Path
    sandbox: Sandbox
    clock: Clock
    discover: Discover = scan_tools

    @property
    def has_pointer(self) -> bool:
        return self.sandbox.wall != "landlock"

    def find(self, session: str) -> SessionTrees:
        return find_session(self.root, self.state, session, has_pointer=self.has_pointer)

    def require_base(self, base: str) -> None:
        """Raise InvalidInput for a branch or a commit that the project does not have."""
        repository = find_repository(self.root, self.state)
        if repository.kind == "git":
            repository.resolve(base)

    def require_wall(self) -> None:
        """Raise SandboxUnavailable if nothing can confine a command to its work tree."""
        if self.sandbox.wall == "none":
            hint = "Install bubblewrap, or use Linux 5.13 or newer with Landlock; `clew doctor` shows what is available"
            raise SandboxUnavailable("the team works only in a sandbox, and this machine has none", hint=hint)

    def checks(self) -> CheckTools:
        """The dependencies of checks. Raises SandboxUnavailable."""
        self.require_wall()
        return CheckTools(
            sandbox=self.sandbox,
            clock=self.clock,
            checkout=self.root,
            wall=self.sandbox.wall,
            discover=self.discover,
        )


def require_team(context: ToolContext) -> None:
    """Raise ToolFailure unless the tools runner makes the call on behalf of the team. The runner sets the requester as
    the principal's agent, and removes its right to steer. A person who uses the name of the team keeps that right, and
    no interface passes a key."""
    if context.by.agent_id != TEAM or context.by.steers or not context.key:
        raise ToolFailure("permission", "only the team may call its tools", hint="Start it with `clew code`")


def team_tools(folder: TeamFolder) -> tuple[Tool, ...]:
    """The tools of the team for one project."""
    return (*_opening_tools(folder), *_change_tools(folder), _check_tool(folder))


def _opening_tools(folder: TeamFolder) -> tuple[Tool, ...]:
    @_team_tool("team-open")
    async def open_tree(
        session: str, ctx: ToolContext, base: str = "HEAD", take_changes: bool = False, branch: str = ""
    ) -> OpenedSession:
        """Make the branch and the work tree of a session, outside of the user's checkout.

        Args:
            session: the name of the session
            base: the branch or commit to start from
            take_changes: whether uncommitted changes of the checkout become a commit on the session's branch
            branch: the branch to make, such as clew/name; if it is taken, the session's id is added
        """
        require_team(ctx)
        return await asyncio.to_thread(
            open_session,
            folder.root,
            folder.state,
            session,
            base,
            take_changes=take_changes,
            branch=branch,
            clock=folder.clock,
            has_pointer=folder.has_pointer,
        )

    @_team_tool("team-worktree")
    async def open_pipeline(session: str, pipeline: str, ctx: ToolContext, start: str = "") -> OpenedPipeline:
        """Make the branch and the work tree of a pipeline.

        Args:
            session: the name of the session
            pipeline: the id of the pipeline
            start: the commit to start from; without it the head of the session's branch
        """
        require_team(ctx)
        return await asyncio.to_thread(folder.find(session).open_pipeline, pipeline, start)

    return open_tree, open_pipeline


def _change_tools(folder: TeamFolder) -> tuple[Tool, ...]:
    @_team_tool("team-commit")
    async def commit(
        session: str, pipeline: str, ctx: ToolContext, message: str = "", files: tuple[str, ...] = ()
    ) -> PipelineCommit:
        """Commit all changes of a pipeline's work tree to its branch.

        Args:
            session: the name of the session
            pipeline: the id of the pipeline
            message: the commit message
            files: paths and patterns that the task may change; none means any
        """
        require_team(ctx)
        return await asyncio.to_thread(folder.find(session).commit, pipeline, message, files, folder.clock)

    @_team_tool("team-merge")
    async def merge(session: str, pipeline: str, ctx: ToolContext) -> PipelineMerge:
        """Merge a pipeline's branch into the session's branch. A conflict changes nothing.

        Args:
            session: the name of the session
            pipeline: the id of the pipeline
        """
        require_team(ctx)
        return await asyncio.to_thread(merge_pipeline, folder.find(session), pipeline, folder.clock)

    @_team_tool("team-diff")
    async def diff(session: str, ctx: ToolContext, pipeline: str = "") -> PipelineDiff:
        """Show the changes of a pipeline, or of the session.

        Args:
            session: the name of the session
            pipeline: the id of the pipeline; without it the whole session
        """
        require_team(ctx)
        return await asyncio.to_thread(folder.find(session).diff, pipeline)

    return commit, merge, diff


def _check_tool(folder: TeamFolder) -> Tool:
    @_team_tool("team-check", seconds=CHECK_SECONDS)
    async def check(
        session: str,
        ctx: ToolContext,
        kind: CheckKind,
        pipeline: str = "",
        scope: CheckScope = "all",
        commands: tuple[str, ...] = (),
        base_commit: str = "",
        call: str = "",
    ) -> CheckResult:
        """Run the project's linters or tests on the committed tree of a pipeline, or of the session.

        Args:
            session: the name of the session
            kind: lint, test, or command for the given commands only
            pipeline: the id of the pipeline; without it the session's branch
            scope: changed files, tests that cover the change, or all
            commands: further shell commands that must pass
            base_commit: the commit that changes are compared with
            call: the id of this check for its receipts; without it that of the request
        """
        require_team(ctx)
        trees = folder.find(session)
        place = trees.place / "checks" / f"{hashlib.sha256(ctx.key.encode()).hexdigest()}.json"
        if (known := await asyncio.to_thread(_read_result, place)) is not None:
            return known
        request = CheckRequest(
            session=session,
            pipeline=pipeline,
            run=call or ctx.route or ctx.key,
            kind=kind,
            scope=scope,
            commands=commands,
            base_commit=base_commit,
        )
        result = await run_check(trees, request, folder.checks())
        await asyncio.to_thread(_write_result, place, result)
        return result

    return check


def _read_result(place: Path) -> CheckResult | None:
    """The stored result of a check that finished before its response was stored; None without one."""
    try:
        return msgspec.json.decode(place.read_bytes(), type=CheckResult)
    except (OSError, msgspec.DecodeError):
        return None


def _write_result(place: Path, result: CheckResult) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    replace_file(place, msgspec.json.encode(result))


def _team_tool(name: str, *, seconds: float = _LIMITS.seconds) -> Callable[..., Tool]:
    limits = msgspec.structs.replace(_LIMITS, seconds=seconds)
    return tool(name=name, searchable=False, effects=_EFFECTS, limits=limits, category="team")
