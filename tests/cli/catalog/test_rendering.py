"""The output of the catalog's commands: clean, styled only on a terminal, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clew.cli.terminal.markdown import plain_text
from tests.cli.catalog.conftest import settings
from tests.cli.conftest import Clew, OnTerminal


def test_control_characters_of_documents_and_tools_never_reach_the_terminal(
    clew: Clew, tools: Path, folder: Path
) -> None:
    settings(folder, '[catalog]\ndomains = ["warehouse_tools:warehouse"]\n')
    (folder.parent / "evil.md").write_text("# Evil \x1b]0;title\x07\n\nthe \x1b[2Jscreen and \u202etxt.exe\n")
    for result in (
        clew("ask", "evil screen"),
        clew("ask", "evil screen", "--json"),
        clew("get", "repo://resources/evil.md", "warehouse://tools/noisy"),
        clew("get", "repo://resources/evil.md", "warehouse://tools/noisy", "--json"),
        clew("why", "warehouse://tools/\x1b[2J"),
    ):
        assert not {"\x1b", "\x07", "\u202e"} & set(result.out + result.err)
    assert "\\x1b[31m" in clew("get", "warehouse://tools/noisy").out
    assert "\x1b[31m" in clew("get", "warehouse://tools/noisy", "--json").json["results"][0]["data"]["content"]


def test_answers_are_styled_on_a_terminal_and_only_there(clew: Clew, tools: Path, on_terminal: OnTerminal) -> None:
    styled = on_terminal("ask", "payments", "--cached", "--agent")
    assert "\x1b[36mwarehouse://tools/analyst\x1b[0m" in styled
    assert "\\x1b" not in styled
    told = on_terminal("why", "warehouse://tools/hidden/query")
    assert "\x1b[31mnot visible  warehouse://tools/hidden/query\x1b[0m" in told
    assert "\x1b" not in on_terminal("why", "warehouse://tools/analyst", NO_COLOR="1")
    assert "\x1b" not in clew("ask", "payments").out


SHOP = """import tax


def total(net: int) -> int:
    \"\"\"The price of an order with its tax.\"\"\"
    return net + tax.of(net)
"""
_LINK = re.compile(r"\x1b\]8;;([^\x1b]*)\x1b\\(.*?)\x1b\]8;;\x1b\\")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.req("BEY-11", "BEY-12")
def test_a_citation_opens_its_line_and_shows_highlighted_code(
    clew: Clew, folder: Path, on_terminal: OnTerminal
) -> None:
    shop = folder.parent / "shop.py"
    shop.write_text(SHOP)
    piped = clew("ask", "where is the price of an order with tax").out
    shown = on_terminal("ask", "where is the price of an order with tax")
    found = _LINK.search(shown)
    assert found is not None
    assert (found[1], _STYLE.sub("", found[2])) == (f"{shop.as_uri()}#4", "shop.py:4")
    code = next(line for line in shown.splitlines() if "return net" in _STYLE.sub("", line))
    assert "\x1b[" in code.partition("6")[2]
    assert "\x1b" not in piped
    words = _STYLE.sub("", _LINK.sub(r"\2", shown)).replace("\x1b[K", " ").split()  # after the sign of life
    assert words[-len(piped.split()) :] == piped.split()


def test_the_report_of_a_refresh_is_styled_and_clean_on_a_terminal(folder: Path, on_terminal: OnTerminal) -> None:
    (folder.parent / "page.md").write_text("# Kettle\n\nText of the kettle.\n")
    shown = on_terminal("refresh")
    assert "\x1b[32mrefreshed  repo  local:" in shown
    assert "\\x1b" not in shown


def test_every_answer_is_one_json_value(clew: Clew, tools: Path) -> None:
    for arguments in (
        ["ask", "x"],
        ["get", "warehouse://tools/analyst"],
        ["domains"],
        ["refresh"],
        ["refresh", "--list"],
        ["why", "warehouse://tools/analyst"],
    ):
        result = clew(*arguments, "--json")
        assert result.code == 0
        assert len(result.lines) == 1
        json.loads(result.out)


README = """<p align="center">
  <a href="https://lantern.example"><img width="350" src="https://lantern.example/logo.png" alt="Lantern"></a>
</p>

<p align="center"><strong>Lantern</strong> <em>- A small light for long nights.</em></p>

<p align="center">
<a href="https://ci.example/project"><img src="https://ci.example/project/badge.svg" alt="Test Suite"></a>
</p>

Lantern is described in [its guide](https://lantern.example/guide "Guide").
"""


@pytest.mark.req("BEY-11")
def test_a_readme_that_begins_with_html_is_shown_by_its_words(clew: Clew, folder: Path) -> None:
    (folder.parent / "README.md").write_text(README)
    lines = clew("ask", "what is this project about").lines
    assert lines[0] == "README.md:1  Lantern - A small light for long nights."
    assert lines[1].split("  ")[2].startswith("5")


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        (r"see [the guide]\(https://a.example/x_(y)) and \<b>more\</b>", "see the guide and more"),
        (r"`vector<a>` of a[0]\<br/>two `f[0](x)`", "vector<a> of a[0]two f[0](x)"),
        (r"fewer \<than three, \<T> stays", "fewer <than three, <T> stays"),
        (r"cut \<img src='x", "cut"),
    ],
)
def test_a_line_for_a_person_has_no_markup(markdown: str, shown: str) -> None:
    assert plain_text(markdown).strip() == shown
