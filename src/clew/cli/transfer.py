"""Commands that move a whole trail: export, import, reembed."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from clew.cli.options import EVERY, HERE, Here, Json, Which, open_here
from clew.cli.output import clean_json, count, note, open_console, print_json, say
from clew.errors import ClewError, NotFound
from clew.trail.transfer import ImportReport, export_trail, import_trail

SHOWN_PROBLEMS = 20
STANDARD = Path("-")


async def export(
    file: Annotated[
        Path, Parameter(help="Where to write; - is standard output.", allow_leading_hyphen=True)
    ] = STANDARD,
    /,
    *,
    versions: Annotated[bool, Parameter(help="Include the earlier versions.")] = False,
    force: Annotated[bool, Parameter(help="Replace a file that exists.")] = False,
    which: Which = EVERY,
    here: Here = HERE,
) -> None:
    """Write breadcrumbs and edges as JSON lines.

    The file appears whole or not at all. Secrets and vectors are never in it; what needs a scope is in it only
    with --scopes.

        clew trail export trail.jsonl --versions
        clew trail export --tag session:42 | gzip > session.jsonl.gz
    """
    if file != STANDARD and file.exists() and not force:
        raise ClewError(f"{file} exists", hint="Name another file, or replace it with --force")
    async with open_here(here) as app:
        lines = export_trail(app.trail, app.me, selector=which.selector(), versions=versions)
        if file == STANDARD:
            async for line in lines:
                sys.stdout.write(clean_json(line))
            return
        written = await _write_whole(file, lines)
    note(f"Wrote {count(written, 'line')} to {file}.")


async def _write_whole(file: Path, lines: AsyncIterator[str]) -> int:
    """Write a file beside its place, then move it there."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    written = 0
    try:
        with draft.open("w", encoding="utf-8") as out:
            async for line in lines:
                out.write(line)
                written += 1
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

    It may be repeated: what is there already stays as it is. Lines that cannot be used are reported, and the
    others are imported; the exit code is then 1.

        clew trail import trail.jsonl
        gunzip -c session.jsonl.gz | clew trail import -
    """
    with _open_input(file) as lines:
        async with open_here(here, create=True) as app:
            report = await import_trail(app.trail, app.me, lines)
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


def _print_report(report: ImportReport) -> None:
    say(
        f"{count(report.created, 'breadcrumb')} created, {report.updated:,} updated, {report.unchanged:,} unchanged,"
        f" {report.kept:,} kept as they are here, {count(report.edges, 'edge')} added"
    )
    for problem in report.problems[:SHOWN_PROBLEMS]:
        note(f"line {problem.line}: {problem.reason}")
    if report.failed_lines > SHOWN_PROBLEMS:
        note(f"and {report.failed_lines - SHOWN_PROBLEMS:,} more lines")


async def reembed(*, json: Json = False, here: Here = HERE) -> None:
    """Give every breadcrumb a vector of the present embedder.

    Run it after changing `embedder` in config.toml. It may be interrupted and run again; search uses the old
    vectors until the last one is replaced.

        CLEW_EMBEDDER=minilm clew trail reembed
    """
    done = 0
    async with open_here(here) as app:
        with _progress("Embedding") as advance:
            async for done, total in app.trail.upkeep.reembed():
                advance(done, total)
    if json:
        print_json({"embedded": done, "embedder": app.config.embedder})
    else:
        say(f"{count(done, 'vector')} made by {app.config.embedder}." if done else "All vectors are up to date.")


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import Progress  # see open_console

    with Progress(console=open_console(errors=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
