"""Commands for the knowledge of the files around the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Clew, OnTerminal
from tests.knowledge.code.repositories import git, make_repository, write
from tests.knowledge.code.sample_project import SAMPLE

ADR = """# 1. Prices are rounded at the end

Date: 2026-01-05

## Status

Accepted

## Context

Rounding in between lost cents.

## Decision

`shop/prices.py` rounds once, at the end.
"""


@pytest.fixture
def shop(tmp_path: Path, folder: Path) -> Path:
    """A repository around the folder of the commands."""
    files = {**SAMPLE, "docs/decisions/0001-rounding.md": ADR, ".gitignore": ".clew/\n"}
    return make_repository(tmp_path, files)


@pytest.mark.req("SYL-95")
def test_index_counts_what_there_is_and_reads_nothing_twice(clew: Clew, shop: Path) -> None:
    first = clew("index", "--json").json
    again = clew("index", "--json").json
    assert first["files"] == again["files"] == len(SAMPLE) + 2
    assert first["symbols"] >= 8
    assert (first["gathered"]["commits"], again["gathered"]["commits"]) == (1, 0)
    assert (first["gathered"]["decisions"], again["gathered"]["decisions"]) == (1, 1)
    assert again["gathered"]["code"]["parsed"] == 0
    assert (
        f"{first['files']} files with {first['symbols']} symbols: 0 files new or changed, 0 gone" in clew("index").out
    )


def test_index_names_the_files_of_which_not_all_is_known(clew: Clew, shop: Path) -> None:
    write(shop, "many.py", "".join(f"def mid_{number}(): pass\n" for number in range(10_050)))
    write(shop, "huge.txt", "x" * 2_100_000)
    (shop / "picture.png").write_bytes(b"\x89PNG\x00\x00")
    done = clew("index", "--json").json
    assert [each["path"] for each in done["left_out"]] == ["huge.txt", "many.py"]
    told = clew("index").err
    assert "Partly indexed: huge.txt has over " in told
    assert "Partly indexed: many.py has more definitions, uses or statements than the limit" in told
    assert "picture.png" not in told


def test_locate_names_the_file_its_line_and_why(clew: Clew, shop: Path) -> None:
    best = clew("locate", "the tax is added twice when prices are rounded", "--json").json[0]
    assert best["path"] == "shop/prices.py"
    assert best["why"]
    assert "shop/prices.py:" in clew("locate", "prices with tax").out


def test_locate_shows_the_best_line_of_a_file_without_a_matching_symbol_and_why(
    clew: Clew, shop: Path, on_terminal: OnTerminal
) -> None:
    lines = ["from __future__ import annotations", "", "import parcel", "", "COURIERS = ['tortoise', 'snail']", ""]
    (shop / "shop" / "couriers.py").write_text("\n".join(lines))
    found = clew("locate", "the tortoise is slow", "--json").json[0]
    assert (found["path"], found["line"], found["symbol"]) == ("shop/couriers.py", 5, "")
    shown = on_terminal("locate", "the tortoise is slow", NO_COLOR="1", COLUMNS="100")
    assert "COURIERS = ['tortoise', 'snail']" in shown
    assert "why" in shown.replace("\r", "").split("place", 1)[1].split("\n", 1)[0]


def test_locate_says_when_no_file_is_meant(clew: Clew, shop: Path) -> None:
    result = clew("locate", "zzqx")
    assert result.code == 0
    assert "No file matches" in result.err


def test_callers_are_found_over_several_steps(clew: Clew, shop: Path) -> None:
    near, far = (clew("callers", "add_tax", "--depth", depth, "--json").json for depth in ("1", "3"))
    names = [{each["node"]["name"] for each in found["symbols"][0]["callers"]} for found in (near, far)]
    assert names[0] < names[1]
    assert any("pay" in name for name in names[1])
    assert near["certain"]
    assert "shop/basket.py:" in clew("callers", "add_tax").out
    nodes = [near["symbols"][0]["node"], near["symbols"][0]["callers"][0]["node"]]
    assert [(node["domain"], node["node_type"], node["verification"]) for node in nodes] == [
        ("code", "function", "code"),
        ("code", "method", "code"),
    ]


def test_callers_are_shown_with_all_their_lines_and_nothing_that_is_empty(clew: Clew, shop: Path) -> None:
    write(shop, "shop/twice.py", "from shop.prices import add_tax\ndef twice():\n    add_tax(1)\n    add_tax(2)\n")
    line = next(line for line in clew("callers", "add_tax").lines if "twice" in line)
    assert line.split("\t") == ["shop/twice.py:3", "twice", "add_tax(1) (also 4)"]


def test_callers_of_a_name_that_two_have_say_which_of_them(clew: Clew, shop: Path) -> None:
    write(shop, "shop/other.py", "def add_tax(): ...\ndef unused(): ...\nadd_tax()\n")
    shown = clew("callers", "add_tax")
    assert "shop/other.py:3\tshop/other.py\tadd_tax()\tshop/other.py#add_tax" in shown.lines
    assert any(line.endswith("\tshop/prices.py#add_tax") for line in shown.lines)
    assert "Nothing in this repository calls it" in clew("callers", "unused").err


def test_calls_that_only_share_the_name_are_not_called_callers(clew: Clew, shop: Path) -> None:
    write(shop, "shop/pair.py", "class A:\n    def ring(self): ...\nclass B:\n    def ring(self): ...\n")
    write(shop, "shop/use.py", "def use(thing):\n    thing.ring()\n")
    shown = clew("callers", "A.ring")
    assert "No call of it is certain; 1 call of this name could not be told apart" in shown.err
    assert shown.rows == [["shop/use.py:2", "use", "thing.ring() (by its name alone)"]]
    found = clew("callers", "A.ring", "--json").json
    assert (found["certain"], found["untold"]) == (False, 1)
    place = {"path": "shop/use.py", "line": 2, "caller": "use", "owner": "", "is_likely": False}
    assert (found["places"], found["owners"]) == ([place], {"": 1})


def test_calls_of_an_unknown_receiver_are_shown_by_their_likely_owner(clew: Clew, shop: Path) -> None:
    write(shop, "shop/pair.py", "class Bell:\n    def ring(self): ...\nclass Phone:\n    def ring(self): ...\n")
    write(
        shop, "shop/use.py", "def use(bell, phone, x):\n    bell.ring()\n    bell.ring()\n    phone.ring(); x.ring()\n"
    )
    write(shop, "shop/more.py", "def more(x):\n    x.ring()\n")
    shown = clew("callers", "Bell.ring")
    assert shown.rows[0] == ["shop/use.py:2", "use", "bell.ring() (also 3, likely)"]
    assert "1 call of this name, likely of shop/pair.py#Phone.ring" in shown.err
    assert "1 call of this name could not be told apart" in shown.err
    places = clew("callers", "Bell.ring", "--json").json["places"]
    assert [(each["path"], each["line"], each["owner"], each["is_likely"]) for each in places] == [
        ("shop/use.py", 2, "shop/pair.py#Bell.ring", True),
        ("shop/use.py", 3, "shop/pair.py#Bell.ring", True),
        ("shop/use.py", 4, "shop/pair.py#Phone.ring", False),
        ("shop/more.py", 2, "", False),
    ]


def test_callers_of_no_name_and_of_a_misspelt_one_say_what_to_do(clew: Clew, shop: Path) -> None:
    empty = clew("callers", "")
    assert (empty.code, "symbol: is empty. Name a function" in empty.err) == (2, True)
    wrong = clew("callers", "ad_tax")
    assert (wrong.code, "Did you mean shop/prices.py#add_tax?" in wrong.err) == (1, True)


@pytest.mark.parametrize("name", ["a." * 30_000 + "b", "x" * 501, "::".join("ab" * 11), "shop/prices.py#" + "a." * 30])
def test_a_name_that_nobody_writes_is_refused_at_once_and_cut(clew: Clew, shop: Path, name: str) -> None:
    refused = clew("callers", name)
    assert refused.code in (1, 2)
    assert len(refused.err) < 300


def test_a_symbol_that_there_is_not_is_said_to_be_missing(clew: Clew, shop: Path) -> None:
    result = clew("callers", "no_such_thing")
    assert (result.code, "no_such_thing" in result.err) == (1, True)


@pytest.mark.req("SYL-77")
def test_blame_why_cites_the_commit_and_the_decision(clew: Clew, shop: Path) -> None:
    write(shop, "shop/prices.py", SAMPLE["shop/prices.py"].replace("round(price, 2)", "round(price, 3)"))
    git(shop, "commit", "-qam", "Round to mills\n\nCents were lost.")
    line = SAMPLE["shop/prices.py"].splitlines().index("    return round(price, 2)") + 1
    shown = clew("blame-why", f"shop/prices.py:{line}")
    assert shown.lines[0] == f"shop/prices.py:{line}"
    assert "Round to mills" in shown.out
    assert git(shop, "rev-parse", "HEAD")[:10] in shown.out
    assert "Prices are rounded at the end" in shown.out


@pytest.mark.parametrize("place", ["shop/prices.py", "shop/prices.py:0", ":3", "shop/prices.py:x"])
def test_blame_why_wants_a_line(clew: Clew, shop: Path, place: str) -> None:
    result = clew("blame-why", place)
    assert result.code == 2
    assert "is not PATH:LINE. Write it as src/app.py:42" in result.err


def test_blame_why_of_a_line_beyond_the_end_says_so(clew: Clew, shop: Path) -> None:
    result = clew("blame-why", "shop/prices.py:9999")
    assert result.code == 1
    assert "9999" in result.err


@pytest.mark.req("SYL-22")
def test_a_brief_grows_with_its_tier(clew: Clew, shop: Path) -> None:
    clew("index")
    tokens = [clew("brief", tier, "--json").json["tokens"] for tier in ("micro", "standard", "full")]
    assert tokens == sorted(tokens)
    assert clew("brief", "giant").code == 2


@pytest.mark.req("BEY-11")
def test_the_first_ask_in_a_repository_answers_with_a_place_in_its_code(clew: Clew, shop: Path) -> None:
    answer = clew("ask", "where is the tax added", "--json").json
    source = answer["known"][0]
    assert (source["number"], source["path"], source["start"], source["end"]) == (1, "shop/prices.py", 6, 8), source
    assert source["place"] == f"shop/prices.py:6-8@{source['blob'][:10]}", source
    assert source["trust"]
    assert "## Known" in answer["markdown"]
    assert {"code", "history", "reference", "repo"} <= {section["domain"] for section in answer["sections"]}


@pytest.mark.req("BEY-13")
@pytest.mark.parametrize("more", [["--json"], ["--json", "--no-server"]])
def test_a_question_may_start_with_a_dash(clew: Clew, shop: Path, more: list[str]) -> None:
    for text in ("--tax is not added any more", "- where is the tax added"):
        assert "shop/prices.py" in [item["path"] for item in clew("ask", text, *more).json["known"]]
    assert clew("ask", "--per-domain", "3", *more, "-x y").code == 0
    assert clew("locate", "- where is the tax added").code == 0
    assert "Unknown option" in clew("ask", "where", "-x").err


def test_known_is_a_list_of_objects_with_notes_beside_them(clew: Clew, shop: Path) -> None:
    used = clew("ask", "what calls add_tax", "--json").json
    assert [(item["kind"], item["path"]) for item in used["known"]] == [("use", "shop/basket.py")], used["known"]
    item = used["known"][0]
    assert {"number", "id", "path", "start", "end", "blob", "text", "kind", "score", "place"} <= item.keys()
    assert "commit" not in item
    commit = clew("ask", "what was the last commit", "--json").json["known"][0]
    assert (commit["kind"], len(commit["commit"]), "path" in commit) == ("commit", 40, False)
    missing = clew("ask", "where is the kubernetes operator", "--json").json
    assert missing["known"] == []
    assert missing["notes"][0].startswith("Nothing in this folder answers that.")


def test_the_code_is_reached_by_its_tools(clew: Clew, shop: Path) -> None:
    found = clew("get", "code://tools/search_code", "query=add_tax").out
    assert "shop/prices.py:6" in found
    assert "code://tools/hidden/get_symbol" in found
    shown = clew("get", "code://tools/what_calls", "symbol=add_tax").out
    assert "total" in shown


@pytest.mark.req("SYL-102", "SYL-108")
def test_a_project_tells_how_it_is_written_and_what_it_uses(clew: Clew, shop: Path) -> None:
    write(shop, "pyproject.toml", '[project]\nname = "shop"\nversion = "1"\ndependencies = ["httpx>=0.28"]\n')
    assert "snake_case" in clew("get", "code://tools/hidden/get_style_guide", "language=python").out
    assert "httpx" in clew("get", "code://tools/hidden/check_dependency", "need=http client").out


@pytest.mark.req("SYL-97")
def test_documents_are_researched_with_their_place(clew: Clew, shop: Path) -> None:
    clew("index")
    assert "README.md:" in clew("get", "reference://tools/research", "query=a basket with prices").out


def test_a_folder_without_git_is_known_as_well(clew: Clew, folder: Path, tmp_path: Path) -> None:
    for path, content in SAMPLE.items():
        write(tmp_path, path, content)
    assert clew("index", "--json").json["gathered"]["commits"] == 0
    assert clew("locate", "tax", "--json").json[0]["path"] == "shop/prices.py"
