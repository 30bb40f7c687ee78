"""Commands for secrets. A value is never an argument, which others on the machine could read, and never printed."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import count, interruptible, is_terminal, note, print_json, say
from clew.errors import ClewError, InvalidInput

Name = Annotated[str, Parameter(help="The name that breadcrumbs use.")]


async def put(name: Name, /, *, json: Json = False, here: Here = HERE) -> None:
    """Store a secret from standard input or a prompt.

    Breadcrumbs refer to it as {"$secret": "name"}. A line end after the value does not belong to it.

        clew secret put openai-key
        pass show openai | clew secret put openai-key
    """
    value = _read_value(name)
    async with open_here(here, create=True) as app:
        await app.trail.secrets.put(name, value, by=app.me)
    print_json({"kept": name}) if json else note(f"{name} is stored.")


def _read_value(name: str) -> str:
    if sys.stdin.isatty():
        with interruptible():
            return getpass(f"Value of {name}: ", sys.stderr)
    try:
        value = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ClewError("the value is not UTF-8 text") from None
    if not value:
        raise ClewError("the value is empty", hint="Pipe it into this command, or type it at the prompt")
    return value


async def ls(*, json: Json = False, here: Here = HERE) -> None:
    """List the names of secrets.

    Values are never shown, by this or any other command.

        clew secret ls
    """
    async with open_here(here) as app:
        names = await app.trail.secrets.names(by=app.me)
    if json:
        print_json({"items": names})
        return
    for name in names:
        say(name)
    if not names:
        note("No secrets yet. Store one: clew secret put NAME")


async def rm(*names: Name, json: Json = False, here: Here = HERE) -> None:
    """Remove secrets.

    Breadcrumbs that name a removed secret stay as they are, and work that needs its value fails.

        clew secret rm openai-key
    """
    if not names:
        raise InvalidInput("NAME", "is missing", hint="`clew secret ls` lists them")
    async with open_here(here) as app:
        for name in names:
            await app.trail.secrets.drop(name, by=app.me)
    if json:
        print_json({"removed": names})
    elif is_terminal():
        say(f"{count(len(names), 'secret')} removed.")
