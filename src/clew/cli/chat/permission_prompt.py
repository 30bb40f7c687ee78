"""A permission question at a terminal. It shows the complete call, with invisible characters spelled out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from clew.agents.conversations.steps import PermissionAsked
from clew.cli.terminal.output import YELLOW, one_line, paint
from clew.fences import is_unseen

HEADLINE = 100
"""Characters of the target that the question itself names; all of it is below."""

_MAY = {
    "write-file": ("write", "file_path"),
    "edit-file": ("change", "file_path"),
    "exec": ("run", "command"),
    "fetch": ("fetch", "url"),
}
"""The verb of a tool, and the argument that names its object."""
_MANY_BREAKS = re.compile(r"\n(?:[ \t]*\n){3,}")


def describe_question(step: PermissionAsked) -> str:
    """The text of the question. It has the tool's arguments, unmasked and in full, the reason, and the patterns that a
    lasting permission would store."""
    lines = [
        f"{paint('?', YELLOW, sys.stderr)} May it {_deed(step)}?",
        f"  {one_line(step.tool)}",
        *(f"    {line}" for line in _given(step.input)),
        *([f"  {spelled_out(step.reason)}"] if step.reason else []),
        f"  {_lasting(step.pattern)}",
    ]
    return "\n".join(lines) + "\n"


def spelled_out(text: str) -> str:
    """A text on one line in which every character is visible."""
    return "".join("⏎" if each == "\n" else _seen(each) for each in text)


def _deed(step: PermissionAsked) -> str:
    """The action of a tool, in words."""
    verb, name = _MAY.get(step.tool, ("", ""))
    target = step.input.get(name) if isinstance(step.input, dict) else None
    if not isinstance(target, str):
        return f"use {one_line(step.tool)}"
    shown = spelled_out(target)
    return f"{verb} {shown if len(shown) <= HEADLINE else shown[: HEADLINE - 1] + '…'}"


def _lasting(pattern: str) -> str:
    if not pattern:
        return "It can be allowed only this once."
    return "session and always allow: " + "\n    and ".join(map(spelled_out, pattern.split("\n")))


def _given(value: Any) -> Iterator[str]:
    """The lines of the arguments, each argument by its name. Each line of a text with several lines has a bar before
    it, so that it cannot look like another argument."""
    if not isinstance(value, dict):
        yield from [] if value is None else _lines(value)
        return
    for name, each in value.items():
        first, *others = _lines(each)
        yield f"{spelled_out(name)}: {first}" if not others else f"{spelled_out(name)}:"
        yield from (f"  | {line}" for line in (first, *others) if others)


def _lines(value: Any) -> list[str]:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    folded = _MANY_BREAKS.sub(lambda found: f"\n⏎ {found[0].count(chr(10)) - 1:,} empty lines ⏎\n", text)
    return ["".join(map(_seen, line)) for line in folded.split("\n")]


def _seen(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if is_unseen(letter) else letter
