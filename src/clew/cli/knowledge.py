"""Commands on what is known of this folder's files: index, locate, callers, blame-why, brief."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.app import App
from clew.cli.options import HERE, Here, Json, open_here
from clew.cli.output import count, note, print_json, print_rows, say
from clew.cli.progress import progress
from clew.errors import InvalidInput

if TYPE_CHECKING:
    from clew.knowledge.base import Gathered, Knowledge

Limit = Annotated[int, Parameter(help="At most this many.")]


@asynccontextmanager
async def open_knowledge_here(here: Here) -> AsyncIterator[tuple[App, Knowledge, Gathered]]:
    """What is known here, brought up to date; a person sees how far that is."""
    async with open_here(here, create=True) as app:
        await app.bootstrap()
        known = app.knowledge()
        with progress("Reading the code") as shown:
            gathered = await known.gather(lambda done, total, what: shown.advance(done, total, what))
        yield app, known, gathered


async def index(*, json: Json = False, here: Here = HERE) -> None:
    """Read the code, the history and the documents of this folder.

    What has not changed since the last time is not read again. Commands that need it do this by themselves.

        clew index
        clew index --json
    """
    async with open_knowledge_here(here) as (_, known, gathered):
        files = await known.code.files()
    symbols = sum(each.symbols for each in files)
    if json:
        print_json({"gathered": gathered, "files": len(files), "symbols": symbols})
        return
    code = gathered.code
    changed = f"{count(len(code.changed), 'file')} new or changed, {len(code.gone):,} gone"
    say(f"{count(len(files), 'file')} with {count(symbols, 'symbol')}: {changed}, {code.seconds:.1f} s")
    told = f"{count(gathered.decisions, 'decision')} and {count(gathered.documents, 'document')} new or changed"
    say(f"{count(gathered.commits, 'new commit')}, {told}")


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
    symbol: Annotated[str, Parameter(help="A name, or path#qualname where several have it.")],
    /,
    *,
    depth: Annotated[int, Parameter(help="How many calls back.")] = 1,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find what calls a function, a method or a class.

    Python is followed across modules: aliases, methods, re-exports and decorators. Where only a name speaks for a call,
    it says so.

        clew callers parse_config
        clew callers src/app.py#App.close --depth 3
    """
    async with open_knowledge_here(here) as (_, known, _):
        links = await known.code.dependents(symbol, edge_type="calls", depth=depth)
    if json:
        print_json(links)
        return
    rows = [
        (f"{each.node.path}:{each.line}", each.node.name, str(each.depth), "by its name alone" if each.is_guess else "")
        for each in links
    ]
    print_rows(("place", "caller", "step", "sure"), rows, main=0, spare=(3,))
    if not links:
        note("Nothing in this repository calls it")


async def blame_why(
    place: Annotated[str, Parameter(help="PATH:LINE")],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Say why a line is as it is: commits, decisions and what was noted.

    The line may be changed and not committed yet. Every line of the answer names its source.

        clew blame-why src/app.py:42
    """
    from clew.knowledge.domains.history import why_lines  # with the rest of knowledge

    path, _, line = place.rpartition(":")
    if not path or not line.isdecimal() or int(line) < 1:
        raise InvalidInput("place", f"{place!r} is not PATH:LINE", hint="Write it as src/app.py:42")
    async with open_knowledge_here(here) as (app, known, _):
        why = await known.why(path, int(line), by=app.me)
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
    from clew.knowledge.domains.history import NO_SESSION
    from clew.knowledge.history.briefing import brief as write_brief  # with the rest of knowledge

    async with open_here(here, create=True) as app:
        await app.bootstrap()
        found = await write_brief(app.knowledge().chronicle(app.me, session or NO_SESSION), tier)
    if json:
        print_json(found)
        return
    say(found.text)
    for number, id in enumerate(found.sources, 1):
        say(f"[{number}] {id}")


def _text(words: tuple[str, ...]) -> str:
    text = " ".join(words)
    if not text.strip():
        raise InvalidInput("query", "is empty", hint="Paste the text of the issue or the error")
    return text
