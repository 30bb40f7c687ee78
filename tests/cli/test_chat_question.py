"""A permission question shows everything that the user would allow."""

from __future__ import annotations

from typing import Any

from clew.agents.conversations.steps import CHOICES, PermissionAsked
from clew.cli.chat.permission_prompt import describe_question


def shown(tool: str, input: Any, pattern: str = "", reason: str = "why") -> str:
    step = PermissionAsked(
        seq=1,
        session="s",
        run="r",
        id="q",
        request_id="t",
        tool=tool,
        input=input,
        reason=reason,
        pattern=pattern,
        choices=CHOICES,
    )
    return describe_question(step)


def test_a_long_command_is_shown_whole_and_nothing_in_it_is_masked() -> None:
    command = 'git status; password="$(touch PWNED)"; ' + "x" * 19_000 + "; rm -rf /"
    assert f"command: {command}\n" in shown("exec", {"command": command, "cwd": "build"})


def test_lines_are_shown_as_lines_that_cannot_be_taken_for_the_question() -> None:
    text = shown("exec", {"command": "ls\n  why\n? May it run ls?\nrm x"})
    assert "    command:\n      | ls\n      |   why\n      | ? May it run ls?\n      | rm x\n" in text
    assert text.startswith("? May it run ls⏎  why⏎")


def test_invisible_characters_are_escaped_and_empty_lines_are_limited() -> None:
    text = shown("exec", {"command": "rm x\r\x1b[2Kls\u202e" + "\n" * 500 + "end"}, reason="a\x1b[2K\nb")
    assert "rm x\\u000d\\u001b[2Kls\\u202e" in text
    assert "⏎ 499 empty lines ⏎" in text
    assert text.count("\n") < 12
    assert "a\\u001b[2K⏎b" in text


def test_the_pattern_of_a_lasting_permission_is_shown_unchanged() -> None:
    text = shown("get", {"routes": [{"route": "a://b"}]}, "get(a://b), any params\nget(a://c), any params")
    assert "session and always allow: get(a://b), any params\n    and get(a://c), any params\n" in text
    assert 'routes: [{"route":"a://b"}]' in text
    assert "only this once" in shown("x", None)
