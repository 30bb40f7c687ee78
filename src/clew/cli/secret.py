"""Commands for secrets. A value is never an argument, which others on the machine could read, and never printed."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Annotated

from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json, open_here
from clew.cli.output import note, print_json, say
from clew.errors import InvalidInput

Name = Annotated[str, Parameter(help="The name that breadcrumbs use.")]


async def put(name: Name, /, *, here: Here = HERE) -> None:
    """Write a secret; its value comes from standard input or a prompt.

    Breadcrumbs refer to it as {"$secret": "name"}. A line end after the value does not belong to it.

        clew secret put openai-key
        pass show openai | clew secret put openai-key
    """
    value = _read_value(name)
    async with open_here(here, create=True) as app:
        await app.trail.secrets.put(name, value, by=app.me)
    note(f"{name} is kept.")


def _read_value(name: str) -> str:
    if sys.stdin.isatty():
        return getpass(f"Value of {name}: ", sys.stderr)
    try:
        value = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise InvalidInput("the value", "is not UTF-8 text") from None
    return value.removesuffix("\n").removesuffix("\r")


async def ls(*, json: Json = False, here: Here = HERE) -> None:
    """List the names of secrets.

    clew secret ls
    """
    async with open_here(here) as app:
        names = await app.trail.secrets.names(by=app.me)
    if json:
        print_json({"items": names})
        return
    for name in names:
        say(name)


async def rm(*names: Name, here: Here = HERE) -> None:
    """Remove secrets.

    clew secret rm openai-key
    """
    if not names:
        raise InvalidInput("NAME", "is missing", hint="`clew secret ls` lists them")
    async with open_here(here) as app:
        for name in names:
            await app.trail.secrets.drop(name, by=app.me)
