"""Questions about places and uses in code."""

from __future__ import annotations

import re

import pytest

from clew.app import App
from clew.knowledge.code.linking import link_worker
from tests.knowledge.asking.conftest import FILES
from tests.knowledge.doors import ask, known


async def test_all_edges_are_found_while_commits_and_documents_are_read(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_worker, "WORKER_FROM", 0)  # as in a project where following values takes long
    knowledge = app.knowledge()
    (knowledge.root / "src/late.py").write_text(
        "def late():\n    pass\n\n\ndef give(what):\n    what()\n\n\ngive(late)\n"
    )
    told: list[str] = []
    gathered = await knowledge.gather(lambda done, total, what: told.append(what))
    assert "following" in told
    assert gathered.code.changed == ["src/late.py"]
    callers = await knowledge.code.dependents("src/late.py#late", edge_type="calls")
    assert [(link.node.name, link.is_guess) for link in callers] == [("give", False)]


@pytest.mark.req("SYL-89")
async def test_definitions_of_a_name_come_first(app: App) -> None:
    for question, place in [
        ("where is PlaceFactory", r"src/factory\.py:4-"),
        ("where is the class PlaceFactory defined?", r"src/factory\.py:4-"),
        ("where is Adapter", r"src/Adapter\.java:4-"),
        ("where is the class Adapter", r"src/Adapter\.java:4-"),
        ("where is PlaceFactory.base_place", r"src/factory\.py:10-"),
        ("which file defines base_place", r"src/factory\.py:10-"),
        ("where is placefactory", r"src/factory\.py:4-"),
        ("where is build", r"src/user\.py:4-"),
    ]:
        [first, *_] = await known(app, question)
        assert re.match(rf"- \[1\] {place}", first), (question, first)


async def test_a_definition_in_the_product_comes_before_one_in_tests(app: App) -> None:
    lines = await known(app, "where is Adapter")
    places = [re.sub(r"^- \[\d\] ([^:]+):(\d+).*", r"\1:\2", line) for line in lines]
    assert places[:2] == ["src/Adapter.java:4", "tests/test_factory.py:4"]


@pytest.mark.req("SYL-89")
async def test_callers_are_listed_with_the_line_of_each_call(app: App) -> None:
    for question in [
        "what calls base_place",
        "base_place callers",
        "who calls PlaceFactory.base_place?",
        "callers of base_place",
    ]:
        lines = await known(app, question)
        places = [re.match(r"- \[\d\] (\S+?):(\d+)@[0-9a-f]{10}: `([^`]+)` calls", line) for line in lines]
        found = {(place[1], place[3]) for place in places if place is not None}
        assert {("src/factory.py", "PlaceFactory.make"), ("src/user.py", "build")} <= found
        for place in filter(None, places):
            assert "base_place()" in FILES[place[1]].splitlines()[int(place[2]) - 1]
        assert places[-1] is not None
        assert places[-1][1] == "tests/test_factory.py", "tests come last"


async def test_other_uses_are_told_as_well(app: App) -> None:
    for question, line in [
        (
            "what does PlaceFactory.make call",
            r"src/factory\.py:15@\w+: `PlaceFactory.make` calls `PlaceFactory.base_place`",
        ),
        ("who inherits from PlaceFactory", r"src/user\.py:9@\w+: `SpecialFactory` inherits from `PlaceFactory`"),
        ("what imports PlaceFactory", r"src/user\.py:1@\w+: `src/user\.py` imports `PlaceFactory`"),
        ("who uses PlaceFactory", r"src/user\.py:\d+@\w+: `\S+` (?:calls|imports|inherits from) `PlaceFactory`"),
    ]:
        lines = await known(app, question)
        assert any(re.match(rf"- \[\d\] {line}", each) for each in lines), (question, lines)


async def test_a_new_call_is_in_the_next_answer(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 0.0)
    assert len(await known(app, "what calls idle")) == 2
    (app.knowledge().root / "src/late.py").write_text("from src.user import idle\n\n\ndef late():\n    idle()\n")
    assert any("`late` calls `idle`" in line for line in await known(app, "what calls idle"))


@pytest.mark.req("BEY-13")
async def test_the_test_module_of_a_rust_file_counts_as_tests(app: App) -> None:
    (app.knowledge().root / "src/parse.rs").write_text(
        "pub fn parse_kettle(text: &str) -> usize {\n    text.len()\n}\n\n#[cfg(test)]\nmod tests {\n"
        "    use super::*;\n\n"
        '    #[test]\n    fn parse_kettle_of_nothing() {\n        assert_eq!(parse_kettle(""), 0);\n    }\n}\n'
    )
    await app.knowledge().gather()
    where = (await ask(app, "where is the kettle text parsed")).known
    assert (where[0].path, where[0].start) == ("src/parse.rs", 1)
    tests = (await ask(app, "which tests cover parse_kettle")).known
    assert [(item.path, item.start) for item in tests] == [("src/parse.rs", 11)]
    outside = (await ask(app, "where is the kettle text parsed, without the tests")).known
    assert [item.start for item in outside if item.path == "src/parse.rs"] == [1]
