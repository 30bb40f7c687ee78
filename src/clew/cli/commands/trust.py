"""`clew trust`: shows the programs and instructions in the files of a folder, and asks the user for consent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.app import open_app
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import agrees, can_ask, count, note, print_json, print_rows, say, show_time
from clew.config import Config
from clew.decode_errors import suggest
from clew.errors import ConfigError, InvalidInput, NotFound, StorageError
from clew.trail.config_consent import setting_wishes
from clew.trail.ownership import KIND as TRAIL
from clew.trail.ownership import MADE
from clew.trust import Grant, Trust, Wish

if TYPE_CHECKING:
    from clew.catalog.consent.consent_changes import FileChange
    from clew.catalog.skills.review import Review

CONFIG = "config"
"""The kind of config.py."""
TEXTS = frozenset(("agent", "skill", "rules"))
"""Kinds that are text for agents and are checked again before each use. The others run in a process."""


def trust(
    *names: Annotated[str, Parameter(help="Only these names, as `clew trust` lists them.")],
    yes: Annotated[bool, Parameter(help="Agree without a prompt.")] = False,
    list: Annotated[bool, Parameter(help="List your grants of consent, in all folders.")] = False,
    revoke: Annotated[
        bool, Parameter(help="Revoke your consent for these names, or for everything of this folder.")
    ] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Agree to settings, servers and definitions of this folder.

    Files that came with a folder can define MCP servers, Python modules, sources, model providers, agents, skills,
    rules and settings that reach beyond the folder. They can also bring keys or a trail that you did not make. Clew
    uses none of them before you agree here, and asks again after a change. Pending work on such a trail is dropped.

    Your answers are stored in your configuration folder, or in the file CLEW_TRUST. The exit code is 1 when you say no,
    and 2 when nobody can be asked.

        clew trust
        clew trust geo --yes
        clew trust --list
        clew trust --revoke geo
    """
    if list + revoke + yes > 1:
        raise InvalidInput("--yes", "--list and --revoke exclude each other")
    if list:
        return _list(Trust.open().grants(), names, as_json=json)
    if revoke:
        return _revoke(here.config(), names, as_json=json)
    return _agree(here.config(), names, yes=yes, as_json=json)


def _agree(config: Config, names: Sequence[str], *, yes: bool, as_json: bool) -> int:
    # the catalog takes as long to load as the rest of a short command
    from clew.adapters.rest.auth import key_wishes
    from clew.catalog.consent.consent import read_wishes
    from clew.catalog.skills.review import Review

    trusted = Trust.open()
    settings, keys = setting_wishes(config), key_wishes(config.folder)
    wishes = [*read_wishes(config), *settings, *keys, *asyncio.run(_read_trail(config))]
    waiting = [trusted.compare(each) for each in _named(wishes, names) if not trusted.holds(each)]
    review = Review(config, trusted, waiting)
    if waiting and not as_json:
        _show(waiting, review)
    if waiting and not yes and not _is_agreed(waiting, review, as_json=as_json):
        note("Nothing was granted.")
        return 1
    listed = review.listed() if as_json else []
    _grant(config, trusted, waiting)
    review.keep()
    if as_json:
        print_json({"granted": listed, "awaiting": []})
    elif waiting:
        note(f"Trusted: {', '.join(each.name for each in waiting)}. A change needs your consent again.")
        if any(each.kind == CONFIG for each in waiting):
            note("config.py may bring settings that need consent too: run `clew trust` again.")
    else:
        note(f"{', '.join(names)}: trusted already." if names else "Nothing here needs your consent.")
    return 0


async def _read_trail(config: Config) -> list[Wish]:
    """Return the wish of the folder's trail. A missing trail, or one that cannot be opened, brings none."""
    if config.is_in_memory or (config.trail_file is not None and not config.trail_file.exists()):
        return []
    with contextlib.suppress(StorageError, ConfigError):
        async with open_app(config) as app:
            return [await app.ownership.wish(by=app.me)]
    return []


def _grant(config: Config, trusted: Trust, wishes: Sequence[Wish]) -> None:
    """Store the user's consent. If the trail itself is among the wishes, its pending work is dropped first and it gets
    a new identity."""
    others = [each for each in wishes if each.kind != TRAIL]
    trusted.grant(others)
    if len(others) < len(wishes):
        asyncio.run(_adopt_trail(config, trusted))


async def _adopt_trail(config: Config, trusted: Trust) -> None:
    async with open_app(config) as app:
        with trusted.making():  # fails before anything is dropped if the decision cannot be stored
            trusted.grant([await app.ownership.adopt(by=app.me)])


def _is_agreed(waiting: Sequence[Wish], review: Review, *, as_json: bool) -> bool:
    """Ask the person at the terminal for consent. Raises InvalidInput if there is no terminal."""
    if as_json:
        print_json({"granted": [], "awaiting": review.listed()})
    if as_json or not can_ask():
        reason = f"is needed to agree to {', '.join(each.name for each in waiting)}, since nobody can be asked here"
        raise InvalidInput("--yes", reason, hint="Nothing was granted")
    return agrees("Do you trust this?")


def _named(wishes: Sequence[Wish], names: Sequence[str]) -> list[Wish]:
    """The wishes of these names, or all. Raises NotFound."""
    for name in names:
        if not any(each.name == name for each in wishes):
            error = NotFound("server, domain, source, provider, agent, skill, rules, setting, key or trail", name)
            known = dict.fromkeys(each.name for each in wishes)
            error.hint = suggest(name, known, "The files of this folder bring") or "The files of this folder bring none"
            raise error
    return [each for each in wishes if not names or each.name in names]


def _show(wishes: Sequence[Wish], review: Review) -> None:
    """Print each wish in full. If the user agreed to an earlier version, print the changes since, and the number of
    omitted lines."""
    running = [each for each in wishes if each.kind not in TEXTS]
    texts = [each for each in wishes if each.kind in TEXTS]
    for part, want in ((running, "want to run with your permissions"), (texts, "want to instruct agents")):
        if part:
            say(f"Files of {part[0].folder} {want}:")
        for each in part:
            named = each.kind if each.name == each.kind else f"{each.kind} {each.name}"
            say(f"  {named}: {each.summary}{f' ({each.note})' if each.note else ''}")
            for change in review.changes(each):
                _show_change(change)


def _show_change(change: FileChange) -> None:
    added, removed = count(change.lines_added, "line"), count(change.lines_removed, "line")
    said = [f"{added} added, {removed} removed"] if change.lines_added or change.lines_removed else []
    if change.is_program is not None:
        said.append("may be run as a program now" if change.is_program else "may no longer be run as a program")
    say(f"    {change.what} {change.path}{': ' if said else ''}{'; '.join(said)}")
    for line in change.diff:
        say(f"      {line}")
    if change.left_out:
        say(f"      … and {count(change.left_out, 'line')} more: see the file")


def _list(grants: Sequence[Grant], names: Sequence[str], *, as_json: bool) -> int:
    found = [each for each in grants if not names or each.name in names]
    if as_json:
        print_json(found)
        return 0
    rows = [(each.folder, each.kind, each.name, show_time(each.when), each.summary) for each in found]
    print_rows(("folder", "kind", "name", "since", "what"), rows, main=4, spare=(0,))
    if not found:
        note(f"You have agreed to nothing called {' or '.join(names)}." if names else "You have agreed to nothing yet.")
    return 0


def _revoke(config: Config, names: Sequence[str], *, as_json: bool) -> int:
    from clew.catalog.consent.consent import project_of
    from clew.catalog.consent.consent_snapshots import forget_texts  # as above

    trusted, project = Trust.open(), project_of(config)
    grants = trusted.grants(project)
    known = {each.name for each in grants}
    for name in names:
        if name not in known:
            error = NotFound("grant for", name)
            error.hint = suggest(name, sorted(known), "Of this folder you trust") or "You trust nothing of this folder"
            raise error
    brought = {each.name for each in grants if (each.kind, each.summary) != (TRAIL, MADE)}
    revoked = sum(trusted.revoke(project, name=name) for name in names or sorted(brought))
    forget_texts(trusted, [each for each in grants if each.name in (names or brought)])
    if as_json:
        print_json({"revoked": revoked})
    elif revoked:
        kinds = {each.kind for each in grants if each.name in (names or brought)}
        note(f"{count(revoked, 'grant')} revoked.{_effect(kinds)}")
    else:
        note("Nothing to revoke for this folder.")
    return 0


def _effect(kinds: Set[str]) -> str:
    """A sentence that says when a revocation takes effect, for these kinds."""
    at_once = " Skills, agents and rules are withheld at once." if kinds & TEXTS else ""
    later = "  Parts that a process has loaded stay until it ends." if kinds - TEXTS else ""
    return f"{at_once}{later}"
