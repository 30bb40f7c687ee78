"""The tools `glob` and `grep`, which find files by name and lines by content in a working folder."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from clew.errors import InvalidInput
from clew.fences import clean, fenced
from clew.secrecy import mask_in_place
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.path_denials import Denials
from clew.tools.permissions.policy import Policy
from clew.tools.search.file_walk import Denied, expand_globs, matches_any, shown_path, walk
from clew.tools.search.line_matcher import Hits, MatchTask, read_below, text_lines
from clew.tools.search.searchers import Searcher, check_pattern, find_searcher
from clew.tools.tool import Effects, Tool, ToolContext, tool

MAX_LINE = 500
MAX_FILE = 10_000_000
MAX_PATTERN = 2_000

Limit = Annotated[int, msgspec.Meta(ge=1, le=2_000)]
Context = Annotated[int, msgspec.Meta(ge=0, le=10)]

_EFFECTS = Effects(reads_only=True, repeats_safely=True, reaches_out=False)


def search_tools(
    folder: WorkingFolder, searcher: Searcher | None = None, *, policy: Policy | None = None
) -> tuple[Tool, ...]:
    """Return glob and grep. They skip ignored files, links, binary files, and paths that the folder's or the caller's
    policy denies. For grep this includes the paths that read-file may not read."""
    denying = policy or Policy()
    glob = _glob_tool(folder, Denials(denying, "glob"))
    return glob, _grep_tool(folder, searcher or find_searcher(), Denials(denying, "grep", "read-file"))


def _glob_tool(folder: WorkingFolder, unlisted: Denials) -> Tool:
    @tool(effects=_EFFECTS, category="files", see_also=("grep", "read-file"))
    async def glob(pattern: str, ctx: ToolContext, path: str = "", limit: Limit = 200) -> str:
        """List the files of the working folder whose path matches a glob, sorted. `*` matches within a folder, `**`
        across folders, `{a,b}` either. A pattern without a slash matches names in any folder.

        Args:
            pattern: such as src/**/*.py or *.{md,rst}
            path: folder to search, relative to the working folder
            limit: number of files to list
        """
        globs = expand_globs(_checked(pattern))
        base = folder.locate(path)
        found = await asyncio.to_thread(_find, folder, base, globs, unlisted.beside(ctx.policy))
        return _listing(found, limit)

    return glob


def _grep_tool(folder: WorkingFolder, searcher: Searcher, unread: Denials) -> Tool:
    @tool(effects=_EFFECTS, category="files", see_also=("glob", "read-file"))
    async def grep(
        pattern: str,
        ctx: ToolContext,
        path: str = "",
        include: str = "",
        ignore_case: bool = False,
        fixed: bool = False,
        context: Context = 0,
        limit: Limit = 100,
    ) -> str:
        """Find lines that match a regular expression in the text files of the working folder.

        Args:
            pattern: a regular expression, matched within single lines
            path: file or folder to search, relative to the working folder
            include: glob of the files to search, such as *.py
            ignore_case: ignore upper and lower case
            fixed: treat the pattern as plain text
            context: number of lines to show around each match
            limit: number of matching lines to show; all are counted
        """
        expression = _expression(pattern, is_fixed=fixed)
        globs = expand_globs(include) if include else ("**",)
        base = folder.locate(path)
        files, skipped = await asyncio.to_thread(_candidates, folder, base, globs, unread.beside(ctx.policy))
        task = _task(folder, files, expression, ignore_case=ignore_case, limit=limit)
        hits = await searcher.search(task) if files else ()
        return await asyncio.to_thread(_report, task, hits, skipped, context)

    return grep


def _expression(pattern: str, *, is_fixed: bool) -> str:
    """Return the regular expression of a pattern. Raises InvalidInput."""
    expression = re.escape(_checked(pattern)) if is_fixed else _checked(pattern)
    check_pattern(expression)
    return expression


def _task(folder: WorkingFolder, files: Sequence[str], expression: str, *, ignore_case: bool, limit: int) -> MatchTask:
    return MatchTask(
        root=folder.root,
        files=tuple(map(os.fsencode, files)),
        pattern=expression,
        ignore_case=ignore_case,
        limit=limit,
        max_bytes=MAX_FILE,
    )


def _checked(pattern: str) -> str:
    if not pattern or len(pattern) > MAX_PATTERN or "\n" in pattern or "\0" in pattern:
        raise InvalidInput("pattern", f"must have 1 to {MAX_PATTERN:,} characters on one line")
    return pattern


def _find(folder: WorkingFolder, base: str, globs: Sequence[str], is_denied: Denied) -> list[str]:
    """Return matching paths. Globs are relative to `base`."""
    below = len(base) + 1 if base and folder.is_folder(base) else 0
    return sorted(path for path in walk(folder, base, is_denied) if matches_any(globs, path[below:]))


def _candidates(folder: WorkingFolder, base: str, globs: Sequence[str], is_denied: Denied) -> tuple[list[str], int]:
    """Return the files to search, and the number of files that are too large."""
    files = _find(folder, base, globs, is_denied)
    chosen = [path for path in files if _size(folder, path) <= MAX_FILE]
    return chosen, len(files) - len(chosen)


def _size(folder: WorkingFolder, path: str) -> int:
    try:
        return os.lstat(os.path.join(folder.root, path)).st_size
    except OSError:
        return 0


def _listing(found: Sequence[str], limit: int) -> str:
    if not found:
        return "No file matches."
    rest = f"; the first {limit:,} of them" if len(found) > limit else ""
    lines = "\n".join(map(shown_path, found[:limit]))
    return f"{len(found):,} files match{rest}:\n{lines}" if len(found) > 1 else f"1 file matches:\n{lines}"


def _report(task: MatchTask, hits: Sequence[Hits], skipped: int, context: int) -> str:
    total = sum(each.count for each in hits)
    shown = sum(len(each.lines) for each in hits)
    left_out = f" {skipped:,} files over {MAX_FILE:,} bytes were skipped." if skipped else ""
    if not total:
        return f"No line matches in {len(task.files):,} files.{left_out}"
    rest = f"; the first {shown:,} of them" if shown < total else ""
    head = f"{total:,} matching lines in {len(hits):,} of {len(task.files):,} files{rest}.{left_out}"
    blocks = [_block(task, each, context) for each in hits if each.lines]
    return f"{head}\n{fenced(clean(chr(10).join(blocks)), 'text')}"


def _block(task: MatchTask, hits: Hits, context: int) -> str:
    """Format a file with its matching lines. The file is read again through the working folder."""
    path = task.files[hits.file]
    text = "\n".join(text_lines(read_below(task.root, path, task.max_bytes)))
    lines = mask_in_place(text).split("\n")
    return "\n".join([shown_path(os.fsdecode(path)), *_shown_lines(lines, hits.lines, context)])


def _shown_lines(lines: Sequence[str], wanted: Sequence[int], context: int) -> Iterator[str]:
    """Yield matching lines as `12: text`, context lines as `13- text`, and a mark for omitted lines."""
    matching = set(wanted)
    around = sorted({near for at in wanted for near in range(at - context, at + context + 1) if 0 < near <= len(lines)})
    last = around[0] - 1 if around else 0
    for number in around:
        if context and number != last + 1:
            yield "  --"
        text = lines[number - 1].encode(errors="replace").decode()
        cut = f" [... {len(text) - MAX_LINE:,} characters more]" if len(text) > MAX_LINE else ""
        yield f"  {number}{':' if number in matching else '-'} {text[:MAX_LINE]}{cut}"
        last = number
