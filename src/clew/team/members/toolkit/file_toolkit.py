"""Tools for the files of a work tree: read, write, edit, preview, and commands. They are the file tools of Clew on the
tree of the caller's pipeline."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec

from clew.errors import AccessDenied
from clew.skills.lru_cache import LruCache
from clew.team.members.toolkit.member_deps import READS, MemberDeps
from clew.team.messages.conversation import TeamConversation, get_conversation
from clew.tools.content import GuidedContent
from clew.tools.files.edit_journal import EditJournal
from clew.tools.files.file_tools import Line, file_tools
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.seen_versions import FolderSeenVersions
from clew.tools.files.snapshots import Snapshots
from clew.tools.permissions.policy import decide
from clew.tools.shell import MAX_SECONDS, OUTPUT_BYTES, CommandResult
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

JOURNAL = "edits"
_TREES = 256
"""The number of work trees whose caches are kept."""
_WRITES = Effects(destroys=True, repeats_safely=True, reaches_out=False)
Timeout = Annotated[int, msgspec.Meta(ge=1, le=MAX_SECONDS)]


class TreeFiles:
    """The file tools of each work tree, with one cache of files for each."""

    def __init__(self, deps: MemberDeps) -> None:
        self._deps = deps
        self._known: LruCache[str, dict[str, Tool]] = LruCache(_TREES)
        self._journal = EditJournal(deps.own / JOURNAL)

    async def call(self, name: str, arguments: dict[str, Any], ctx: ToolContext, *, judged: str = "") -> GuidedContent:
        """Call a file tool on the caller's tree. `judged` is the tool whose permissions apply. Raises AccessDenied."""
        if judged:
            require_allowed(self._deps, judged, arguments, ctx)
        folder = await self.folder(ctx)
        tools = self._known.find_or_make(folder.root, lambda: self._make(folder))
        made = tools[name]
        return await made.call(made.check(arguments), ctx)

    async def folder(self, ctx: ToolContext) -> WorkingFolder:
        place = get_conversation(ctx.by.session)
        return await self._deps.folder_of(place.session, place.pipeline)

    def _make(self, folder: WorkingFolder) -> dict[str, Tool]:
        seen = FolderSeenVersions(self._deps.own / JOURNAL / "seen", folder.root)
        snapshots = Snapshots(self._deps.clock, seen=seen)
        return {each.name: each for each in file_tools(folder, snapshots, journal=self._journal)}


def file_toolkit(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    """Return the tools for files and commands."""
    return (*_reading(files), *_writing(files), _command(deps, files))


def _reading(files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="engineer_read_file", searchable=False, effects=READS)
    async def read_file(
        path: str, ctx: ToolContext, start_line: Line = 1, end_line: Line | None = None
    ) -> GuidedContent:
        """Read a file of your work tree, or a range of its lines. The result says whether it came from the cache.

        Args:
            path: path relative to the work tree
            start_line: first line, from 1
            end_line: last line; without it, as many as fit
        """
        given = {"file_path": path, "start_line": start_line, "end_line": end_line}
        return await files.call("read-file", given, ctx, judged="read-file")

    @tool(name="librarian_get_file", searchable=False, effects=READS)
    async def get_file(
        path: str, ctx: ToolContext, start_line: Line = 1, end_line: Line | None = None
    ) -> GuidedContent:
        """Read a file of the repository, or a range of its lines.

        Args:
            path: path relative to the repository
            start_line: first line, from 1
            end_line: last line; without it, as many as fit
        """
        given = {"file_path": path, "start_line": start_line, "end_line": end_line}
        return await files.call("read-file", given, ctx, judged="read-file")

    @tool(name="preview_edit", searchable=False, effects=READS)
    async def preview_edit(file_path: str, old_string: str, new_string: str, ctx: ToolContext) -> GuidedContent:
        """Show what an edit would do, as a unified diff with counts and warnings, without writing.

        Args:
            file_path: path relative to the work tree
            old_string: text to replace
            new_string: replacement
        """
        given = {"file_path": file_path, "old_string": old_string, "new_string": new_string}
        return await files.call("preview-edit", given, ctx, judged="read-file")

    return read_file, get_file, preview_edit


def _writing(files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="engineer_write_file", searchable=False, effects=_WRITES)
    async def write_file(path: str, content: str, ctx: ToolContext) -> GuidedContent:
        """Write a complete text file in your work tree. To change a part of a file, use engineer_edit_file.

        Args:
            path: path relative to the work tree
            content: the complete text
        """
        return await files.call("write-file", {"file_path": path, "content": content}, ctx, judged="write-file")

    @tool(name="engineer_edit_file", searchable=False, effects=Effects(destroys=True, reaches_out=False, keyed=True))
    async def edit_file(path: str, old_content: str, new_content: str, ctx: ToolContext) -> GuidedContent:
        """Replace a text that occurs once in a file of your work tree, and return the diff.

        Args:
            path: path relative to the work tree
            old_content: text to replace, copied from the file
            new_content: replacement
        """
        given = {"file_path": path, "old_string": old_content, "new_string": new_content}
        return await files.call("edit-file", given, ctx, judged="edit-file")

    return write_file, edit_file


def _command(deps: MemberDeps, files: TreeFiles) -> Tool:
    limits = ToolLimits(seconds=MAX_SECONDS + 30, characters=4 * OUTPUT_BYTES)

    @tool(name="engineer_run_command", searchable=False, effects=Effects(destroys=True), limits=limits)
    async def run_command(command: str, ctx: ToolContext, timeout: Timeout = 120) -> CommandResult:
        """Run a shell command in your work tree, inside a sandbox in which only the tree is writable. Returns
        exit_code, stdout and stderr.

        Args:
            command: the shell command
            timeout: seconds after which it is killed
        """
        require_allowed(deps, "exec", {"command": command}, ctx)
        place: TeamConversation = get_conversation(ctx.by.session)
        return await deps.run(place, await files.folder(ctx), command, float(timeout), ctx)

    return run_command


def require_allowed(deps: MemberDeps, tool: str, arguments: dict[str, Any], ctx: ToolContext) -> None:
    """Apply the user's rules for a tool of the checkout to the same work in a tree. The tree is isolated, so the
    general rule to ask does not apply; a rule that denies, or asks for certain paths or commands, does. Raises
    AccessDenied."""
    found = decide(ctx.policy or deps.policy, tool, arguments)
    rule = found.rule
    is_certain = rule is not None and any(each is not None for each in (rule.path, rule.command, rule.domain))
    if found.verdict == "deny" or (found.verdict == "ask" and is_certain):
        raise AccessDenied(f"call {tool} here: {found.reason}", ["a rule of the user that allows it"])


async def read_text(files: TreeFiles, path: str, ctx: ToolContext) -> str:
    """The text of a file of the caller's tree, at most 5 MB. Raises InvalidInput, NotFound."""
    folder = await files.folder(ctx)
    real = folder.locate(path)
    content, _ = await asyncio.to_thread(folder.read, real, 5_000_000)
    return content.decode(errors="replace")
