"""Commits as answers: found by their messages, in step with the repository."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.errors import NotFound
from clew.knowledge.code.store import CodeStore
from clew.knowledge.evidence.naming import citation_of
from clew.knowledge.git.commits import Commits
from clew.knowledge.git.store import GitLog
from clew.knowledge.history.shelf import asks_of_past
from tests.knowledge.git.repository import Repository


@pytest.fixture
def told(repository: Repository) -> list[str]:
    return [
        repository.commit("Start", {"a.py": "x = 1\n"}),
        repository.commit("Drop nose\n\nINC-42: nobody uses it.", {"a.py": "x = 2\n"}),
        repository.commit("Add a kettle (#77)", {"a.py": "x = 3\n"}),
    ]


async def subjects(commits: Commits, query: str, limit: int = 10) -> list[str]:
    return [each.node.name for each in await commits.search(query, limit=limit)]


async def test_a_name_of_several_words_is_found_as_it_is_written(store: CodeStore, repository: Repository) -> None:
    repository.commit("Add OnFinalize method (#1788)", {"a.py": "x = 1\n"})
    repository.commit("Finalize the text of the manual", {"a.py": "x = 2\n"})
    commits = Commits(store, repository.root, lambda: None)
    await commits.read()
    assert (await subjects(commits, "why was OnFinalize added"))[:1] == ["Add OnFinalize method (#1788)"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("why was nose removed", ["Drop nose"]),
        ("INC-42", ["Drop nose"]),
        ("inc-421", []),
        ("#77", ["Add a kettle (#77)"]),
        ("which commit introduced the kettle", ["Add a kettle (#77)"]),
        ("which commit", []),
        ("", []),
        ('nose" OR *', ["Drop nose"]),
        ("кettle 猫 NEAR(", []),
        ("nose " * 5_000, ["Drop nose"]),
    ],
)
async def test_commits_are_found_by_what_they_say(
    store: CodeStore, repository: Repository, told: list[str], query: str, found: list[str]
) -> None:
    commits = Commits(store, repository.root, lambda: None)
    await commits.read()
    assert await subjects(commits, query) == found


async def test_a_commit_is_named_and_cited_by_its_beginning(
    store: CodeStore, repository: Repository, told: list[str]
) -> None:
    commits = Commits(store, repository.root, lambda: None)
    await commits.read()
    [only] = await commits.search(f"what is {told[1][:9]}")
    assert only.similarity == 1
    assert citation_of(only.node) == f"commit {told[1][:10]} {only.node.at:%Y-%m-%d}"
    assert commits.get(only.node.id) == only.node
    with pytest.raises(NotFound):
        commits.get("commit:0000000")


async def test_some_may_be_left_out_and_older_ones_too(
    store: CodeStore, repository: Repository, told: list[str]
) -> None:
    commits = Commits(store, repository.root, lambda: None)
    await commits.read()
    assert await commits.search("nose", exclude=[f"commit:{told[1]}"]) == []
    assert await commits.search("nose", since=datetime(2099, 1, 1, tzinfo=UTC)) == []


async def test_what_was_committed_since_is_in_the_next_answer(
    store: CodeStore, repository: Repository, told: list[str]
) -> None:
    noticed: list[bool] = []
    commits = Commits(store, repository.root, lambda: noticed.append(True))
    await commits.catch_up()
    repository.commit("Sell teapots", {"a.py": "x = 4\n"})
    await commits.catch_up()
    assert await subjects(commits, "teapots") == ["Sell teapots"]
    repository.git("reset", "-q", "--hard", told[1])
    await commits.catch_up()
    assert await subjects(commits, "teapots") == []
    assert noticed == [True] * 3


@pytest.mark.parametrize("is_beside", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
async def test_commits_are_noticed_where_git_keeps_no_log(
    store: CodeStore, repository: Repository, told: list[str], tmp_path: Path, is_beside: bool, is_packed: bool
) -> None:
    repository.git("config", "core.logAllRefUpdates", "false")
    shutil.rmtree(repository.root / ".git/logs")
    root = tmp_path / "beside" if is_beside else repository.root
    if is_beside:
        repository.git("worktree", "add", "-q", "-b", "side", str(root))
    commits = Commits(store, root, lambda: None)
    await commits.catch_up()
    for at in range(2):
        repository.git("-C", str(root), "commit", "-q", "--allow-empty", "-m", f"Sell teapots {at}")
        if is_packed:
            repository.git("pack-refs", "--all")
        await commits.catch_up()
        assert f"Sell teapots {at}" in await subjects(commits, "teapots")


@pytest.mark.parametrize("head", ["ref: refs/../../outside", "ref: refs/heads/\0", "x" * 10_000, ""])
async def test_a_head_that_is_none_does_no_harm(
    store: CodeStore, repository: Repository, told: list[str], head: str
) -> None:
    commits = Commits(store, repository.root, lambda: None)
    await commits.catch_up()
    repository.write({".git/HEAD": head})
    await commits.catch_up()
    assert await commits.count() == 0


async def test_a_long_history_is_not_read_while_somebody_waits(
    store: CodeStore, repository: Repository, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.knowledge.git.commits.QUICK", 2)
    commits = Commits(store, repository.root, lambda: None)
    await commits.catch_up()
    assert await commits.count() == 0
    await commits.read()
    repository.commit("Sell teapots", {"a.py": "x = 4\n"})
    later = Commits(store, repository.root, lambda: None)
    await later.catch_up()
    assert await subjects(later, "teapots") == ["Sell teapots"]


async def test_commits_that_were_read_before_there_was_an_index_are_found(
    store: CodeStore, repository: Repository, told: list[str]
) -> None:
    GitLog(store, repository.root).refresh()
    with store.writing() as sql:
        sql.execute("DROP TRIGGER git_words_added; DROP TRIGGER git_words_gone; DROP TABLE git_words")
    assert await subjects(Commits(store, repository.root, lambda: None), "nose") == ["Drop nose"]


async def test_a_folder_without_git_has_no_commits(store: CodeStore, repository: Repository) -> None:
    commits = Commits(store, repository.root.parent, lambda: None)
    await commits.catch_up()
    assert (await commits.read()).head is None
    assert await subjects(commits, "why was nose removed") == []


@pytest.mark.parametrize(
    ("question", "is_past"),
    [
        ("why was nose support removed", True),
        ("what broke before in assertion rewriting", True),
        ("which commit added the retry", True),
        ("INC-42", True),
        ("what is 3bf2bc55b", True),
        ("where is backoff", False),
        ("how does the parser work", False),
        ("which linter is used here", False),
    ],
)
def test_questions_about_the_past_are_told_from_others(question: str, is_past: bool) -> None:
    assert asks_of_past(question) is is_past
