"""Commands on the knowledge of this folder's files: index, locate, callers, blame-why, brief."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from clew.app import App
from clew.cli.folder_access import check_readable, open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.markdown import plain_text
from clew.cli.terminal.output import BOLD, count, is_terminal, note, print_json, print_rows, say
from clew.cli.terminal.progress import progress
from clew.cli.terminal.source_lines import SourceLines
from clew.errors import InvalidInput
from clew.knowledge.lines import cut

if TYPE_CHECKING:
    from clew.knowledge.base import GatherReport, Knowledge
    from clew.knowledge.code.models import Callers, LocatedFile, SymbolLink
    from clew.knowledge.nodes.node_store import Node

_PLACE = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
Limit = Annotated[int, Parameter(help="At most this many.")]
_BY_NAME = "by its name alone"
_LINES_SHOWN = 12
NOTHING_RECORDED = (
    "Nothing is recorded here yet. Notes of you and your agents appear here, and decision records of the repository."
    ' Write one: clew get history://tools/store_summary summary_type=decision content="Use SQLite for orders"'
)
_OWNERS_SHOWN = 3
_PLACE_SHOWN = 200
_LEFT_OUT_SHOWN = 5


@asynccontextmanager
async def open_knowledge_here(here: Here) -> AsyncIterator[tuple[App, Knowledge, GatherReport]]:
    """Knowledge of this folder, brought up to date with a progress sign. Raises ClewError if its files may not be
    read."""
    await check_readable(here)
    async with open_here(here, create=True) as app:
        await app.bootstrap()
        yield app, app.knowledge(), await _gather(app)


async def _gather(app: App) -> GatherReport:
    with progress("Reading the code") as shown:
        return await app.knowledge().gather(lambda done, total, what: shown.advance(done, total, what))


async def index(
    *,
    yes: Annotated[bool, Parameter(help="Read the folder however many files it has.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Read the code, the history and the documents of this folder.

    Reads only files that changed since the last time. Other commands do this when they need it, so this only makes the
    first of them faster. A folder with more than 50,000 files (catalog.max_files) is read after you agree.

        clew index
        clew index --json
    """
    # the catalog takes as long to load as a short command
    from clew.cli.workspace import read_all

    await check_readable(here, is_agreed=yes)
    async with open_here(here, create=True) as app:
        began = time.monotonic()
        gathered = await read_all(app)
        seconds = time.monotonic() - began
        code = app.knowledge().code
        files, left_out, symbols = await code.files(), await code.left_out(), await code.count_symbols()
    if json:
        print_json({"gathered": gathered, "files": len(files), "symbols": symbols, "left_out": left_out})
        return
    read = gathered.code
    changed = f"{count(len(read.changed), 'file')} new or changed, {len(read.gone):,} gone"
    unknown = f", {read.files - len(files):,} left out" if read.files > len(files) else ""
    say(f"{count(len(files), 'file')} with {count(symbols, 'symbol')}{unknown}: {changed}, {seconds:.1f} s")
    say(f"{count(gathered.commits, 'new commit')}, {count(gathered.decisions, 'decision record')}")
    for each in left_out[:_LEFT_OUT_SHOWN]:
        note(f"Partly indexed: {cut(each.path, _PLACE_SHOWN)} {each.reason}")
    if len(left_out) > _LEFT_OUT_SHOWN:
        note(f"and {len(left_out) - _LEFT_OUT_SHOWN:,} more: `clew index --json` lists them")
    if gathered.is_log_cut:
        from clew.knowledge.git.log import NEWEST  # with the rest of knowledge

        note(f"Only the newest {NEWEST:,} commits are indexed")


async def locate(
    *query: Annotated[str, Parameter(help="The text of an issue, an error or a change.")],
    limit: Limit = 10,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find the files that a text is about, with the best line of each.

    Names, paths and tracebacks in the text count most. It uses no model.

        clew locate "connections are not closed when a request times out"
        clew locate --limit 3 "$(cat issue.txt)" --json
    """
    text = _text(query)
    async with open_knowledge_here(here) as (_, known, _):
        found = await known.code.locate(text, limit=limit)
    files = SourceLines(known.root)
    found = [_with_best_line(each, files, text) for each in found]
    if json:
        print_json(found)
        return
    rows = [(f"{each.path}:{each.line}", files.line(each.path, each.line), each.symbol, each.why) for each in found]
    links = [(known.root / each.path, each.line) for each in found]
    print_rows(("place", "line", "symbol", "why"), rows, main=1, spare=(2, 3), links=links)
    if not found:
        note("No file matches. Try other words, or a name from the code")


def _with_best_line(found: LocatedFile, files: SourceLines, text: str) -> LocatedFile:
    """A file without a matching symbol, with the line that has most words of the text."""
    if found.symbol:
        return found
    import msgspec  # not needed for help

    return msgspec.structs.replace(found, line=files.best_line(found.path, f"{found.why} {text}"))


async def callers(
    symbol: Annotated[str, Parameter(help="A name (`parse`, `App.close`, `package.parse`), or path#name.")],
    /,
    *,
    depth: Annotated[int, Parameter(help="How many calls back.")] = 1,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find what calls a function, a method or a class.

    Python calls are followed across modules: aliases, methods, overrides, re-exports and decorators. Calls that are
    only likely, by the name of their receiver, are marked. A name that a few symbols share is answered for each.

        clew callers parse_config
        clew callers src/app.py#App.close --depth 3
    """
    async with open_knowledge_here(here) as (_, known, _):
        found = await known.code.callers(symbol, depth=depth)
    if json:
        print_json(_plain(found))
        return
    _show_callers(found, known.root)


async def blame_why(
    place: Annotated[str, Parameter(help="PATH:LINE or PATH:FIRST-LAST, from here or from the top of the project.")],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Explain a line of a file by commits, decisions and notes.

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
        indent = each[: len(each) - len(each.lstrip())]
        say(f"{indent}{plain_text(each)}")  # escape characters are for agents only, not for a person


async def brief(
    tier: Annotated[str, Parameter(help="How much: micro, standard or full.")] = "standard",
    /,
    *,
    session: Annotated[str, Parameter(help="Of which session.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the state of the work: open threads, decisions and failures.

    Every line names its source. Decision records of the project are included.

        clew brief
        clew brief full --session release
    """
    from clew.knowledge.history.brief import write_brief  # with the rest of knowledge
    from clew.knowledge.history.entries import NO_SESSION

    await check_readable(here)
    async with open_here(here, create=True) as app:
        await app.bootstrap()
        chronicle = app.knowledge().chronicle(app.me, session or NO_SESSION)
        found = await write_brief(chronicle, tier, await app.knowledge().decisions.nodes())
        await _note_withheld(app.knowledge())
    if json:
        print_json(found)
        return
    say(NOTHING_RECORDED if found.entries == 0 else found.text)


async def _note_withheld(known: Knowledge) -> None:
    for line in await known.consent.withheld():
        note(line)


def _parse_place(place: str) -> tuple[str, int, int]:
    """The path, first and last line of a typed place. Raises InvalidInput."""
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
    """A path relative to the project's root: resolved from the current folder if the file exists there, otherwise as
    typed."""
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
    """The callers as JSON, with the names of kinds instead of their numbers."""
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


def _describe_others(found: Callers) -> list[str]:
    """Lines with the number of calls of this name that likely belong to other symbols, and of those that could not be
    resolved."""
    asked = {_ref_of(each.node) for each in found.symbols}
    owners = [(owner, number) for owner, number in found.owners.items() if owner and owner not in asked]
    shown = [f"{count(number, 'call')} of this name, likely of {owner}" for owner, number in owners[:_OWNERS_SHOWN]]
    more = sum(number for _, number in owners[_OWNERS_SHOWN:])
    shown += [f"{count(more, 'call')} of this name, likely of others"] if more else []
    unknown = found.owners.get("", 0)
    return [*shown, f"{count(unknown, 'call')} of this name could not be told apart"] if unknown else shown


class _CallRow(NamedTuple):
    """One caller: the lines of its calls, a remark about them, and the symbol that it calls."""

    path: str
    lines: Sequence[int]
    caller: str
    remark: str
    of: str


def _show_callers(found: Callers, root: Path) -> None:
    """Print each caller with the line of its first call. Several symbols have headings on a terminal, else a column."""
    shown = [
        _CallRow(
            link.node.path or "", link.lines or (link.line,), link.node.name, _describe_call(link), _ref_of(each.node)
        )
        for each in found.symbols
        for link in each.callers
    ]
    shown += _unresolved_rows(found)
    symbols = list(dict.fromkeys(each.of for each in shown))
    if len(found.symbols) == 1 or not is_terminal():
        _print_calls(shown, root, is_one=len(found.symbols) == 1)
    else:
        for symbol in symbols:
            say(symbol, BOLD)
            _print_calls([each for each in shown if each.of == symbol], root, is_one=True)
    _note_callers(found)


def _print_calls(shown: Sequence[_CallRow], root: Path, *, is_one: bool) -> None:
    files = SourceLines(root)
    rows = [
        (
            f"{each.path}:{each.lines[0]}",
            each.caller,
            "  ".join(filter(None, (files.line(each.path, each.lines[0]), _describe_more(each)))),
            each.of,
        )
        for each in shown
    ]
    width = 3 if is_one else 4
    links = [(root / each.path, each.lines[0]) for each in shown]
    head = ("place", "caller", "line", "of")[:width]
    print_rows(head, [row[:width] for row in rows], main=2, spare=(1,), links=links)


def _describe_more(row: _CallRow) -> str:
    """Further lines of the same caller, and the remark, in brackets."""
    more = row.lines[1:]
    told = f"also {', '.join(map(str, more[:_LINES_SHOWN]))}{', …' if len(more) > _LINES_SHOWN else ''}" if more else ""
    inner = ", ".join(filter(None, (told, row.remark)))
    return f"({inner})" if inner else ""


def _describe_call(link: SymbolLink) -> str:
    steps = f"step {link.depth}" if link.depth > 1 else ""
    return ", ".join(filter(None, (steps, _BY_NAME if link.is_guess else "")))


def _unresolved_rows(found: Callers) -> list[_CallRow]:
    """Rows for likely calls and, if there is no certain call, for all other calls of the name. The lines of one caller
    form one row."""
    lines: dict[tuple[str, str, str, str], list[int]] = {}
    for call in found.places:
        if call.is_likely or not found.certain:
            mark = "likely" if call.is_likely else f"likely of {call.owner}" if call.owner else _BY_NAME
            owner = call.owner if call.is_likely else "any of them"
            lines.setdefault((call.path, call.caller, mark, owner), []).append(call.line)
    return [
        _CallRow(path, found_at, caller or path, mark, owner) for (path, caller, mark, owner), found_at in lines.items()
    ]


def _note_callers(found: Callers) -> None:
    """Report symbols without callers, and the calls of the same name that the table leaves out."""
    for each in found.symbols if len(found.symbols) > 1 else ():
        if not each.callers:
            note(
                f"No call of {_ref_of(each.node)} is certain" if found.untold else f"Nothing calls {_ref_of(each.node)}"
            )
    others = _describe_others(found)
    listed = f"; the first {len(found.places)} are listed" if len(found.places) < found.untold else ""
    if not found.certain:
        note("; ".join(["No call of it is certain", *others]) + listed)
    elif others:
        note(f"{'; '.join(others)}; --json lists {'the first of them' if listed else 'them'}")
    elif not found.untold and not any(each.callers for each in found.symbols):
        note("Nothing in this repository calls it")
