"""Looking at the trail."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, PATIENCE, Clew

Put = Callable[..., str]


def titles(clew: Clew, *arguments: str) -> list[str]:
    return [line.split("\t")[3] for line in clew("trail", "ls", *arguments).lines]


def test_a_listing_goes_back_in_time_one_line_each(clew: Clew, put: Put) -> None:
    first, second = put("first", "--tag", "mine", "--schema", "note.v1"), put("second\twith\ttabs", "--tag", "mine")
    lines = clew("trail", "ls", "--tag", "mine").lines
    assert [line.split("\t")[0] for line in lines] == [second, first]
    assert lines[0].split("\t")[2:] == ["-", "second with tabs", "mine"]
    assert lines[1].split("\t")[2:] == ["note.v1", "first", "mine"]
    assert titles(clew, "--tag", "mine", "--oldest") == ["first", "second with tabs"]


def test_options_say_which_breadcrumbs_are_meant(clew: Clew, put: Put) -> None:
    put("note", "--schema", "note.v1", "--tag", "a", "--tag", "session:1", context={"status": "open", "n": {"x": 1}})
    put("task", "--schema", "task.v1", "--tag", "a", "--tag", "b", context={"path": "src/deep/x.py"})
    assert titles(clew, "--tag", "a") == ["task", "note"]
    assert titles(clew, "--tag", "a", "--tag", "b") == ["task"]
    assert titles(clew, "--any-tag", "b", "--any-tag", "session:1") == ["task", "note"]
    assert titles(clew, "--schema", "note.v1", "--schema", "task.v1") == ["task", "note"]
    assert titles(clew, "--prefix", "session:") == ["note"]
    assert titles(clew, "--session", "1") == ["note"]
    assert titles(clew, "--where", "status=open", "--where", "n.x=1") == ["note"]
    assert titles(clew, "--where", "n.x=2") == []
    assert titles(clew, "--path", "src/**/*.py") == ["task"]
    assert titles(clew, "--tag", "a", "--until", "2020-01-01") == []
    assert titles(clew, "--tag", "a", "--since", "2020-01-01") == ["task", "note"]


def test_a_page_tells_where_the_next_begins(clew: Clew, put: Put) -> None:
    for at in range(5):
        put(f"t{at}", "--tag", "mine")
    seen, cursor = [], []
    for _ in range(3):
        result = clew("trail", "ls", "--tag", "mine", "--limit", "2", *cursor)
        seen += [line.split("\t")[3] for line in result.lines]
        cursor = result.err.split()[-2:]
    assert seen == ["t4", "t3", "t2", "t1", "t0"]
    page = clew("trail", "ls", "--tag", "mine", "--limit", "2", "--json").json
    assert [item["title"] for item in page["items"]] == ["t4", "t3"]
    assert page["cursor"]


@pytest.mark.parametrize(
    "arguments", [["--limit", "0"], ["--limit", "-3"], ["--cursor", "x!"], ["--prefix", ""], ["--where", "a..b=1"]]
)
def test_a_listing_that_cannot_be_is_refused_in_one_line(clew: Clew, put: Put, arguments: list[str]) -> None:
    put("here")
    result = clew("trail", "ls", *arguments)
    assert result.code in (1, 2)
    assert len(result.err.splitlines()) == 1


@pytest.mark.req("RCR-13")
def test_a_breadcrumb_is_shown_as_a_model_sees_it_or_as_stored(clew: Clew, put: Put) -> None:
    id = put("Adder", "--schema", "tool.code.v1", context={"name": "add", "code": "a + b", "description": "adds"})
    shown = clew("trail", "show", id)
    assert shown.lines[0] == "Adder"
    assert '"description": "adds"' in shown.out
    assert "a + b" not in shown.out
    full = clew("trail", "show", id, "--full")
    assert '"code": "a + b"' in full.out
    assert "owner     local" in full.lines
    assert "code" not in clew("trail", "show", id, "--json").json["context"]
    assert clew("trail", "show", id, "--full", "--json").json["context"]["code"] == "a + b"


@pytest.mark.req("RCR-10")
def test_showing_counts_as_a_read_and_showing_all_does_not(clew: Clew, put: Put) -> None:
    id = put("Twice", "--ttl", "reads:2")
    assert "ends      after 2 reads (0 so far)" in clew("trail", "show", id, "--full").lines
    assert [clew("trail", "show", id).code for _ in range(3)] == [0, 0, 1]


@pytest.mark.req("RCR-05")
def test_old_versions_can_be_listed_and_shown(clew: Clew, put: Put) -> None:
    id = put("Draft", context={"n": 1})
    clew("trail", "edit", id, "--set", "n=2", "--title", "Final")
    history = [line.split("\t") for line in clew("trail", "history", id).lines]
    assert [row[0] for row in history] == ["1", "2"]
    assert [row[2] for row in history] == ["cli", "cli"]
    assert clew("trail", "show", id, "--version", "1", "--json").json["context"] == {"n": 1}
    assert clew("trail", "show", id, "--version", "1").lines[0] == "Draft"
    assert clew("trail", "show", id, "--version", "9").code == 1
    assert [item["version"] for item in clew("trail", "history", id, "--json").json["items"]] == [1, 2]


def test_an_id_may_be_shortened_as_long_as_it_means_one(clew: Clew, put: Put) -> None:
    ids = [put(f"t{at}") for at in range(3)]
    assert clew("trail", "show", ids[1][-12:]).lines[0] == "t1"
    assert clew("trail", "show", ids[1].upper()).lines[0] == "t1"
    same = clew("trail", "show", ids[1][:6])
    assert same.code == 1
    assert "means 3 breadcrumbs" in same.err
    assert clew("trail", "show", ids[1][-5:]).err.startswith("clew: no breadcrumb")
    assert clew("trail", "show", "ffffff-nowhere").code == 1


def test_a_search_finds_by_words_with_scores(clew: Clew, put: Put) -> None:
    best = put("Rotate the signing key", "--tag", "mine", "--schema", "note.v1")
    put("Paint the shed", "--tag", "mine")
    lines = clew("trail", "search", "signing key", "--limit", "1").lines
    assert lines[0].split("\t")[0] == best
    assert lines[0].split("\t")[2:] == ["note.v1", "Rotate the signing key"]
    result = clew("trail", "search", "signing key", "--tag", "mine", "--ranking", "text", "--json").json
    assert result["ranking"] == "text"
    assert result["hits"][0]["breadcrumb"]["id"] == best


@pytest.mark.parametrize("text", ['"', "NEAR(", "a* AND", "x" * 5000, "\x00", "ünï"])
def test_a_search_takes_any_text(clew: Clew, put: Put, text: str) -> None:
    put("here")
    assert clew("trail", "search", text, "--limit", "3").code == 0


def test_an_empty_search_is_refused(clew: Clew, put: Put) -> None:
    put("here")
    result = clew("trail", "search", " ")
    assert (result.code, result.err) == (1, "clew: text: is empty. Give a text, a vector, or both\n")


def test_stats_count_what_the_caller_may_see(clew: Clew, put: Put) -> None:
    put("one", "--schema", "note.v1")
    before = clew("trail", "stats", "--json").json
    put("hidden", "--schema", "note.v1", "--scope", "hr")
    after = clew("trail", "stats", "--json").json
    assert after["breadcrumbs"] == before["breadcrumbs"]
    assert clew("trail", "stats", "--scopes", "hr", "--json").json["schemas"]["note.v1"] == 2
    assert "schema note.v1\t1" in clew("trail", "stats").lines


@pytest.mark.req("RCR-19")
def test_other_owners_and_scopes_do_not_exist(clew: Clew, put: Put) -> None:
    hidden, foreign = put("payroll", "--scope", "hr", "--tag", "mine"), put("theirs", "--owner", "bob", "--tag", "mine")
    assert titles(clew, "--tag", "mine") == []
    assert clew("trail", "show", hidden).code == clew("trail", "show", foreign).code == 1
    assert titles(clew, "--tag", "mine", "--scopes", "hr, other") == ["payroll"]
    assert titles(clew, "--tag", "mine", "--owner", "bob") == ["theirs"]
    assert clew("trail", "search", "payroll", "--tag", "mine").lines == []


HOSTILE = "evil \x1b]0;owned\x07\x1b[31m\x9b2J \u202etitle"


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a command shows on a terminal of 100 columns."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"} | environment,
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], PATIENCE)[0]:
        try:
            chunk = os.read(leader, 65_536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(leader)
    assert process.wait(PATIENCE) == 0, shown
    return shown.decode()


def test_on_a_terminal_there_is_a_table_and_a_hostile_title_stays_text(put: Put) -> None:
    id = put(HOSTILE, "--tag", "mine", context={"text": HOSTILE})
    shown = on_terminal("trail", "ls", "--tag", "mine")
    head, row = shown.splitlines()[:2]
    assert [word in head for word in ("id", "updated", "schema", "title", "tags")] == [True] * 5
    assert id[-12:] in row
    assert "evil \\x1b]0;owned\\x07\\x1b[31m" in row
    assert "\x1b]0" not in shown
    shown = on_terminal("trail", "show", id[-12:], NO_COLOR="1")
    for powerful in ("\x1b]0", "\x07", "\x1b[31m", "\x9b", "\u202e"):
        assert powerful not in shown
    assert "\\u009b2J" in shown


def test_colours_are_for_terminals_that_want_them(put: Put) -> None:
    id = put("here", context={"n": 1})
    assert "\x1b[1;34m" in on_terminal("trail", "show", id)
    assert "\x1b[1;34m" not in on_terminal("trail", "show", id, NO_COLOR="1")


def test_a_pipe_gets_neither_colours_nor_escapes(clew: Clew, put: Put) -> None:
    id = put(HOSTILE, "--tag", "mine", context={"text": HOSTILE})
    for arguments in (
        ["ls"],
        ["show", id],
        ["show", id, "--json"],
        ["search", "evil"],
        ["tail", "--count", "3"],
        ["export"],
    ):
        out: Any = clew("trail", *arguments).out
        assert not set(out) & set("\x1b\x07\x9b\u202e"), arguments
