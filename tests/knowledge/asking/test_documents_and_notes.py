"""Questions about notes, commits and documents."""

from __future__ import annotations

import re

import pytest

from clew.app import App
from tests.knowledge.code.repositories import git
from tests.knowledge.doors import get, known, store


@pytest.mark.req("SYL-98")
async def test_notes_come_before_code_that_shares_a_word(app: App) -> None:
    await store(app, "We use three retries because the gateway drops the first connection")
    await store(app, "The user prefers tabs over spaces in TypeScript")
    await store(app, "We keep the cache in sqlite rather than postgres")
    await store(app, "The importer broke on empty files", summary_type="failure")
    for question, said in [
        ("why do we retry three times", "three retries"),
        ("what does the user prefer, tabs or spaces", "prefers tabs"),
        ("sqlite or postgres for the cache", "rather than postgres"),
        ("what was decided", "three retries"),
        ("what broke before", "The importer broke"),
    ]:
        lines = await known(app, question)
        assert any(said in line for line in (lines if question == "what was decided" else lines[:1])), (question, lines)
        assert not any("src/" in line or "tests/" in line for line in lines[:1])


@pytest.mark.req("SYL-98")
async def test_documents_answer_how_something_is_done_before_tests_that_have_the_words(app: App) -> None:
    lines = await known(app, "how do I skip a place")
    assert re.match(r"- \[1\] docs/skipping\.md:", lines[0]), lines
    assert "tests/" not in lines[0]


@pytest.mark.req("SYL-60", "SYL-64")
async def test_a_commit_without_changed_files_is_in_the_next_answer(app: App) -> None:
    question = "flumox the gribble"
    assert not any("commit" in line for line in await known(app, question))
    git(app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Flumox the gribble")
    for _ in range(2):
        assert any("Flumox the gribble" in line for line in await known(app, question))
    git(app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Flumox the gribble again")
    assert sum("Flumox the gribble" in line for line in await known(app, question)) == 2


async def test_recent_commits_are_listed_newest_first(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    root = app.knowledge().root
    for date in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(date, "2035-01-01T12:00:00+00:00")
    git(root, "commit", "-q", "--allow-empty", "-m", "Round totals: customers saw fractions of a cent")
    lines = await known(app, "what was the last commit")
    assert [re.sub(r"^- \[\d\] commit \w{10} [\d-]{10}: ", "", line) for line in lines] == [
        "Round totals: customers saw fractions of a cent · Ann",
        "begin · Ann",
    ]
    [why, *_] = await known(app, "why are totals rounded")
    assert "customers saw fractions of a cent" in why


@pytest.mark.req("SYL-96")
async def test_notes_are_found_by_their_kind_before_all_else(app: App) -> None:
    (app.knowledge().root / "docs/templates.md").write_text("# Templates\n\nTemplates broke before a reload.\n")
    git(app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Fix templates that broke on reload")
    content = "The template cache was cleared twice on reload"
    await store(app, content, summary_type="mistake", title="Template reload", outcome="Clear it once")
    await store(app, "Commit messages in the imperative", summary_type="preference")
    await store(app, "Commit messages are checked by a robot")
    for question, said in [
        ("what broke before with template reload", "cleared twice"),
        ("what mistakes did we make", "cleared twice"),
        ("what failures were noted", "cleared twice"),
        ("what do I prefer for commit messages", "imperative"),
        ("which preferences are noted", "imperative"),
        ("what are my preferences?", "imperative"),
    ]:
        lines = await known(app, question)
        assert said in lines[0], (question, lines)
        assert "what broke" in question or len(lines) == 1, (question, lines)


async def test_a_preference_in_code_is_no_note(app: App) -> None:
    await store(app, "Commit messages in the imperative", summary_type="preference")
    assert not any("imperative" in line for line in await known(app, "where are preferences stored"))


async def test_a_commit_answers_what_no_file_mentions(app: App) -> None:
    git(
        app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Choose marmalade over jam because it keeps longer"
    )
    for question in ["why marmalade", "marmalade", "why marmalade over jam", "Marmalade?"]:
        [line] = await known(app, question)
        assert re.match(r"- \[1\] commit \w{10} [\d-]{10}: Choose marmalade over jam", line), (question, line)


async def test_notes_without_a_word_of_the_question_come_after_commits_that_have_it(app: App) -> None:
    git(app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Choose marmalade over jam")
    await store(app, "Jelly is kept in the cellar")
    found = await get(app, "history://tools/search_history", query="marmalade")
    assert "marmalade" in found
    assert "Jelly" not in found or found.index("marmalade") < found.index("Jelly")
