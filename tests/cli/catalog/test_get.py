"""`clew get` and `clew why`: values, parallel routes, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.catalog.registry import DomainRegistry
from clew.cli.commands.catalog import parse_items
from tests.cli.catalog.conftest import settings
from tests.cli.conftest import Clew


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["get"], 2, "routes: are missing"),
        (["get", "key=1"], 2, "comes before any route"),
        (["get", "repo://tools/search", "--params", "[1]"], 2, "--params: is not a JSON object"),
        (["get", "repo://tools/search", "--params", "{"], 2, "--params: is not a JSON object"),
        (["get", "repo://tools/search", "query=a", "--params", "{}"], 2, "no KEY=VALUE"),
        (["get", "repo://tools/search", "repo://tools/search", "--params", "{}"], 2, "exactly one route"),
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
def test_a_failure_is_one_line_and_an_exit_code(clew: Clew, arguments: list[str], code: int, said: str) -> None:
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
        assert refused.err.startswith(f"clew: {key}: is given 2 times for warehouse://tools/analyst. Only a parameter")
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
    assert 'ask(query="warehouse://tools/analyst", domain="warehouse")' in failure["message"]
    handle = clew("ask", "warehouse://tools/analyst", "--domain", "warehouse", "--json").json["handle"]
    guided = clew("get", "warehouse://tools/analyst", "--handle", handle)
    assert guided.code == 0
    assert clew("get", "warehouse://tools/hidden/query", "sql=x", "--handle", handle).code == 0
    assert clew("get", "warehouse://tools/hidden/query", "sql=x", "--handle", handle, "--owner", "eve").code == 1


def test_words_become_entries_in_their_order() -> None:
    words = ["a://tools/x", "n=1", "b://resources/p=q.md", "a://tools/x", "url=http://y/?z=1"]
    items = parse_items(words, None, DomainRegistry())
    assert [(each.route, each.params) for each in items] == [
        ("a://tools/x", {"n": 1}),
        ("b://resources/p=q.md", {}),
        ("a://tools/x", {"url": "http://y/?z=1"}),
    ]


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("warehouse://tools/analist", "Did you mean warehouse://tools/analyst?"),
        ("warehouse://analyst", "Did you mean warehouse://tools/analyst?"),
        ("warehouse/analyst", "Did you mean warehouse://tools/analyst?"),
        ("warehose://tools/analyst", "Did you mean warehouse://tools/analyst?"),
        ("warehouse://tools/query", "Start with warehouse://tools/analyst or "),
        ("zoo://tools/analyst", "`ask` shows the routes that exist"),
    ],
)
def test_a_wrong_route_leads_to_the_nearest_one_of_its_domain(clew: Clew, tools: Path, route: str, said: str) -> None:
    result = clew("get", route)
    assert (result.code, "hidden" in result.out) == (1, False)
    assert said in result.lines[0]
