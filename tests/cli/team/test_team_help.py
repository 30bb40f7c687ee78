"""The help of the commands of the team: one plain sentence for each option, and an example for each command."""

from __future__ import annotations

import importlib
import inspect
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from cyclopts import Parameter

from clew.cli.command_table import COMMANDS, CliCommand, Group

WANTED = [
    (f"{entry.name} {each.name}", each.target)
    for entry in COMMANDS
    if isinstance(entry, Group) and entry.name in ("team", "session")
    for each in entry.commands
] + [
    (entry.name, entry.target)
    for entry in COMMANDS
    if isinstance(entry, CliCommand) and entry.name in ("code", "verify")
]


@pytest.mark.parametrize(("name", "target"), WANTED)
def test_every_option_has_a_sentence_and_every_command_an_example(name: str, target: str) -> None:
    module, _, function = target.partition(":")
    command = getattr(importlib.import_module(module), function)
    assert f"\n        clew {name}" in (command.__doc__ or "")
    hints = get_type_hints(command, include_extras=True)
    for option in inspect.signature(command).parameters:
        if option != "here":
            help = _help(hints[option])
            assert help[:1].isupper(), option
            assert help.rstrip("]").endswith((".", "one", "ask", "HEAD", "limit", "team")), (option, help)


def _help(hint: Any) -> str:
    while get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        found = [each.help for each in notes if isinstance(each, Parameter) and each.help]
        if found:
            return str(found[0])
        hint = inner
    return ""
