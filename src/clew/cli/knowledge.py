"""Commands on what is known of this folder's files: index, locate, callers, blame-why, brief."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from clew.app import App
from clew.cli.options import HERE, Here, Json, open_here
from clew.cli.output import count, note, print_json, print_rows, say
from clew.cli.progress import progress
from clew.errors import InvalidInput
from clew.knowledge.lines import cut

if TYPE_CHECKING:
    from clew.knowledge.base import Gathered, Knowledge
    from clew.knowledge.code.models import Callers, Link
    from clew.trail.nodes import Node

_PLACE = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
Limit = Annotated[int, Parameter(help="At most this many.")]
_BY_NAME = "by its name alone"
_LINES_SHOWN = 12
_PLACE_SHOWN = 200
_LEFT_OUT_SHOWN = 5


@asynccontextmanager
async def open_knowledge_here(here: Here) -> AsyncIterator[tuple[App, Knowledge, Gathered]]:
    """What is known here, brought up to date; a person sees how far that is."""
    async with open_here(here, create=True) as app:
        await app.bootstrap()
        yield app, app.knowledge(), await _gather(app)


async def _gather(app: App) -> Gathered:
    with progress("Reading the code") as shown:
        return await app.knowledge().gather(lambda done, total, what: shown.advance(done, total, what))


async def index(*, json: Json = False, here: Here = HERE) -> None:
    """Read the code, the history and the documents of this folder.

    What has not changed since the last time is not read again. Commands that need it do this by themselves; the first
    of them is quicker afterwards.

        clew index
        clew index --json
    """
    # the catalog takes as long to load as a short command
    from clew.cli.catalog import open_workspace_here, read_all

    async with open_workspace_here(here) as (app, workspace):
        began = time.monotonic()
        gathered = await read_all(app, workspace)
        seconds = time.monotonic() - began
        files, left_out = await app.knowledge().code.files(), await app.knowledge().code.left_out()
    symbols = sum(each.symbols for each in files)
    if json:
        print_json({"gathered": gathered, "files": len(files), "symbols": symbols, "left_out": left_out})
        return
    code = gathered.code
    changed = f"{count(len(code.changed), 'file')} new or changed, {len(code.gone):,} gone"
    unknown = f", {code.files - len(files):,} left out" if code.files > len(files) else ""
    say(f"{count(len(files), 'file')} with {count(symbols, 'symbol')}{unknown}: {changed}, {seconds:.1f} s")
    told = f"{count(gathered.decisions, 'decision')} and {count(gathered.documents, 'document')} new or changed"
    say(f"{count(gathered.commits, 'new commit')}, {told}")
    for each in left_out[:_LEFT_OUT_SHOWN]:
        note(f"Not all is known of {cut(each.path, _PLACE_SHOWN)}: it {each.reason}")
    if len(left_out) > _LEFT_OUT_SHOWN:
        note(f"Nor of {len(left_out) - _LEFT_OUT_SHOWN:,} more: `clew index --json` lists them")
    if gathered.is_log_cut:
        from clew.knowledge.history.commits import NEWEST  # with the rest of knowledge

        note(f"Of the history, the newest {NEWEST:,} commits are known; older ones are not read")


async def locate(
    *query: Annotated[str, Parameter(help="The text of an issue, an error or a change.")],
    limit: Limit = 10,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find the files that a text is about, each with its best line.

    No model is asked. Names, paths and tracebacks in the text count most.

        clew locate "connections are not closed when a request times out"
        clew locate --limit 3 "$(cat issue.txt)" --json
    """
    text = _text(query)
    async with open_knowledge_here(here) as (_, known, _):
        found = await known.code.locate(text, limit=limit)
    if json:
        print_json(found)
        return
    rows = [(f"{each.path}:{each.line}", each.symbol, each.why) for each in found]
    print_rows(("place", "symbol", "why"), rows, main=0, spare=(2, 1))
    if not found:
        note("No file is about that. Try other words, or a name that stands in the code")


async def callers(
    symbol: Annotated[str, Parameter(help="A name (`parse`, `App.close`, `package.parse`), or path#name.")],
    /,
    *,
    depth: Annotated[int, Parameter(help="How many calls back.")] = 1,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find what calls a function, a method or a class.

    Python is followed across modules: aliases, methods, re-exports and decorators. Where only a name speaks for a call,
    it says so. A name that a few have is answered for each of them.

        clew callers parse_config
        clew callers src/app.py#App.close --depth 3
    """
    async with open_knowledge_here(here) as (_, known, _):
        found = await known.code.callers(symbol, depth=depth)
    if json:
        print_json(_plain(found))
        return
    is_one = len(found.symbols) == 1
    rows = [
        (
            f"{link.node.path}:{link.line}",
            link.node.name,
            _describe_call(link),
            *([] if is_one else [_ref_of(each.node)]),
        )
        for each in found.symbols
        for link in each.callers
    ]
    if not found.certain:
        blank = () if is_one else ("any of them",)
        rows += [(f"{call.path}:{call.line}", call.caller or call.path, _BY_NAME, *blank) for call in found.places]
    print_rows(("place", "caller", "call", "of")[: 3 if is_one else 4], rows)  # a place that is cut leads nowhere
    _note_callers(found)


async def blame_why(
    place: Annotated[str, Parameter(help="PATH:LINE or PATH:FIRST-LAST, from here or from the top of the project.")],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Say why a line is as it is: commits, decisions and what was noted.

    The line may be changed and not committed yet. Every line of the answer names its source.

        clew blame-why src/app.py:42
        clew blame-why src/app.py:40-48
    """
    from clew.knowledge.domains.history import why_lines  # with the rest of knowledge

    path, first, last = _parse_place(place)
    async with open_knowledge_here(here) as (app, known, _):
        why = await known.why(_in_project(known.root, path), first, last, by=app.me)
        await _note_withheld(known)
    if json:
        print_json(why)
        return
    for each in why_lines(why):
        say(each)


async def brief(
    tier: Annotated[str, Parameter(help="How much: micro, standard or full.")] = "standard",
    /,
    *,
    session: Annotated[str, Parameter(help="Of which session.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Tell where things stand, each line with its source.

    Open threads, decisions and failures that were noted.

        clew brief
        clew brief full --session release
    """
    from clew.knowledge.history.briefing import brief as write_brief  # with the rest of knowledge
    from clew.knowledge.history.entries import NO_SESSION

    async with open_here(here, create=True) as app:
        await app.bootstrap()
        found = await write_brief(app.knowledge().chronicle(app.me, session or NO_SESSION), tier)
        await _note_withheld(app.knowledge())
    if json:
        print_json(found)
        return
    say(found.text)
    for number, place in enumerate(found.places, 1):
        say(f"[{number}] {place}")


async def _note_withheld(known: Knowledge) -> None:
    for line in await known.consent.withheld():
        note(line)


def _parse_place(place: str) -> tuple[str, int, int]:
    """Path, first and last line of what was typed. Raises InvalidInput."""
    found, shown = _PLACE.fullmatch(place), repr(cut(place, _PLACE_SHOWN))
    hint = "Write it as src/app.py:42 or src/app.py:40-48"
    first, last = (int(found["first"]), int(found["last"] or found["first"])) if found else (0, 0)
    if found is None or first < 1:
        raise InvalidInput("place", f"{shown} is not PATH:LINE", hint=hint)
    if last < first:
        raise InvalidInput("place", f"{shown} ends before it begins", hint=hint)
    if not found["path"].isprintable():
        raise InvalidInput("place", f"{shown} has characters that no path has here", hint="Rename the file")
    return found["path"], first, last


def _in_project(root: Path, path: str) -> str:
    """A path from the top of the project: of a file that lies there as seen from here, else as it was typed."""
    whole = Path(os.path.normpath(Path.cwd() / path))
    for top in (root.absolute(), root.resolve()):
        if whole.is_relative_to(top) and (os.path.exists(whole) or Path(path).is_absolute()):
            return whole.relative_to(top).as_posix()
    return path


def _text(words: tuple[str, ...]) -> str:
    text = " ".join(words)
    if not text.strip():
        raise InvalidInput("query", "is empty", hint="Paste the text of the issue or the error")
    return text


def _plain(found: Callers) -> Any:
    """As it is printed: kinds by their names, which a reader of JSON can tell."""
    import msgspec  # not needed for help

    plain = msgspec.to_builtins(found)
    for told, each in zip(plain["symbols"], found.symbols, strict=True):
        told["node"] |= _kinds(each.node)
        for said, link in zip(told["callers"], each.callers, strict=True):
            said["node"] |= _kinds(link.node)
    return plain


def _kinds(node: Node) -> dict[str, str]:
    return {"domain": node.domain.label, "node_type": node.node_type.label, "verification": node.verification.label}


def _ref_of(node: Node) -> str:
    return node.id.removeprefix("code:")


def _describe_call(link: Link) -> str:
    lines = ", ".join(map(str, link.lines[:_LINES_SHOWN])) + (", …" if len(link.lines) > _LINES_SHOWN else "")
    told = f"lines {lines}" if len(link.lines) > 1 else f"line {link.line}"
    steps = f", step {link.depth}" if link.depth > 1 else ""
    return f"{told}{steps}, {_BY_NAME}" if link.is_guess else f"{told}{steps}"


def _note_callers(found: Callers) -> None:
    """What the table does not say: who is not called, and how many calls may be of it besides."""
    for each in found.symbols if len(found.symbols) > 1 else ():
        if not each.callers:
            note(
                f"No call of {_ref_of(each.node)} is certain" if found.untold else f"Nothing calls {_ref_of(each.node)}"
            )
    calls = f"{count(found.untold, 'call')} of this name could not be told apart"
    listed = f"; the first {len(found.places)} are listed" if len(found.places) < found.untold else ""
    if not found.certain:
        note(f"No call of it is certain; {calls}{listed}" if found.untold else "No call of it is certain")
    elif found.untold:
        note(f"{calls} besides; --json lists {'the first of them' if listed else 'them'}")
    elif not any(each.callers for each in found.symbols):
        note("Nothing in this repository calls it")
