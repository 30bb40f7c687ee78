"""Commands that change the trail: put, edit, rm."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from clew.app import App
from clew.cli.arguments.values import parse_json, parse_ttl, read_context, reading_content, set_value
from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json, split_assignment
from clew.cli.terminal.output import agrees, count, is_terminal, note, print_json, say
from clew.cli.trail.browse import Id
from clew.cli.trail.record_ids import find_id
from clew.errors import ClewError, Conflict, InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.work.correlation import refuse_own_tags

ATTEMPTS = 10


async def put(
    *,
    title: Annotated[str | None, Parameter(help="Its title; without it, drafts are read from standard input.")] = None,
    context: Annotated[
        str | None,
        Parameter(help="Its content: a JSON object, @file, or - for standard input.", allow_leading_hyphen=True),
    ] = None,
    tag: Annotated[tuple[str, ...], Parameter(help="A tag; may be repeated.")] = (),
    schema: Annotated[str | None, Parameter(help="Its schema name, such as note.v1.")] = None,
    scope: Annotated[tuple[str, ...], Parameter(help="A scope that its readers must hold; may be repeated.")] = (),
    ttl: Annotated[str | None, Parameter(help="When it ends: 5m, a time, reads:3, never, or 1h,reads:3.")] = None,
    key: Annotated[str | None, Parameter(help="A key that makes a repeated put return the first result.")] = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Write breadcrumbs from options or from standard input.

    Prints the id of each. Standard input holds one draft as JSON or many as JSON lines, written all or none;
    the options then fill in what a draft lacks, and add their tags and scopes to each.

        clew trail put --title "Port 8081 is ours" --schema note.v1 --tag ports --context '{"port": 8081}'
        clew trail put --title "Build log" --context @build.json --ttl 7d
        echo '{"title": "Hello", "context": {}}' | clew trail put
    """
    if title is None and context is not None:
        raise InvalidInput("--context", "needs a --title")
    scopes = _split_scopes(scope)
    drafts = read_drafts() if title is None else [Draft(title=title, context=read_context(context or "{}"))]
    if key is not None and len(drafts) != 1:
        raise InvalidInput("--key", "is for one breadcrumb", hint="Give each draft an idempotency_key of its own")
    refuse_own_tags(each for draft in drafts for each in (*draft.tags, *tag))
    async with open_here(here, create=True) as app:
        end = parse_ttl(ttl, app.clock.now()) if ttl is not None else None
        completed = [
            msgspec.structs.replace(
                draft,
                tags=(*draft.tags, *tag),
                scopes=(*draft.scopes, *scopes),
                schema_name=draft.schema_name or schema,
                ttl=draft.ttl or end,
                idempotency_key=draft.idempotency_key or key,
            )
            for draft in drafts
        ]
        with reading_content() if title is None else nullcontext():
            written = await app.trail.records.create_many(completed, by=app.me)
    for each in written:
        print_json(each) if json else say(each.id)
    _print_hidden(written, here)


def _split_scopes(given: tuple[str, ...]) -> list[str]:
    """Scopes from options that may hold several with commas. An empty scope is refused. Ignoring it would open the
    breadcrumb to more readers."""
    scopes = [scope.strip() for text in given for scope in text.split(",")]
    if not all(scopes):
        raise InvalidInput("--scope", "is empty", hint="Name a scope, or leave --scope out")
    return scopes


def _print_hidden(written: Sequence[Breadcrumb], here: Here) -> None:
    """Print a note if the writer cannot read the breadcrumbs that it just wrote."""
    hidden = [each for each in written if not here.scope_set.issuperset(each.scopes)]
    if hidden:
        needed = ",".join(sorted({scope for each in hidden for scope in each.scopes}))
        note(f"{count(len(hidden), 'breadcrumb')} will not be shown to you without --scopes {needed}")


def read_drafts() -> list[Draft]:
    """Read the drafts on standard input: one JSON object, or one object on each line. Raises InvalidInput on a
    terminal, ClewError for input that is not a draft."""
    if sys.stdin.isatty():
        raise InvalidInput("--title", "is missing", hint="Give one, or pipe a draft as JSON into this command")
    raw = sys.stdin.buffer.read()
    lines = [(number, line) for number, line in enumerate(raw.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise ClewError("standard input is empty", hint='For example {"title": "Hello", "context": {}}')
    with reading_content():
        if len(lines) == 1 or not _is_json(lines[0][1]):
            return [parse_json(raw, Draft, "standard input")]
        return [parse_json(line, Draft, f"line {number}") for number, line in lines]


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


async def edit(
    id: Id,
    /,
    *,
    set: Annotated[
        tuple[str, ...], Parameter(help="dotted.path=value of the context, the value as JSON or text; may be repeated.")
    ] = (),
    title: Annotated[str | None, Parameter(help="A new title.")] = None,
    add_tag: Annotated[tuple[str, ...], Parameter(help="A tag to add; may be repeated.")] = (),
    remove_tag: Annotated[tuple[str, ...], Parameter(help="A tag to take away; may be repeated.")] = (),
    expect: Annotated[
        int | None, Parameter(help="Write only if this is the present version, and do not try again.")
    ] = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Write the next version of a breadcrumb.

    With options it is read, changed and written, again from the start when somebody else wrote in between, unless
    --expect names the version that the change is for. Without options, on a terminal, it opens as JSON in $VISUAL
    or $EDITOR.

        clew trail edit 2e7484bd67a7 --set status=done --add-tag done --remove-tag open
        clew trail edit 2e7484bd67a7 --set limits.retries=5 --expect 3
        clew trail edit 2e7484bd67a7
    """
    assignments = [split_assignment(text, "--set") for text in set]
    refuse_own_tags(add_tag)

    def merge(found: Breadcrumb) -> Change:
        for path, value in assignments:
            set_value(found.context, path, value)
        tags = [tag for tag in (*found.tags, *add_tag) if tag not in remove_tag]
        return Change(title=found.title if title is None else title, context=found.context, tags=tags)

    async with open_here(here) as app:
        found_id = await find_id(app, id)
        if assignments or title is not None or add_tag or remove_tag:
            written = await _update(app, found_id, merge, expect)
        else:
            written = await _edit_by_hand(app, found_id, expect)
    print_json(written) if json else say(f"{written.id} version {written.version}")
    _print_hidden([written], here)


async def _update(app: App, id: str, merge: Callable[[Breadcrumb], Change], expect: int | None) -> Breadcrumb:
    """Change the expected version, or the newest one if none is expected. For the newest, start again after a
    concurrent write. Raises Conflict."""
    for _ in range(ATTEMPTS if expect is None else 1):
        found = await _get_expected(app, id, expect)
        try:
            return await app.trail.records.update(id, merge(found), expect=found.version, by=app.me)
        except Conflict as conflict:
            lost = conflict
    raise lost


async def _get_expected(app: App, id: str, expect: int | None) -> Breadcrumb:
    """The present version. Raises Conflict when another one was expected."""
    found = await app.trail.records.get(id, by=app.me)
    if expect is not None and found.version != expect:
        raise Conflict(id, expected=expect, actual=found.version)
    return found


class Editable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a breadcrumb that an editor shows."""

    title: str
    schema_name: str | None
    tags: tuple[str, ...]
    scopes: tuple[str, ...]
    context: dict[str, Any]
    llm_hints: dict[str, Any] | None


async def _edit_by_hand(app: App, id: str, expect: int | None) -> Breadcrumb:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("edit", "needs options if there is no terminal", hint="For example --set status=done")
    found = await _get_expected(app, id, expect)
    before = msgspec.convert(found, Editable, from_attributes=True)
    file = _write_draft(before)
    try:
        await asyncio.to_thread(_open_editor, file)
        with reading_content():
            written = await _write_edited(app, found, before, file.read_bytes())
    except ClewError:
        note(f"Your text is in {file}")
        raise
    file.unlink()
    return written


async def _write_edited(app: App, found: Breadcrumb, before: Editable, text: bytes) -> Breadcrumb:
    after = parse_json(text, Editable, "the edited text")
    if after == before:
        note("Nothing was changed.")
        return found
    refuse_own_tags(tag for tag in after.tags if tag not in before.tags)
    change = Change(**msgspec.structs.asdict(after))
    return await app.trail.records.update(found.id, change, expect=found.version, by=app.me)


def _write_draft(content: Editable) -> Path:
    handle, name = tempfile.mkstemp(prefix="clew-", suffix=".json")
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    return Path(name)


def _open_editor(file: Path) -> None:
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        code = subprocess.run([*command, str(file)]).returncode
    except OSError as error:
        raise ClewError(
            f"{command[0]} cannot be started: {error.strerror}", hint="Set EDITOR to another one"
        ) from error
    if code:
        raise ClewError(f"{command[0]} ended with {code}, so nothing was written")


async def rm(
    *ids: Id, yes: Annotated[bool, Parameter(help="Do not ask.")] = False, json: Json = False, here: Here = HERE
) -> int:
    """Remove breadcrumbs with their versions and edges.

    It asks first; without a terminal it needs --yes.

        clew trail rm 2e7484bd67a7
        clew trail rm 2e7484bd67a7 77e0c2d19b3a --yes
    """
    if not ids:
        raise InvalidInput("ID", "is missing", hint="`clew trail ls` shows ids")
    async with open_here(here) as app:
        found = [await app.trail.records.get(await find_id(app, id), by=app.me) for id in ids]
        if not yes and not _confirm(found):
            note("Nothing was removed.")
            return 1
        removed = {each.id: each for each in found}
        for each in removed.values():
            await app.trail.records.delete(each.id, by=app.me, expect=each.version)
    if json:
        print_json({"removed": list(removed)})
    elif is_terminal():
        say(f"{count(len(removed), 'breadcrumb')} removed.")
    return 0


def _confirm(found: list[Breadcrumb]) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("rm", "asks before it removes", hint="Give --yes if there is no terminal")
    for each in found:
        note(f"{each.id}  {each.title}")
    return agrees(f"Remove {count(len(found), 'breadcrumb')}?")
