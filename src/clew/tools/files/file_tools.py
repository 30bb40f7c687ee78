"""The tools that read and change files in a working folder.

A tool refuses to change a file that somebody else changed since the caller read it. An edit that is repeated with the
same key is applied once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput, TooLarge
from clew.secrecy import mask_in_place
from clew.tools.files.edit_journal import EditJournal, JournalEntry
from clew.tools.files.edit_preview import EditPlan, Preview, ambiguity, lines_of, plan_edit
from clew.tools.files.folder import Stamp, WorkingFolder, changed_meanwhile, stamp_of
from clew.tools.files.line_ranges import read_large, render_range, take_range
from clew.tools.files.snapshots import MAX_FILE, FileRead, Snapshots, hash_of
from clew.tools.files.text_encoding import Decoded, decode
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trust import printable

MAX_WRITE = MAX_FILE

Operation = Literal["read", "write", "edit", "list"]
Line = Annotated[int, msgspec.Meta(ge=1)]

_READS = Effects(reads_only=True, repeats_safely=True, reaches_out=False)
_WRITES = Effects(destroys=True, repeats_safely=True, reaches_out=False)


class FileToolHook(Protocol):
    """Adds content for the reader of a file."""

    async def before(self, operation: Operation, path: str, *, by: Principal) -> Sequence[str]:
        """Return texts to put before the result, such as the rules of the folder, without those that the session of
        `by` has already."""
        ...


def file_tools(
    folder: WorkingFolder, snapshots: Snapshots, hook: FileToolHook | None = None, journal: EditJournal | None = None
) -> tuple[Tool, ...]:
    """Return read-file, write-file, edit-file and preview-edit. With a journal, edit-file recognises a repeated call by
    its key; without one, a repeated edit may be applied twice, and the effects of the tool declare that."""
    files = _FileTools(folder, snapshots, journal)
    read_file, preview_edit = _reading_tools(files, hook)
    write_file, edit_file = _writing_tools(files, hook, is_keyed=journal is not None)
    return read_file, write_file, edit_file, preview_edit


def _reading_tools(files: _FileTools, hook: FileToolHook | None) -> tuple[Tool, Tool]:
    @tool(effects=_READS, category="files", see_also=("grep", "glob"))
    async def read_file(file_path: str, ctx: ToolContext, start_line: Line = 1, end_line: Line | None = None) -> str:
        """Return the text of one file in the working folder, or a range of its lines.

        Args:
            file_path: path relative to the working folder
            start_line: first line, from 1
            end_line: last line; without it, as many as fit
        """
        real, text = await asyncio.to_thread(files.read, _reader(ctx), file_path, start_line, end_line)
        return await _with_rules(hook, "read", real, text, ctx)

    @tool(effects=_READS, category="files", see_also=("edit-file",))
    async def preview_edit(file_path: str, old_string: str, new_string: str, ctx: ToolContext) -> str:
        """Show what edit-file would do, as a unified diff with warnings, without writing.

        Args:
            file_path: path relative to the working folder
            old_string: text to replace
            new_string: replacement
        """
        edit = Edit(path=file_path, old=old_string, new=new_string, replace_all=True)
        real, preview = await asyncio.to_thread(files.preview, edit)
        return await _with_rules(hook, "read", real, _as_json(preview), ctx)

    return read_file, preview_edit


def _writing_tools(files: _FileTools, hook: FileToolHook | None, *, is_keyed: bool) -> tuple[Tool, Tool]:
    @tool(effects=_WRITES, category="files")
    async def write_file(file_path: str, content: str, ctx: ToolContext) -> str:
        """Write a complete text file in the working folder, and create missing folders. An existing file is replaced,
        and keeps its encoding and line ends. To change a part of a file, use edit-file.

        Args:
            file_path: path relative to the working folder
            content: the complete text
        """
        real, text = await asyncio.to_thread(files.write, _reader(ctx), file_path, content)
        return await _with_rules(hook, "write", real, text, ctx)

    @tool(effects=Effects(destroys=True, reaches_out=False, keyed=is_keyed), category="files")
    async def edit_file(
        file_path: str, old_string: str, new_string: str, ctx: ToolContext, replace_all: bool = False
    ) -> str:
        """Replace a text in a file, and return the unified diff. The text must occur exactly once, unless replace_all
        is true.

        Args:
            file_path: path relative to the working folder
            old_string: text to replace, copied from the file, with enough context to occur once
            new_string: replacement
            replace_all: replace every occurrence
        """
        edit = Edit(path=file_path, old=old_string, new=new_string, replace_all=replace_all)
        real, preview = await asyncio.to_thread(files.edit, _reader(ctx), edit, ctx.key)
        return await _with_rules(hook, "edit", real, _as_json(preview), ctx)

    return write_file, edit_file


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    old: str
    new: str
    replace_all: bool = False


class _FileTools:
    """The implementation of the tools. Methods block, and return the real path with each result."""

    def __init__(self, folder: WorkingFolder, snapshots: Snapshots, journal: EditJournal | None) -> None:
        self._folder = folder
        self._snapshots = snapshots
        self._journal = journal

    def read(self, reader: str, path: str, start: int, end: int | None) -> tuple[str, str]:
        real = self._folder.locate(path)
        with self._folder.opened(real) as (_, about):
            size = about.st_size
        if size > MAX_FILE:
            return real, render_range(path, read_large(self._folder, real, start, end), None, f"{size:,} bytes")
        found = self._snapshots.read(self._folder, real)
        self._snapshots.note_seen(reader, real, found.snapshot.hash)
        lines = lines_of(mask_in_place(found.content.text))
        about_it = f"{found.content.encoding}, about {found.snapshot.token_count:,} tokens, {_cached(found)}"
        return real, render_range(path, take_range(lines, start, end), len(lines), about_it)

    def write(self, reader: str, path: str, content: str) -> tuple[str, str]:
        real = self._folder.locate(path, to_write=True)
        if not real:
            raise InvalidInput("file_path", "names the working folder itself")
        with self._folder.changing:
            before, stamp = self._present(real)
            body = _encoded(path, content, before)
            if len(body) > MAX_WRITE:
                raise TooLarge("content", len(body), MAX_WRITE)
            if before is not None and before != body:
                self._check_fresh(reader, real, hash_of(before))
            if before != body:
                self._folder.write(real, body, expected=stamp)
            self._written(reader, real, body)
        return real, f"Wrote {printable(path, 300)}: {len(lines_of(content)):,} lines, {len(body):,} bytes."

    def edit(self, reader: str, edit: Edit, key: str) -> tuple[str, Preview]:
        real = self._folder.locate(edit.path, to_write=True)
        with self._folder.changing:
            found = self._snapshots.read(self._folder, real)
            begun = self._journal.find(key) if self._journal is not None and key else None
            if begun is not None and begun.path == real and begun.after == found.snapshot.hash:
                self._snapshots.note_seen(reader, real, begun.after)
                return real, begun.preview
            self._check_fresh(reader, real, found.snapshot.hash)
            plan = self._plan(edit, found)
            if len(plan.lines) > 1 and not edit.replace_all:
                hint = "Include more of the surrounding text, or replace all with replace_all"
                raise InvalidInput("old_string", ambiguity(plan.lines), hint=hint)
            self._make(reader, real, found, plan, key)
        return real, plan.preview

    def preview(self, edit: Edit) -> tuple[str, Preview]:
        real = self._folder.locate(edit.path)
        return real, self._plan(edit, self._snapshots.read(self._folder, real)).preview

    def _plan(self, edit: Edit, found: FileRead) -> EditPlan:
        return plan_edit(edit.path, found.content, edit.old, edit.new)

    def _make(self, reader: str, real: str, found: FileRead, plan: EditPlan, key: str) -> None:
        body = found.content.encode(plan.text)
        if len(body) > MAX_WRITE:
            raise TooLarge("new_string", len(body), MAX_WRITE)
        if self._journal is not None and key:
            entry = JournalEntry(path=real, before=found.snapshot.hash, after=hash_of(body), preview=plan.preview)
            self._journal.begin(key, entry)
        self._folder.write(real, body, expected=found.stamp)
        self._written(reader, real, body)

    def _present(self, real: str) -> tuple[bytes | None, Stamp | None]:
        """Return the content of a file before it is written; None if it does not exist."""
        if not self._folder.exists(real):
            return None, None
        content, about = self._folder.read(real, MAX_FILE)
        return content, stamp_of(about)

    def _check_fresh(self, reader: str, real: str, now: str) -> None:
        """Check that the file is the version that the reader knows. A reader who has not read the file passes: an edit
        has the text that it replaces, and a restart, which clears this memory, must not change the result."""
        seen = self._snapshots.seen_by(reader, real)
        if seen is not None and seen != now:
            raise changed_meanwhile(real)

    def _written(self, reader: str, real: str, body: bytes) -> None:
        self._snapshots.forget(real)
        self._snapshots.note_seen(reader, real, hash_of(body))


def _encoded(path: str, content: str, before: bytes | None) -> bytes:
    """Encode a text with the encoding and the line ends of the old content; in UTF-8 if Latin-1 lacks a character."""
    like = decode(before) if before is not None else Decoded(text="")
    if like is None:
        raise InvalidInput("file_path", f"{printable(path, 300)} is binary: write-file replaces only text")
    text = like.with_newlines(content)
    if like.encoding == "latin-1" and any(each > "\xff" for each in text):
        return text.encode()
    return like.encode(text)


def _cached(found: FileRead) -> str:
    return f"cache_hit: {'true' if found.cache_hit else 'false'}"


def _reader(ctx: ToolContext) -> str:
    """The reader of a file: one agent in one session."""
    return "\n".join((ctx.by.owner_id, ctx.by.agent_id, ctx.by.session or ""))


def _as_json(preview: Preview) -> str:
    shown = msgspec.structs.replace(preview, diff=mask_in_place(preview.diff))
    return f"```json\n{msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()}\n```"


async def _with_rules(hook: FileToolHook | None, operation: Operation, real: str, text: str, ctx: ToolContext) -> str:
    """Put the texts of the hook before the result. The hook runs only if there is a result, because it records its
    texts as delivered."""
    said = await hook.before(operation, real, by=ctx.by) if hook is not None else ()
    return "\n\n".join([*said, text])
