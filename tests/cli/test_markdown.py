"""Markdown on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.terminal.markdown import print_markdown


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def shown(text: str, *, is_terminal: bool) -> str:
    screen = Screen(is_terminal=is_terminal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        patch.setenv("TERM", "xterm")
        patch.delenv("NO_COLOR", raising=False)
        print_markdown(text)
    return screen.getvalue()


TEXT = """# Answer

**`repo://tools/search`** finds `things` and is **good**.
*a remark*

````text
# not a heading **`not a route`**
```
still inside
````
after `it`
"""


def test_elsewhere_it_is_written_as_it_is() -> None:
    assert shown(TEXT, is_terminal=False) == TEXT + "\n"


def test_on_a_terminal_headings_routes_and_remarks_are_styled_and_fences_are_not() -> None:
    lines = shown(TEXT, is_terminal=True).splitlines()
    assert lines[0] == "\x1b[1;34mAnswer\x1b[0m"
    assert lines[2] == "\x1b[36mrepo://tools/search\x1b[0m finds \x1b[36mthings\x1b[0m and is \x1b[1mgood\x1b[0m."
    assert lines[3] == "\x1b[2ma remark\x1b[0m"
    assert lines[6] == "# not a heading **`not a route`**"
    assert lines[7] == "```"
    assert lines[8] == "still inside"
    assert lines[10] == "after \x1b[36mit\x1b[0m"


def test_nothing_in_a_text_has_power_over_the_terminal() -> None:
    evil = "\x1b[2J\x07\r\x9b31m\u202eevil\u2028\x00"
    assert "\\x1b[2J\\x07\\x0d\\x9b31m" in shown(evil, is_terminal=True)
    assert "\\x1b" in shown(evil, is_terminal=False)


@given(st.text(max_size=300))
def test_only_our_own_styles_reach_the_terminal_with_any_text(text: str) -> None:
    for own in ("1;34", "1", "2", "36", "0"):
        text = text.replace(f"[{own}m", "")
    screen = shown(text, is_terminal=True)
    for style in ("1;34", "1", "2", "36", "0"):
        screen = screen.replace(f"\x1b[{style}m", "")
    assert "\x1b" not in screen
    assert "\x1b" not in shown(text, is_terminal=False)


@given(st.text(alphabet="`~#* a\n", max_size=80))
def test_any_markup_can_be_shown(text: str) -> None:
    letters = shown(text, is_terminal=True).count("a")
    assert letters == text.count("a")


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("- /\\*many, [a]\\(b), [2\\] and \\<b> are as they are", "- /*many, [a](b), [2] and <b> are as they are"),
        ("\\`not code\\` and `\\*` code", "`not code` and \x1b[36m\\*\x1b[0m code"),
        ("``a `b` c`` and `` `d` ``", "\x1b[36ma `b` c\x1b[0m and \x1b[36m`d`\x1b[0m"),
        ("**bold \\* too**", "\x1b[1mbold * too\x1b[0m"),
        ("C:\\Users and \\d+", "C:\\Users and \\d+"),
    ],
)
def test_a_person_at_a_terminal_sees_no_escapes(line: str, seen: str) -> None:
    assert shown(line, is_terminal=True) == f"{seen}\n"
    assert shown(line, is_terminal=False) == f"{line}\n"
