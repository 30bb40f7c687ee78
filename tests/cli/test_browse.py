"""Looking at the trail."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from clew.cli.trail.system_records import HIDDEN
from tests.cli.conftest import Clew, OnTerminal

Put = Callable[..., str]


def titles(clew: Clew, *arguments: str) -> list[str]:
    return [row[3] for row in clew("trail", "ls", *arguments).rows]


def test_a_listing_goes_back_in_time_one_line_each(clew: Clew, put: Put) -> None:
    first, second = put("first", "--tag", "mine", "--schema", "note.v1"), put("second\twith\ttabs", "--tag", "mine")
    listed = clew("trail", "ls", "--tag", "mine")
    assert listed.lines[0] == "id\tupdated\tschema\ttitle\ttags"
    assert [row[0] for row in listed.rows] == [second, first]
    assert listed.rows[0][2:] == ["-", "second with tabs", "mine"]
    assert listed.rows[1][2:] == ["note.v1", "first", "mine"]
    assert clew("trail", "list", "--tag", "mine") == listed
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
        seen += [row[3] for row in result.rows]
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
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1


def test_a_period_counts_back_from_now_in_every_command(clew: Clew, put: Put) -> None:
    put("here", "--tag", "mine")
    limits = (["--since", "1h"], ["--until", "1h"], ["--since", "2d", "--until", "30m"])
    for command in (["ls"], ["search", "here"], ["export"]):
        shown = [clew("trail", *command, "--tag", "mine", *each).out.count("here") for each in limits]
        assert shown == [1, 0, 0], command
    assert "here" in clew("trail", "tail", "--since", "1w", "--tag", "mine", "--count", "1").out


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
    history = clew("trail", "history", id).rows
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
    short = clew("trail", "show", ids[1][-5:])
    assert (short.code, "is too short" in short.err, "6 characters or more" in short.err) == (2, True, True)


def test_an_id_that_means_nothing_comes_with_the_nearest_one_or_the_way_to_list_them(clew: Clew, put: Put) -> None:
    id = put("here")
    unknown = clew("trail", "show", "ffffff-nowhere")
    assert (unknown.code, "no breadcrumb 'ffffff-nowhere'. `clew trail ls` shows ids" in unknown.err) == (1, True)
    wrong = "0" if id[-1] != "0" else "1"
    for mistyped in (id[-9:-1] + wrong, id[:-1] + wrong):
        for command in (["show"], ["edit", "--title", "x"], ["rm", "--yes"], ["history"]):
            result = clew("trail", command[0], mistyped, *command[1:])
            assert (result.code, len(result.err.splitlines())) == (1, 1)
            assert f"Did you mean {id[-8:]}?" in result.err


def test_a_version_that_is_not_there_says_which_are(clew: Clew, put: Put) -> None:
    id = put("Draft")
    for version in ("0", "2", "-1", "9" * 30):
        result = clew("trail", "show", id, f"--version={version}")
        told = f"clew: breadcrumb {id} has no version {version}. There is only version 1\n"
        assert (result.code, result.err) == (1, told)
    for at in range(4):
        clew("trail", "edit", id, "--title", f"t{at}")
    told = f"clew: breadcrumb {id} has no version 9. There are versions 1 to 5\n"
    assert clew("trail", "show", id, "--version", "9").err == told


def test_a_search_finds_by_words_with_scores(clew: Clew, put: Put) -> None:
    best = put("Rotate the signing key", "--tag", "mine", "--schema", "note.v1")
    put("Paint the shed", "--tag", "mine")
    (row,) = clew("trail", "search", "signing key", "--limit", "1").rows
    assert row[0] == best
    assert row[2:] == ["note.v1", "Rotate the signing key"]
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
    assert (result.code, result.err) == (2, "clew: text: is empty. Give a text, a vector, or both\n")


def test_clews_own_breadcrumbs_are_left_out_unless_asked_for(clew: Clew, put: Put) -> None:
    mine = put("Schema of my reports", "--schema", "schema.def.v1", context={"schema_name": "report.v1"})
    listed = clew("trail", "ls")
    assert [row[0] for row in listed.rows] == [mine]
    everything = clew("trail", "ls", "--system", "--limit", "100")
    passed = len(everything.rows) - 1
    assert passed > 10
    assert listed.err == f"{passed} breadcrumbs of Clew itself {HIDDEN}\n"
    some = clew("trail", "ls", "--limit", "1")
    assert some.err.startswith(f"{passed} breadcrumbs of Clew itself {HIDDEN}\n")
    assert everything.err == ""
    assert [item["id"] for item in clew("trail", "ls", "--json").json["items"]] == [mine]
    assert len(clew("trail", "ls", "--json", "--system", "--limit", "100").json["items"]) == passed + 1
    assert len(clew("trail", "ls", "--schema", "schema.def.v1").lines) > 10
    assert "--system" in clew("trail", "ls", "--help").out


def test_a_search_and_the_events_leave_them_out_as_well(clew: Clew, put: Put) -> None:
    mine = put("Which schema a policy has")
    for at in range(3):
        assert clew("hygiene", "run").code == 0, at
    clew("trail", "put", "--title", "report on hygiene")
    for query in ("schema policy", "hygiene report of runs"):
        hits = clew("trail", "search", query, "--json", "--limit", "3").json["hits"]
        assert {hit["breadcrumb"]["schema_name"] for hit in hits} == {None}
    assert len(clew("trail", "search", "schema policy", "--system").lines) > 2
    events = [line.split("\t") for line in clew("trail", "tail", "--count", "2", "--last", "2").lines]
    assert events[0][6] == mine
    assert events[1][4] == "report on hygiene"
    first = clew("trail", "tail", "--system", "--after", "0", "--count", "1").lines[0].split("\t")
    assert first[3] == "schema.def.v1"


@pytest.mark.parametrize("oldest", [True, False])
def test_pages_are_full_however_many_of_clews_own_lie_between(clew: Clew, put: Put, oldest: bool) -> None:
    put("makes the trail", "--tag", "other")
    report = b'{"title":"report","context":{},"schema_name":"system.report.v1"}\n'
    line = b'{"title":"t%d","context":{},"tags":["mine"]}\n'
    drafts = b"".join((line % at) + report * (90 if at % 3 else 0) for at in range(9))
    assert clew("trail", "put", stdin=drafts).code == 0
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = clew("trail", "ls", "--limit", "4", "--json", *(["--oldest"] if oldest else []), *cursor).json
        seen += [item["title"] for item in page["items"] if item["tags"] == ["mine"]]
        if page["cursor"] is None:
            break
        assert len(page["items"]) == 4
        cursor = ["--cursor", page["cursor"]]
    wanted = [f"t{at}" for at in range(9)]
    assert seen == (wanted if oldest else wanted[::-1])


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


def test_on_a_terminal_there_is_a_table_and_a_hostile_title_stays_text(put: Put, on_terminal: OnTerminal) -> None:
    id = put(HOSTILE, "--tag", "mine", context={"text": HOSTILE})
    shown = on_terminal("trail", "ls", "--tag", "mine", COLUMNS="160")
    head, row = shown.splitlines()[:2]
    assert [word in head for word in ("id", "updated", "schema", "title", "tags")] == [True] * 5
    assert id[-8:] in row
    assert "evil \\x1b]0;owned\\x07\\x1b[31m" in row
    assert "\x1b]0" not in shown
    shown = on_terminal("trail", "show", id[-12:], NO_COLOR="1")
    for powerful in ("\x1b]0", "\x07", "\x1b[31m", "\x9b", "\u202e"):
        assert powerful not in shown
    assert "\\u009b2J" in shown


COLOUR = re.compile(r"\x1b\[[\d;]*m")
"""Progress, which appears after a second, moves the cursor by other sequences."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["trail", "ls"],
        ["trail", "show", "ID"],
        ["trail", "tail", "--count", "1"],
        ["doctor"],
        ["trail", "ls", "--json"],
    ],
)
def test_colours_are_for_terminals_that_want_them(put: Put, on_terminal: OnTerminal, arguments: list[str]) -> None:
    id = put("here", context={"n": 1})
    command = [id if word == "ID" else word for word in arguments]
    assert bool(COLOUR.search(on_terminal(*command))) == ("--json" not in command)
    assert not COLOUR.search(on_terminal(*command, NO_COLOR="1"))
    assert not COLOUR.search(on_terminal(*command, TERM="dumb"))


LONG = "A decision whose title takes about sixty columns of the table"


@pytest.mark.parametrize(
    ("columns", "head", "room"),
    [
        ("160", ["id", "updated", "schema", "title", "tags"], len(LONG)),
        ("80", ["id", "updated", "schema", "title"], 40),
        ("50", ["id", "title"], 40),
        ("20", ["id", "title"], 10),
    ],
)
def test_the_title_gets_the_room_and_narrow_terminals_fewer_columns(
    put: Put, on_terminal: OnTerminal, columns: str, head: list[str], room: int
) -> None:
    id = put(LONG, "--schema", "decision.v1", "--tag", "database", "--tag", "session:42")
    shown = on_terminal("trail", "ls", COLUMNS=columns, NO_COLOR="1").splitlines()
    assert shown[0].split() == head
    assert shown[1].startswith(f"{id[-8:]}  ")
    assert len(shown[1]) <= int(columns)
    assert LONG[: room - 1] in shown[1]
    found = on_terminal("trail", "search", "decision", COLUMNS=columns, NO_COLOR="1").splitlines()
    assert len(found[1]) <= int(columns)
    assert LONG[: min(room, 40) - 1] in found[1]


def test_wide_characters_do_not_break_the_table(put: Put, on_terminal: OnTerminal) -> None:
    put("東京の決定 " * 20, "--tag", "mine")
    row = on_terminal("trail", "ls", COLUMNS="60", NO_COLOR="1").splitlines()[1]
    assert row.endswith("…")
    assert sum(2 if ord(character) > 0x2E80 else 1 for character in row) <= 60


def test_an_empty_result_names_the_next_step(clew: Clew, put: Put, on_terminal: OnTerminal) -> None:
    clew("trail", "rm", put("the only one"), "--yes")
    assert "No breadcrumbs yet. Write one: clew trail put" in on_terminal("trail", "ls")
    assert "No breadcrumb fits that." in on_terminal("trail", "ls", "--tag", "x")
    assert "`clew trail ls` lists all breadcrumbs" in on_terminal("trail", "search", "anything", "--tag", "x")
    assert "clew secret put" in on_terminal("secret", "ls")
    assert "No dead letters." in on_terminal("dlq", "ls")


def test_a_pipe_gets_neither_colours_nor_escapes(clew: Clew, put: Put) -> None:
    id = put(HOSTILE, "--tag", "mine", context={"text": HOSTILE})
    for arguments in (
        ["ls"],
        ["show", id],
        ["show", id, "--json"],
        ["search", "evil"],
        ["tail", "--count", "1"],
        ["export"],
    ):
        out: Any = clew("trail", *arguments).out
        assert not set(out) & set("\x1b\x07\x9b\u202e"), arguments
