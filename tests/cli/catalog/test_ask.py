"""`clew ask` in folders of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.catalog.workspace.repository import is_machine
from clew.config import Config
from tests.cli.catalog.conftest import resources, settings
from tests.cli.conftest import PATIENCE, Clew, start
from tests.consent import trust_all


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
    shown = clew("ask", "the kettle of the house", "--agent").out
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


@pytest.mark.req("ERN-10")
def test_an_answer_for_a_person_is_short_and_one_for_an_agent_describes_the_tools(clew: Clew, project: Path) -> None:
    shown = clew("ask", "the kettle of the house").out
    assert "\nkettle.md:1  " in f"\n{shown}"
    assert len(shown.splitlines()) < 25
    assert not any(mark in shown for mark in ("##", "**", "Handle", "Parameters"))
    whole = clew("ask", "the kettle of the house", "--agent").out
    assert "## Known" in whole
    assert "*Parameters: query (string), path (string), limit (integer); needed: query*" in whole
    assert "*Handle: `clew-" in whole


SHOP_TOOLS = '''
from clew.catalog.domain import Domain
from clew.tools import Effects, tool


@tool()
async def cancel_order(number: int) -> str:
    """Cancel an order of a customer."""
    return "done"


@tool(effects=Effects(reads_only=True))
async def show_order(number: int) -> str:
    """Show an order of a customer, with its state."""
    return "shipped"


shop = Domain(name="shop", description="Orders of customers.", tools=(cancel_order, show_order))
'''


@pytest.mark.req("ERN-10")
def test_an_answer_for_a_person_names_only_tools_that_match_the_question_and_reading_ones_first(
    clew: Clew, project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    code = tmp_path_factory.mktemp("code")
    (code / "shop_tools.py").write_text(SHOP_TOOLS)
    monkeypatch.syspath_prepend(str(code))
    settings(folder, '[catalog]\ndomains = ["shop_tools:shop"]\n')
    trust_all(folder)
    assert clew("ask", "an order of a customer").lines == [
        "shop://tools/show-order  Show an order of a customer, with its state.",
        "shop://tools/cancel-order  Cancel an order of a customer.",
    ]
    for question in ("the kettle of the house", "how to look after the violin"):
        assert "://tools/" not in clew("ask", question, "--cached").out


def test_an_empty_folder_is_called_empty(clew: Clew, folder: Path) -> None:
    result = clew("ask", "where is the kettle")
    assert (result.code, result.out) == (
        0,
        f"{folder.parent} is empty. Add files, or go to a project (cd PROJECT), and ask again.\n",
    )


@pytest.mark.parametrize(
    ("folder", "home", "is_whole"),
    [
        ("/.clew", "/home/ann", True),
        ("/home/.clew", "/home/ann", True),
        ("/home/ann/.clew", "/home/ann", True),
        ("/home/ann/shop/.clew", "/home/ann", False),
        ("/srv/.clew", "/home/ann", False),
    ],
)
def test_folders_that_hold_a_whole_machine_are_no_projects(
    monkeypatch: pytest.MonkeyPatch, folder: str, home: str, is_whole: bool
) -> None:
    monkeypatch.setenv("HOME", home)
    assert is_machine(Config(folder=Path(folder))) is is_whole


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
        (["ask", "a\udcffb"], "argument 2: is not valid UTF-8"),
    ],
)
def test_a_question_that_cannot_be_is_wrong_usage_and_leaves_no_folder(
    clew: Clew, folder: Path, arguments: list[str], said: str
) -> None:
    result = clew(*arguments)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert said in result.err
    assert not folder.exists()


def test_a_source_that_fails_does_not_keep_a_question_from_its_answer(clew: Clew, folder: Path) -> None:
    (folder.parent / "page.md").write_text("# Kettle\n\nText of the kettle.\n")
    settings(folder, "[sources.gone]\nkind = 'local'\nroot = 'gone'\n")
    result = clew("ask", "kettle", "--json")
    assert result.code == 0
    assert "was not refreshed" in result.err
    assert resources(result.json)


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


@pytest.mark.parametrize("command", [["ask", "x"], ["refresh"], ["domains"], ["mcp", "ls"], ["up", "--port", "0"]])
def test_a_folder_that_cannot_be_made_is_one_line_that_names_a_way_out(clew: Clew, command: list[str]) -> None:
    result = clew(*command, "--folder", "/proc/nobody/.clew")  # where not even root can make one
    assert (result.code, result.out, len(result.err.splitlines())) == (1, "", 1)
    assert result.err.endswith("Name a folder that you may write: --folder or CLEW_FOLDER\n")


SHELVES = """
from clew.catalog.domain import Domain, SearchConfig, Segment
from clew.tools import tool

@tool
async def lend(title: str) -> str:
    "Lend a book."
    return title

@tool(name="lend")
async def lend_again(title: str) -> str:
    "Lend a book once more."
    return "again"

good = Domain(name="good", description="Books.", tools=(lend,))
twice = Domain(name="twice", description="Books twice.", tools=(lend, lend_again))

def with_search(**given):
    return Domain(name="bad", description="Films.", tools=(lend,), search=SearchConfig(**given))

bad = {
    "negative": lambda: with_search(weights=(4, -2, 1)),
    "nan": lambda: with_search(weights=(4, float("nan"), 1)),
    "texts": lambda: with_search(weights="4,2,1"),
    "few": lambda: with_search(weights=(4, 2)),
    "joined": lambda: with_search(query_by="description,name"),
    "unknown": lambda: with_search(query_by=("title",)),
    "priority": lambda: with_search(segments=[Segment(name="s", priority=None), Segment(name="t")]),
    "limit": lambda: with_search(segments=[Segment(name="s", limit="5")]),
    "type": lambda: with_search(segments=[Segment(name="s", types=["\\ud800"])]),
    "segment": lambda: with_search(segments=["tables"]),
}
globals().update(bad)
"""
BAD = {
    "negative": "SearchConfig.weights: must be numbers between 0 and 100",
    "nan": "SearchConfig.weights: must be numbers between 0 and 100",
    "texts": "SearchConfig.weights: must be a list of numbers",
    "few": "SearchConfig.weights: has 2 numbers for 3 fields",
    "joined": "SearchConfig.query_by: must be a list of texts",
    "unknown": "SearchConfig.query_by: 'title' is not a field",
    "priority": "Segment.priority: of s must be a whole number",
    "limit": "Segment.limit: of s must be a whole number from 1 on",
    "type": "Segment.types: holds half of a surrogate pair",
    "segment": "SearchConfig.segments: must be a list of Segment",
}


@pytest.fixture
def shelves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Settings that name domains of a module."""

    def write(*names: str) -> None:
        code = folder.parent / "code"
        code.mkdir()
        (code / "shelves.py").write_text(SHELVES)
        monkeypatch.setenv("PYTHONPATH", str(code))
        monkeypatch.syspath_prepend(str(code))
        named = ", ".join(f'"shelves:{name}"' for name in names)
        settings(folder, f"[catalog]\nrepository = false\ndomains = [{named}]\n")
        trust_all(folder)

    return write


@pytest.mark.req("ERN-06")
def test_a_bad_search_configuration_leaves_out_its_domain_alone_and_is_named_in_one_line(
    clew: Clew, shelves: Callable[..., None]
) -> None:
    shelves(*BAD, "good")
    found = clew("ask", "lend a book", "--json")
    assert found.code == 0, found.err
    assert (found.code, [each["domain"] for each in found.json["sections"]]) == (0, ["good"])
    for name, told in BAD.items():
        (line,) = [line for line in found.err.splitlines() if f"shelves:{name} " in line]
        assert told in line


@pytest.mark.req("ERN-01")
def test_a_tool_that_a_domain_has_twice_is_used_once_and_told_with_both_places(
    clew: Clew, shelves: Callable[..., None]
) -> None:
    shelves("twice", "good")
    found = clew("ask", "lend a book", "--json")
    assert (found.code, sorted(each["domain"] for each in found.json["sections"])) == (0, ["good", "twice"])
    (line,) = [line for line in found.err.splitlines() if "twice" in line]
    assert "twice://tools/lend is defined twice, at shelves:5 and at shelves:10: the first is used" in line
    assert clew("get", "twice://tools/lend", "title=Moby", "--json").json["results"][0]["data"]["content"] == "Moby"
