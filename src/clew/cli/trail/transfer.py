"""Commands that move a whole trail: export, import, reembed."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from clew.cli.arguments.values import reading_content
from clew.cli.folder_access import open_here
from clew.cli.options import EVERY, HERE, FilterOptions, Here, Json
from clew.cli.terminal.output import clean_json, count, note, print_json, say
from clew.cli.terminal.progress import Progress, progress
from clew.errors import ClewError, InvalidInput, NotFound
from clew.trail.transfer import TrailImportReport, export_trail, import_trail

SHOWN_PROBLEMS = 20
STANDARD = Path("-")


async def export(
    file: Annotated[
        Path, Parameter(help="The file to write; - is standard output.", allow_leading_hyphen=True)
    ] = STANDARD,
    /,
    *,
    versions: Annotated[bool, Parameter(help="Include the earlier versions.")] = False,
    force: Annotated[bool, Parameter(help="Replace a file that exists.")] = False,
    which: FilterOptions = EVERY,
    json: Annotated[bool, Parameter(help="Print the file and the counts as JSON; needs a file.")] = False,
    here: Here = HERE,
) -> None:
    """Write breadcrumbs and edges as JSON lines.

    The file appears whole or not at all, and only you may read it. Secrets and vectors are never in it; records that
    need a scope are in it only with --scopes.

        clew trail export trail.jsonl --versions
        clew trail export --tag session:42 | gzip > session.jsonl.gz
    """
    if json and file == STANDARD:
        raise InvalidInput("--json", "needs a file, as standard output has the export itself")
    if file != STANDARD and file.exists() and not force:
        raise ClewError(f"{file} exists", hint="Name another file, or replace it with --force")
    async with open_here(here) as app:
        wanted = which.selector(app.clock.now())
        lines = export_trail(app.trail, app.me, selector=wanted, versions=versions)
        if file == STANDARD:
            async for line in lines:
                sys.stdout.write(clean_json(line))
            return
        written = await _write_whole(file, lines)
    if json:
        print_json({"file": str(file), "lines": written})
    else:
        note(f"Wrote {count(written, 'line')} to {file}.")


async def _write_whole(file: Path, lines: AsyncIterator[str]) -> int:
    """Write a file beside its place, for its owner only, then move it there."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    written = 0
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out, progress("Exporting") as shown:
            async for line in lines:
                out.write(line)
                written += 1
                shown.advance(written, unit="lines")
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return written


async def import_(
    file: Annotated[Path, Parameter(help="An export; - is standard input.", allow_leading_hyphen=True)],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Read what `clew trail export` wrote.

    It may be repeated: existing records stay as they are. Lines that cannot be used are reported, and the
    others are imported; the exit code is then 1.

        clew trail import trail.jsonl
        gunzip -c session.jsonl.gz | clew trail import -
    """
    with _open_input(file) as lines:
        async with open_here(here, create=True) as app:
            with progress("Importing") as shown, reading_content():
                report = await import_trail(app.trail, app.me, _counted(lines, shown))
    print_json(report) if json else _print_report(report)
    return 1 if report.failed_lines else 0


@contextmanager
def _open_input(file: Path) -> Iterator[BinaryIO]:
    if file == STANDARD:
        yield sys.stdin.buffer
        return
    if not file.exists():
        raise NotFound("file", str(file))
    with file.open("rb") as lines:
        yield lines


def _counted(lines: BinaryIO, shown: Progress) -> Iterator[bytes]:
    """Yield the lines and report progress: in bytes for a file, in lines for a pipe."""
    total = os.fstat(lines.fileno()).st_size if lines is not sys.stdin.buffer else 0
    read = 0
    for number, line in enumerate(lines, 1):
        read += len(line)
        shown.advance(read, total) if total else shown.advance(number, unit="lines")
        yield line


def _print_report(report: TrailImportReport) -> None:
    say(
        f"{count(report.created, 'breadcrumb')} created, {report.updated:,} updated, {report.unchanged:,} unchanged,"
        f" {report.kept:,} kept as they are here, {count(report.edges, 'edge')} added"
    )
    for problem in report.problems[:SHOWN_PROBLEMS]:
        note(f"line {problem.line}: {problem.reason}")
    if report.failed_lines > SHOWN_PROBLEMS:
        note(f"and {report.failed_lines - SHOWN_PROBLEMS:,} more lines")


async def reembed(*, json: Json = False, here: Here = HERE) -> None:
    """Recompute all vectors with the current embedder.

    Run it after changing `embedder` in config.toml. It may be interrupted and run again; search uses the old
    vectors until the last one is replaced.

        CLEW_EMBEDDER=minilm clew trail reembed
    """
    done = 0
    async with open_here(here) as app:
        with progress("Embedding") as shown:
            async for done, total in app.trail.upkeep.reembed():
                shown.advance(done, total, "breadcrumbs")
    if json:
        print_json({"embedded": done, "embedder": app.config.embedder})
    else:
        say(f"{count(done, 'vector')} made by {app.config.embedder}." if done else "All vectors are up to date.")
