"""Commits as answers: found by their messages, in step with the repository."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clew.knowledge.code.store import CodeStore
from clew.knowledge.evidence.trust import citation_of
from clew.knowledge.git.commits import Commits
from clew.knowledge.git.log import GitCommit, read_text_commits
from clew.knowledge.git.store import CommitFilter
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


async def test_some_may_be_left_out_and_older_ones_too(
    store: CodeStore, repository: Repository, told: list[str]
) -> None:
    commits = Commits(store, repository.root, lambda: None)
    await commits.read()
    assert await commits.search("nose", exclude=[f"commit:{told[1]}"]) == []
    assert await commits.search("nose", since=datetime(2099, 1, 1, tzinfo=UTC)) == []


async def test_new_commits_are_in_the_next_answer(store: CodeStore, repository: Repository, told: list[str]) -> None:
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


async def test_a_folder_without_git_has_no_commits(store: CodeStore, repository: Repository) -> None:
    commits = Commits(store, repository.root.parent, lambda: None)
    await commits.catch_up()
    assert (await commits.read()).head is None
    assert await subjects(commits, "why was nose removed") == []


# -- by path, line, text and version ---------------------------------------------------------------------------


@pytest.fixture
def shop(repository: Repository) -> list[str]:
    shas = [
        repository.commit("Add prices", {"shop/prices.py": "A = 1\n\n\ndef total():\n    return A\n", "b.py": "1\n"}),
        repository.commit("Raise A in total", {"shop/prices.py": "A = 2\n\n\ndef total():\n    return A\n"}),
        repository.commit("Add old_total", {"shop/prices.py": "A = 2\n\n\ndef total():\n    return old_total() + A\n"}),
        repository.commit("Change b", {"b.py": "2\n"}),
    ]
    repository.git("tag", "v1.0", shas[0])
    repository.git("tag", "v1.1", shas[2])
    return shas


@pytest.fixture
async def commits(store: CodeStore, repository: Repository, shop: list[str]) -> Commits:
    found = Commits(store, repository.root, lambda: None)
    await found.read()
    return found


def names(found: Sequence[GitCommit]) -> list[str]:
    return [commit.subject for commit in found]


async def test_the_newest_commits_of_some_paths(commits: Commits) -> None:
    paths = tuple(await commits.paths_of("shop"))
    found, total = await commits.select(CommitFilter(paths=paths), 2)
    assert (names(found), total) == (["Add old_total", "Raise A in total"], 3)
    both, total = await commits.select(CommitFilter(paths=(*paths, "b.py")), 1)
    assert (names(both), total) == (["Change b"], 4)
    oldest, _ = await commits.select(CommitFilter(paths=paths), 1, oldest_first=True)
    assert names(oldest) == ["Add prices"]


async def test_commits_between_two_moments(commits: Commits) -> None:
    [first, second, third, _], _ = await commits.select(CommitFilter(), 10, oldest_first=True)
    found, _ = await commits.select(CommitFilter(since=second.at, until=third.at + timedelta(seconds=1)))
    assert names(found) == ["Add old_total", "Raise A in total"]
    assert names((await commits.select(CommitFilter(until=second.at)))[0]) == [first.subject]


async def test_commits_between_two_versions_and_since_one(commits: Commits) -> None:
    between = await commits.between("1.0", "1.1")
    assert between is not None
    assert (between.tag, names(between.commits)) == ("v1.1", ["Add old_total", "Raise A in total"])
    assert await commits.between("", "1.1") == between
    since = await commits.between("v1.1")
    assert since is not None
    assert (since.tag, names(since.commits), since.total) == ("", ["Change b"], 1)
    assert await commits.between("1.0", "9.9") is None
    assert await commits.between("main") is None


async def test_commits_that_changed_lines(commits: Commits) -> None:
    assert names(await commits.changing_lines("shop/prices.py", 4, 5)) == ["Add old_total", "Add prices"]
    assert names(await commits.changing_lines("shop/prices.py", 1, 1, limit=1)) == ["Raise A in total"]
    assert await commits.changing_lines("shop/prices.py", 90, 99) == []
    assert await commits.changing_lines("nowhere.py", 1, 1) == []


async def test_commits_that_added_or_removed_a_name(commits: Commits, repository: Repository) -> None:
    assert names(await commits.changing_text("old_total")) == ["Add old_total"]
    repository.commit("Simplify", {"shop/prices.py": "A = 2\n\n\ndef total():\n    return A\n"})
    assert names(await commits.changing_text("old_total")) == ["Simplify", "Add old_total"]
    assert names(await commits.changing_text("old_total", limit=1, path="shop/prices.py")) == ["Simplify"]
    assert await commits.changing_text("old_total", path="b.py") == []
    assert await commits.changing_text("--output=x") == []
    assert await commits.changing_text("") == []
    assert not (repository.root / "x").exists()


def test_a_search_for_a_text_that_takes_too_long_gives_nothing(repository: Repository, shop: list[str]) -> None:
    assert read_text_commits(repository.root, "old_total", timeout=0.000_001) == []
    assert names(read_text_commits(repository.root, "old_total")) == ["Add old_total"]


async def test_a_folder_without_git_has_no_changes_of_lines_or_texts(store: CodeStore, tmp_path: Path) -> None:
    commits = Commits(store, tmp_path, lambda: None)
    assert await commits.changing_lines("a.py", 1, 1) == []
    assert await commits.changing_text("a") == []
    assert await commits.between("1.0") is None
