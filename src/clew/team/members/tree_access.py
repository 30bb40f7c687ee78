"""Access of members to the work trees of their team: the folder of a pipeline, commands in it, and checks of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from clew.errors import InvalidInput
from clew.fences import clean
from clew.secrecy import mask_document
from clew.team.evidence.checks import CheckRequest, run_check
from clew.team.evidence.run_recorder import make_scratch
from clew.team.messages.conversation import TeamConversation
from clew.team.worktrees.confinement import find_setup, worktree_confinement
from clew.team.worktrees.team_tools import TeamFolder
from clew.tools.files.folder import WorkingFolder
from clew.tools.shell import MAX_COMMAND, CommandResult
from clew.tools.tool import ToolContext


class TreeAccess:
    """The work trees of one project, for tools of members."""

    def __init__(self, folder: TeamFolder) -> None:
        self._folder = folder

    async def folder_of(self, session: str, pipeline: str) -> WorkingFolder:
        """The project's folder in the tree of a pipeline, or of the session. Raises NotFound."""
        trees = await asyncio.to_thread(self._folder.find, session)
        tree = await asyncio.to_thread(trees.tree if pipeline else lambda _: trees.session_tree(), pipeline)
        return WorkingFolder(tree.project)

    async def run(
        self, place: TeamConversation, folder: WorkingFolder, command: str, seconds: float, context: ToolContext
    ) -> CommandResult:
        """Run a shell command in the sandbox, with the programs of the user's checkout. Only the tree is writable."""
        self._folder.require_wall()
        if not command.strip() or "\0" in command or len(command) > MAX_COMMAND:
            raise InvalidInput("command", f"must have 1 to {MAX_COMMAND:,} characters")
        trees = await asyncio.to_thread(self._folder.find, place.session)
        tree = await asyncio.to_thread(trees.tree, place.pipeline)
        scratch = await asyncio.to_thread(make_scratch, trees.place)
        try:
            setup = await asyncio.to_thread(find_setup, self._folder.root, tree.project, scratch=scratch)
            programs = await asyncio.to_thread(setup.readable)
            confinement = worktree_confinement(
                tree.folder, scratch=scratch, programs=programs, cwd=tree.project, seconds=seconds
            )
            ran = await self._folder.sandbox.run(setup.program(command), confinement)
        finally:
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
        return CommandResult(
            exit_code=ran.code,
            stdout=mask_document(clean(ran.stdout)),
            stderr=mask_document(clean(ran.stderr)),
            killed_by=ran.killed_by,
            seconds=round(ran.seconds, 3),
            error=f"it was killed: {ran.killed_by}" if ran.killed_by else "",
            notes=ran.notes,
        )

    async def check(
        self, session: str, pipeline: str, kind: str, scope: str, commands: Sequence[str]
    ) -> Mapping[str, Any]:
        """Run the linters or tests of the project on the committed tree. Receipts of these runs do not count as
        evidence; only checks that the team itself starts do. Raises InvalidInput for changes that are not committed."""
        trees = await asyncio.to_thread(self._folder.find, session)
        request = CheckRequest(
            session=session,
            pipeline=pipeline,
            run="member",
            kind=cast("Any", kind),
            scope=cast("Any", scope),
            commands=tuple(commands),
        )
        found = await run_check(trees, request, self._folder.checks())
        return cast("dict[str, Any]", msgspec.to_builtins(found))
