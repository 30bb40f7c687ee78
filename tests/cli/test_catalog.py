"""The catalog for people: ask, get, domains, refresh, why."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.pipeline import MANY
from clew.catalog.registry import Registry
from clew.cli.catalog import parse_items
from tests.cli.conftest import COMMAND, PATIENCE, Clew, start
from tests.trusting import trust_all

TOPICS = ("ledger", "kettle", "orchard", "harbour", "violin", "glacier", "saddle", "lantern")

TOOLS = '''
"""Two domains for the tests of the commands."""

from typing import Literal

from clew.catalog.domain import Domain
from clew.catalog.resource import Resource
from clew.tools import GuidedContent, guide, tool


@tool()
async def analyst(text: str = "", limit: int = 3, note: str | None = None, kind: Literal["1", "2"] = "1",
                  tags: list[str] = [], deep: bool = False) -> GuidedContent:
    """Look into payments of the warehouse."""
    told = repr((text, limit, note, kind, tags, deep))
    return GuidedContent(content=told, guidance=[guide("warehouse://tools/hidden/query", "run it")])


@tool(searchable=False)
async def query(sql: str) -> str:
    """Run a query."""
    return f"ran {sql}"


@tool(scopes=("finance",))
async def payroll() -> str:
    """Show what people are paid."""
    return "much"


@tool()
async def breaks() -> str:
    """Break on purpose."""
    raise ValueError("broken on purpose")


@tool()
async def noisy() -> str:
    """Give back control characters."""
    return "red \\x1b[31mand \\x07bell \\u202ereversed"


warehouse = Domain(
    name="warehouse", description="Payments and those who make them.", tools=(analyst, query, payroll, breaks, noisy)
)
'''


@pytest.fixture
def project(folder: Path) -> Path:
    """A folder with two hundred small files, of which eight are about something."""
    root = folder.parent
    for number in range(200):
        place = root / f"part-{number % 10}"
        place.mkdir(exist_ok=True)
        (place / f"file-{number}.md").write_text(f"# Page {number}\n\nNothing but the number {number} in here.\n")
    for topic in TOPICS:
        (root / f"{topic}.md").write_text(f"# The {topic}\n\nHow to look after the {topic} of the house, every week.\n")
    return root


@pytest.fixture
def tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without files of its own, whose settings name a domain in a module."""
    code = folder.parent / "code"
    code.mkdir()
    (code / "warehouse_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(code))
    monkeypatch.setenv("PYTHONPATH", str(code))
    settings(folder, '[catalog]\nrepository = false\ndomains = ["warehouse_tools:warehouse"]\n')
    trust_all(folder)
    return folder


def settings(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)


def resources(answer: Any) -> list[str]:
    return [entry["route"] for section in answer["sections"] for entry in section.get("resources", ())]


@pytest.mark.req("BEY-11")
@pytest.mark.req("ERN-24")
def test_a_question_in_a_fresh_folder_is_answered_from_its_files_and_the_next_one_sees_what_changed(
    clew: Clew, folder: Path, project: Path
) -> None:
    first = clew("ask", "how do I look after the glacier?", "--json")
    assert (first.code, (folder / "config.toml").exists()) == (0, True)
    assert first.json["is_relevant"]
    assert resources(first.json)[0].startswith("repo://resources/glacier.md")
    assert "A new trail" in first.err

    (project / "glacier.md").write_text("# The volcano\n\nHow to look after the volcano of the island.\n")
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "trombone.md").write_text("# The trombone\n\nHow to polish a trombone.\n")
    (project / "violin.md").unlink()
    assert resources(clew("ask", "the volcano of the island", "--json").json)[0].startswith("repo://resources/glacier")
    polished = resources(clew("ask", "polish", "the", "trombone", "--json").json)
    assert polished[0].startswith("repo://resources/deep/er/trombone.md")
    assert not any("violin" in each for each in resources(clew("ask", "violin", "--json").json))

    (project / "late.md").write_text("# Zeppelin\n\nOf the zeppelin.\n")
    assert not any("late" in each for each in resources(clew("ask", "zeppelin", "--cached", "--json").json))
    assert any("late" in each for each in resources(clew("ask", "zeppelin", "--json").json))


def test_an_answer_names_routes_that_get_reads(clew: Clew, project: Path) -> None:
    shown = clew("ask", "the kettle of the house").out
    assert "`repo://resources/kettle.md" in shown
    assert "`repo://tools/search`" in shown
    got = clew("get", "repo://resources/kettle.md")
    assert (got.code, got.err) == (0, "")
    assert "How to look after the kettle" in got.out
    searched = clew("get", "repo://tools/search", "query=kettle", "limit=2", "--json").json
    assert searched["results"][0]["success"]
    assert searched["results"][0]["data"]["content"].count("From `repo://") == 2
    below = clew("get", "repo://tools/search", "query=number page", "path=part-3/**", "--json").json["results"][0]
    assert {step["route"].split("/")[3] for step in below["data"]["guidance"]} == {"part-3"}
    assert "No file matches" in clew("get", "repo://tools/search", "query=x", "path=nowhere/**").out


def test_when_nothing_is_close_the_answer_says_so(clew: Clew, project: Path) -> None:
    answer = clew("ask", "xylophagous quasar brinkmanship", "--json").json
    assert (answer["is_relevant"], resources(answer)) == (False, [])
    assert "Nothing here is close" in clew("ask", "xylophagous quasar brinkmanship", "--cached").out


@pytest.mark.parametrize(
    "question",
    [
        ["'; DROP TABLE breadcrumbs; --"],
        ['"unbalanced (quotes" AND OR NOT *'],
        ["🜁 über 日本語 \u202e reversed"],
        ["\x00\x1b[2J\x07 control"],
        ["a", "\t\n", "b"],
        ["?"],
        ["x" * 4_000],
    ],
)
def test_odd_questions_are_answered(clew: Clew, folder: Path, question: list[str]) -> None:
    (folder.parent / "a.md").write_text("# A\n\nText.\n")
    result = clew("ask", *question)
    assert result.code == 0, result.err
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask"], "query: is empty"),
        (["ask", "  "], "query: is empty"),
        (["ask", "x" * 4_001], "4,001 characters is over the limit of 4,000"),
        (["ask", "x", "--budget", "5"], "budget: must be between"),
        (["ask", "x", "--per-domain", "0"], "per_domain: must be between"),
        (["ask", "a\udcffb"], "query"),
    ],
)
def test_a_question_that_cannot_be_is_wrong_usage_and_leaves_no_folder(
    clew: Clew, folder: Path, arguments: list[str], said: str
) -> None:
    result = clew(*arguments)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert said in result.err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["get"], 2, "routes: are missing"),
        (["get", "key=1"], 2, "comes before any route"),
        (["get", "repo://tools/search", "--params", "[1]"], 2, "--params: is not a JSON object"),
        (["get", "repo://tools/search", "--params", "{"], 2, "--params: is not a JSON object"),
        (["get", "repo://tools/search", "query=a", "--params", "{}"], 2, "without key=value"),
        (["get", "repo://tools/search", "repo://tools/search", "--params", "{}"], 2, "of one route"),
        (["get", *["repo://resources/x"] * 51], 2, "51 entries is over the limit of 50"),
        (["ask", "x", "--domain", "rep"], 1, "Did you mean repo?"),
        (["ask", "x", "--handle", "clew-nope"], 1, "this handle has ended, or is not yours"),
        (["get", "repo://tools/search", "query=x", "--handle", "clew-nope"], 1, "this handle has ended"),
        (["why", "repo://tools/search", "--handle", "clew-nope"], 1, "this handle has ended"),
        (["why", "not a route"], 2, "route"),
        (["refresh", "--all", "local:x"], 2, "--all"),
        (["refresh", "--force"], 2, "--force"),
        (["refresh", "nowhere"], 1, "Sources are local:"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_an_exit_code(
    clew: Clew, arguments: list[str], code: int, said: str
) -> None:
    result = clew(*arguments)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert result.err.startswith("clew: ")


@pytest.mark.req("ERN-05")
def test_values_are_read_as_the_tool_wants_them(clew: Clew, tools: Path) -> None:
    def told(*arguments: str) -> str:
        result = clew("get", "warehouse://tools/analyst", *arguments, "--json")
        return str(result.json["results"][0].get("data", result.json["results"][0].get("error"))["content"])

    assert told() == "('', 3, None, '1', [], False)"
    assert told("text=7", "limit=7", "note=7", "kind=2", 'tags=["a","b"]', "deep=true") == (
        "('7', 7, '7', '2', ['a', 'b'], True)"
    )
    assert told("note=a=b=c", "text=") == "('', 3, 'a=b=c', '1', [], False)"
    assert told('text="quoted"') == "('\"quoted\"', 3, None, '1', [], False)"
    assert told("note=null") == "('', 3, None, '1', [], False)"
    assert told("--params", '{"text": "x", "limit": 1}') == "('x', 1, None, '1', [], False)"
    assert told("text=https://example.org/?a=b") == "('https://example.org/?a=b', 3, None, '1', [], False)"


def test_a_key_may_be_repeated_where_a_list_is_wanted_and_nowhere_else(clew: Clew, tools: Path) -> None:
    def told(*arguments: str) -> str:
        result = clew("get", "warehouse://tools/analyst", *arguments, "--json")
        return str(result.json["results"][0]["data"]["content"])

    assert told("tags=a", "text=x", "tags=7") == "('x', 3, None, '1', ['a', '7'], False)"
    assert told("tags=a") == told('tags=["a"]') == "('', 3, None, '1', ['a'], False)"
    for repeated in (["limit=1", "limit=2"], ["text=a", "text=a"], ["unknown=1", "unknown=2"]):
        refused = clew("get", "warehouse://tools/analyst", *repeated)
        assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
        key = repeated[0].partition("=")[0]
        assert refused.err.startswith(f"clew: {key}: is there 2 times for warehouse://tools/analyst. Only a parameter")
    assert clew("get", "no route at all", "a=1", "a=2").code == 2


def test_routes_run_side_by_side_and_the_command_ends_with_1_when_one_fails(clew: Clew, tools: Path) -> None:
    result = clew(
        "get",
        *("warehouse://tools/analyst", "text=a"),
        "warehouse://tools/breaks",
        "warehouse://tools/payroll",
        *("warehouse://tools/analyst", "limit=many"),
        "warehouse://tools/analyts",
        *("no route at all", "key=1"),
        "--json",
    )
    outcomes = [each.get("error", {}).get("code", "ok") for each in result.json["results"]]
    assert outcomes == ["ok", "EXECUTION_ERROR", "ACCESS_DENIED", "INVALID_PARAMS", "NOT_FOUND", "INVALID_ROUTE"]
    assert (result.code, result.json["summary"]) == (1, {"total": 6, "success": 1, "failed": 5})
    plain = clew("get", "warehouse://tools/analyst", "warehouse://tools/breaks")
    assert plain.code == 1
    assert "broken on purpose" in plain.out
    assert clew("get", "warehouse://tools/payroll", "--scopes", "finance").code == 0


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


def test_domains_are_listed_with_what_they_hold(clew: Clew, tools: Path, folder: Path) -> None:
    (listed,) = clew("domains").lines
    assert listed.split("\t") == ["warehouse", "3", "1", "", "Payments and those who make them."]
    (info,) = clew("domains", "--json", "--scopes", "finance").json
    assert len(info["entry_points"]) == 4
    settings(folder, "[catalog]\nrepository = false\n")
    empty = clew("domains")
    assert (empty.out, empty.code) == ("", 0)
    assert "No domains" in empty.err


@pytest.mark.req("ERN-24")
def test_sources_are_refreshed_one_by_one_all_or_not_at_all(clew: Clew, folder: Path) -> None:
    for name in ("one", "two"):
        (folder.parent / name).mkdir()
        (folder.parent / name / "page.md").write_text(f"# {name}\n\nText of {name}.\n")
    tables = [f"[sources.{name}]\nkind = 'local'\nroot = '{name}'\n" for name in ("one", "two", "gone")]
    settings(folder, "[catalog]\nrepository = false\n" + "".join(tables))

    states = {each["domain"]: each for each in clew("refresh", "--list", "--json").json}
    assert [states[name]["is_fresh"] for name in ("one", "two", "gone")] == [False, False, False]
    assert clew("refresh", "--list").lines[0].split("\t")[3] == "it was never indexed"

    first = clew("refresh", "--json")
    assert first.code == 1
    outcomes = {each["domain"]: each["outcome"] for each in first.json}
    assert outcomes == {"one": "refreshed", "two": "refreshed", "gone": "failed"}
    shown = clew("refresh")
    assert shown.code == 1
    assert any(line.startswith("failed  gone") and "there is no such folder" in line for line in shown.lines)

    (folder.parent / "one" / "page.md").write_text("# one\n\nAnother text.\n")
    (folder.parent / "two" / "page.md").write_text("# two\n\nAnother text.\n")
    (only,) = clew("refresh", states["one"]["source_id"], "--json").json
    assert (only["domain"], only["changed"]) == ("one", 1)
    assert "Text of two" in clew("trail", "search", "text of two", "--schema", "resource.v1", "--json").out
    rebuilt = {each["domain"]: each for each in clew("refresh", "--all", "--json").json}
    assert rebuilt["two"]["outcome"] == "refreshed"
    assert "Another text" in clew("get", "two://resources/page.md").out

    for number in range(MANY):
        (folder.parent / "two" / f"{number}.md").write_text("# Page\n\nText.\n")
    clew("refresh", states["two"]["source_id"])
    for page in (folder.parent / "two").iterdir():
        page.unlink()
    kept = clew("refresh", states["two"]["source_id"], "--json")
    assert (kept.code, kept.json[0]["outcome"]) == (1, "failed")
    assert clew("get", "two://resources/page.md").code == 0
    assert clew("refresh", states["two"]["source_id"], "--force").code == 0
    assert clew("get", "two://resources/page.md").code == 1


def test_a_source_that_fails_does_not_keep_a_question_from_its_answer(clew: Clew, folder: Path) -> None:
    (folder.parent / "page.md").write_text("# Kettle\n\nText of the kettle.\n")
    settings(folder, "[sources.gone]\nkind = 'local'\nroot = 'gone'\n")
    result = clew("ask", "kettle", "--json")
    assert result.code == 0
    assert "was not refreshed" in result.err
    assert resources(result.json)


@pytest.mark.req("BEY-12")
def test_why_tells_of_each_kind_of_route(clew: Clew, tools: Path, folder: Path) -> None:
    settings(folder, '[catalog]\ndomains = ["warehouse_tools:warehouse"]\n')
    (folder.parent / "page.md").write_text("# Kettle\n\nText of the kettle.\n")
    handle = clew("get", "warehouse://tools/analyst", "--json").json["handle"]
    clew("ask", "kettle")

    def told(route: str, *more: str) -> tuple[bool, str]:
        found = clew("why", route, *more, "--json").json
        return found["is_visible"], found["reasons"][0]

    assert told("warehouse://tools/analyst") == (True, "It is an entry point: every `ask` shows it.")
    assert told("warehouse://tools/hidden/query")[0] is False
    assert told("warehouse://tools/hidden/query", "--handle", handle)[0] is True
    assert "by guidance: warehouse://tools/analyst" in told("warehouse://tools/hidden/query", "--handle", handle)[1]
    assert told("warehouse://tools/payroll") == (False, "It needs the scopes finance, which you do not hold.")
    assert "spelled alike" in told("warehouse://tools/analyts")[1]
    assert told("repo://resources/page.md")[0] is True
    assert told("repo://resources/nowhere.md")[0] is False
    lines = clew("why", "warehouse://tools/payroll", "--scopes", "finance").lines
    assert lines[0] == "visible  warehouse://tools/payroll"
    assert "  scopes: finance" in lines
    assert "token" in lines[-1]


def test_strict_settings_make_get_refuse_what_was_not_shown_and_name_the_ask(
    clew: Clew, tools: Path, folder: Path
) -> None:
    settings(folder, '[catalog]\nrepository = false\nstrict = true\ndomains = ["warehouse_tools:warehouse"]\n')
    refused = clew("get", "warehouse://tools/hidden/query", "sql=x", "--json")
    failure = refused.json["results"][0]["error"]
    assert (refused.code, failure["code"]) == (1, "NOT_REVEALED")
    assert 'ask(query="query", domain="warehouse")' in failure["message"]
    handle = clew("ask", "payments", "--json").json["handle"]
    guided = clew("get", "warehouse://tools/analyst", "--handle", handle)
    assert guided.code == 0
    assert clew("get", "warehouse://tools/hidden/query", "sql=x", "--handle", handle).code == 0
    assert clew("get", "warehouse://tools/hidden/query", "sql=x", "--handle", handle, "--owner", "eve").code == 1


def on_terminal(*arguments: str, **environ: str) -> str:
    """What a command shows to a person."""
    ours, theirs = pty.openpty()
    more = {"TERM": "xterm", "COLUMNS": "100"} | environ
    with subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=theirs, env=os.environ | more):
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return shown.decode()


def test_answers_are_styled_on_a_terminal_and_only_there(clew: Clew, tools: Path) -> None:
    styled = on_terminal("ask", "payments", "--cached")
    assert "\x1b[36mwarehouse://tools/analyst\x1b[0m" in styled
    assert "\\x1b" not in styled
    told = on_terminal("why", "warehouse://tools/hidden/query")
    assert "\x1b[31mnot visible  warehouse://tools/hidden/query\x1b[0m" in told
    assert "\x1b" not in on_terminal("why", "warehouse://tools/analyst", NO_COLOR="1")
    assert "\x1b" not in clew("ask", "payments").out


def test_the_report_of_a_refresh_is_styled_and_clean_on_a_terminal(clew: Clew, folder: Path) -> None:
    (folder.parent / "page.md").write_text("# Kettle\n\nText of the kettle.\n")
    shown = on_terminal("refresh")
    assert "\x1b[32mrefreshed  repo  local:" in shown
    assert "\\x1b" not in shown


def test_words_become_entries_in_their_order() -> None:
    words = ["a://tools/x", "n=1", "b://resources/p=q.md", "a://tools/x", "url=http://y/?z=1"]
    items = parse_items(words, None, Registry())
    assert [(each.route, each.params) for each in items] == [
        ("a://tools/x", {"n": 1}),
        ("b://resources/p=q.md", {}),
        ("a://tools/x", {"url": "http://y/?z=1"}),
    ]


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


def test_the_folder_is_indexed_for_its_owner_alone(clew: Clew, folder: Path) -> None:
    (folder.parent / "page.md").write_text("# Kettle\n\nText of the kettle.\n")
    clew("ask", "kettle", "--owner", "ann")
    assert resources(clew("ask", "kettle", "--owner", "eve", "--cached", "--json").json) == []
    assert "no such resource" in clew("why", "repo://resources/page.md", "--owner", "eve").out
    assert "on the trail" in clew("why", "repo://resources/page.md", "--owner", "ann").out


def test_two_first_questions_at_once_are_both_answered(folder: Path, project: Path) -> None:
    asking = [start("ask", "look after the lantern", "--json") for _ in range(2)]
    for process in asking:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert resources(json.loads(out))[0].startswith("repo://resources/lantern.md")


def test_a_secret_of_a_source_is_named_and_never_shown(clew: Clew, folder: Path) -> None:
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
    table = (
        "[sources.pulls]\nkind = 'github'\nrepo = 'a/b'\nbase_url = 'http://127.0.0.1:1'\nattempts = 1\ntoken = '{}'\n"
    )
    settings(folder, table.format("github"))
    clew("trust", "--yes")
    assert "[sources.pulls] is left out: it names neither a secret nor a variable that is there" in clew("domains").err
    clew("secret", "put", "github", stdin=secret.encode())
    results = [clew("domains", "--json"), clew("refresh", "--list", "--json"), clew("refresh", "--json")]
    settings(folder, table.format(secret))
    results += [clew("trust", "--yes")]
    results += [clew("domains"), clew("ask", "x"), clew("refresh")]
    assert [each.code for each in results] == [0, 0, 1, 0, 0, 0, 0]
    assert all(secret not in each.out + each.err for each in results)


def test_a_database_of_the_settings_is_found_from_any_folder(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(folder.parent / "shop.db")) as database:
        database.executescript("CREATE TABLE orders (id INTEGER, total NUMERIC);")
    settings(folder, "[catalog]\nrepository = false\n[sources.shop]\nkind = 'warehouse'\nurl = 'sqlite:///shop.db'\n")
    (folder.parent / "below").mkdir()
    monkeypatch.chdir(folder.parent / "below")
    (report,) = clew("refresh", "--json").json
    assert (report["outcome"], report["documents"]) == ("refreshed", 1)


def test_odd_files_are_skipped_with_a_reason_and_hold_nobody_up(clew: Clew, folder: Path) -> None:
    root = folder.parent
    deep = root.joinpath(*["n"] * 200)
    deep.mkdir(parents=True)
    (deep / "leaf.md").write_text("# Leaf\n\nDeep down.\n")
    os.mkfifo(root / "pipe.md")
    with (root / "sparse.md").open("wb") as sparse:
        sparse.truncate(100_000_000)
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind("socket.md")  # from the working folder, as a whole path may be too long for a socket
    (root / ("long-" * 40 + ".md")).write_bytes(b"\x00binary")
    result = clew("refresh", "--json")
    (report,) = result.json
    reasons = {each["document"]: each["reason"] for each in report["skipped"]}
    assert (result.code, report["documents"]) == (0, 1)
    assert reasons["pipe.md"] == reasons["socket.md"] == "is not a regular file"
    assert "over the limit" in reasons["sparse.md"]
    shown = clew("refresh", report["source_id"])
    assert "skipped long-long-" in shown.err
    assert all(len(line) < 200 for line in shown.err.splitlines())
    assert clew("get", f"repo://resources/{'n/' * 200}leaf.md").code == 0


@pytest.mark.parametrize("command", [["ask", "x"], ["refresh"], ["domains"], ["mcp", "ls"], ["up", "--port", "0"]])
def test_a_folder_that_cannot_be_made_is_one_line_that_names_a_way_out(clew: Clew, command: list[str]) -> None:
    result = clew(*command, "--folder", "/proc/nobody/.clew")  # where not even root can make one
    assert (result.code, result.out, len(result.err.splitlines())) == (1, "", 1)
    assert result.err.endswith("Name a folder that you may write: --folder or CLEW_FOLDER\n")
