"""Questions about the past: periods, files, folders, symbols, authors, commits and versions."""

from __future__ import annotations

import re

import pytest

from clew.app import App
from tests.knowledge.answering.shop import FILES, Shop
from tests.knowledge.doors import ask, known

pytestmark = pytest.mark.asyncio(loop_scope="module")

BEGIN, DOUBLE, REPORTS, MARMALADE = "Begin with a pool", "Double the waiting time", "Add nightly", "Choose marmalade"


async def commits(app: App, question: str) -> list[str]:
    """The commits that an answer cites, by the beginning of their subject."""
    answer = await ask(app, question)
    subjects = (BEGIN, DOUBLE, REPORTS, MARMALADE)
    return [
        next((each for each in subjects if item.text.startswith(each)), item.text)
        for item in answer.known
        if item.kind == "commit"
    ]


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what changed last week", [MARMALADE]),
        ("what changed last month", [REPORTS]),
        ("what changed in August 2026", [DOUBLE]),
        ("what changed since 2026-08-01", [MARMALADE, REPORTS, DOUBLE]),
        ("what happened between 2026-06-01 and 2026-08-04", [DOUBLE, BEGIN]),
        ("which commits were made in the last two weeks", [MARMALADE]),
        ("what changed in shop/retry.py since July 2026", [MARMALADE, DOUBLE]),
        ("what changed in report.py since 2026-10-01", [REPORTS]),
        ("what changed in shop/ last month", [REPORTS]),
        ("what changed in `backoff` between July 2026 and September 2026", [DOUBLE]),
        ("what changed in write_report since June 2026", [REPORTS]),
        ("what did Bo do since November 2026", [MARMALADE]),
    ],
)
async def test_a_period_bounds_the_commits_newest_first(app: App, question: str, expected: list[str]) -> None:
    assert await commits(app, question) == expected


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("which commits touched shop/retry.py", [MARMALADE, DOUBLE, BEGIN]),
        ("history of shop/retry.py", [MARMALADE, DOUBLE, BEGIN]),
        ("who wrote shop/retry.py", [BEGIN, DOUBLE, MARMALADE]),
        ("when was shop/jobs/report.py last changed?", [REPORTS]),
        ("commits by Ada Byron", [DOUBLE, BEGIN]),
        ("what changed recently", [MARMALADE, REPORTS, DOUBLE, BEGIN]),
    ],
)
async def test_commits_are_found_by_file_and_author(app: App, question: str, expected: list[str]) -> None:
    assert await commits(app, question) == expected


async def test_the_last_change_of_a_file_comes_first(app: App) -> None:
    assert (await commits(app, "who changed shop/retry.py last"))[0] == MARMALADE


async def test_a_commit_is_cited_with_its_id_day_and_author_and_never_an_address(app: App) -> None:
    [item] = (await ask(app, "when was shop/jobs/report.py last changed?")).known
    assert re.fullmatch(r"[0-9a-f]{40}", item.commit)
    assert (item.path, item.blob) == ("", "")
    assert item.place == f"commit {item.commit[:10]} 2026-10-20"
    assert item.text == "Add nightly reports · Bo Lind"
    assert "example.org" not in "".join(await known(app, "which commits touched shop/retry.py"))


async def test_a_period_without_commits_cites_the_last_before_it(app: App) -> None:
    note, commit = await known(app, "what changed in September 2026")
    assert note == "*No commit from 2026-09-01 to 2026-09-30: the last before it.*"
    assert DOUBLE in commit
    assert await known(app, "what changed in 2019") == ["*No commit from 2019-01-01 to 2019-12-31.*"]


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("what changed in shop/nowhere.py", "No commit here touched `shop/nowhere.py`."),
        ("what changed in 9.9.9", "No changelog and no tag here has 9.9.9."),
    ],
)
async def test_an_answer_says_what_has_no_history(app: App, question: str, note: str) -> None:
    answer = await ask(app, question)
    assert (answer.known, answer.notes) == ([], [note])


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("how many commits were made in 2026", "4 commits from 2026-01-01 to 2026-12-31."),
        ("how many commits were made by Ada Byron", "2 commits by `Ada Byron`."),
    ],
)
async def test_commits_are_counted(app: App, question: str, note: str) -> None:
    assert (await ask(app, question)).notes == [note]


@pytest.mark.req("SYL-98")
async def test_a_commit_is_found_by_its_id(app: App, shop: Shop) -> None:
    for question in (f"show commit {shop.head[:10]}", f"what did {shop.head} change"):
        [item] = (await ask(app, question)).known
        assert item.commit == shop.head


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what was removed in 2.1.0", "Removed the `legacy_invoice` command. · 2.1.0"),
        ("what about the whistle in 2.1 changed", "Added a whistle to kettles. · 2.1.0"),
        ("changelog of v2.0.1", "Fixed the spout that dripped. · 2.0.1, 2026-03-01"),
        ("which version fixed the spout", "Fixed the spout that dripped. · 2.0.1, 2026-03-01"),
        ("which version introduced the whistle", "Added a whistle to kettles. · 2.1.0"),
        ("what is new in version 3.0.0", "Pots are painted. · 3.0.0"),
    ],
)
async def test_changes_of_a_version_are_read_from_changelogs_of_any_usual_name(
    app: App, question: str, first: str
) -> None:
    item = (await ask(app, question)).known[0]
    assert (item.kind, item.text) == ("change", first)
    assert first[:12] in FILES[item.path].splitlines()[item.start - 1].replace("``", "`")


async def test_all_changes_of_a_version_are_listed(app: App) -> None:
    answer = await ask(app, "what changed in 2.1.0")
    assert {item.path for item in answer.known} == {"docs/news.rst"}
    assert [item.start for item in answer.known] == [7, 9, 10]


async def test_a_version_without_a_changelog_has_the_commits_of_its_tag(app: App) -> None:
    answer = await ask(app, "what changed in v5.1.0")
    assert answer.notes == ["No changelog has 5.1.0; these are the commits of the tag `v5.1.0`."]
    assert await commits(app, "what changed in v5.1.0") == [MARMALADE, REPORTS]


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    "question", ["why did we choose marmalade", "why marmalade", "why was marmalade chosen over jam"]
)
async def test_a_reason_that_only_a_commit_gives_is_cited_from_it(app: App, question: str) -> None:
    assert (await commits(app, question))[0] == MARMALADE


async def test_a_commit_gives_the_reason_next_to_the_code(app: App) -> None:
    found = (await ask(app, "why is the waiting time doubled")).known[:3]
    assert any(item.kind == "commit" and "The gateway drops the first connection" in item.text for item in found)


async def test_the_author_of_a_change_is_cited(app: App) -> None:
    assert (await ask(app, "who added nightly reports")).known[0].text == "Add nightly reports · Bo Lind"


@pytest.mark.parametrize("question", ["where is ConnectionPool", "what calls backoff", "how does backoff work"])
async def test_questions_about_code_are_not_answered_with_commits(app: App, question: str) -> None:
    answer = await ask(app, question)
    assert "commit" not in {item.kind for item in answer.known[:1]}
    assert answer.known[0].path.startswith("shop/")


@pytest.mark.req("BEY-13")
@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("how many commits by Nobody", "No commit here is by `Nobody`."),
        ("what did Zebedee change this year", "No commit here is by `Zebedee`."),
        ("who last changed lib/nope", "No commit here touched `lib/nope`."),
        ("how many commits this year touched nope.py", "No commit here touched `nope.py`."),
        ("how many commits by `**run**` Zz", "commits"),
    ],
)
async def test_an_unknown_author_or_path_is_named_and_nothing_else_answers(app: App, question: str, note: str) -> None:
    answer = await ask(app, question)
    assert any(note in each for each in answer.notes), answer.notes
    if note != "commits":
        assert answer.known == []


async def test_commits_of_a_file_are_counted(app: App) -> None:
    assert any(
        note.startswith("3 commits") for note in (await ask(app, "how many commits touched shop/retry.py")).notes
    )


@pytest.mark.parametrize(
    "question",
    ["why was backoff doubled in shop/retry.py", "when was CHANGELOG.md split", "who renamed report.py and why"],
)
async def test_a_question_about_the_past_of_a_named_file_gets_an_answer(app: App, question: str) -> None:
    answer = await ask(app, question)
    assert answer.known or answer.notes


@pytest.mark.req("BEY-13")
async def test_which_version_added_something_names_the_first_tag_with_its_commit(app: App) -> None:
    answer = await ask(app, "which version added nightly reports")
    assert answer.known[0].text.startswith(REPORTS)
    assert any(note.startswith("`v5.1.0` is the first version with commit") for note in answer.notes), answer.notes
