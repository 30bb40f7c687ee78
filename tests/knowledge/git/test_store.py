"""The stored log of real repositories."""

from __future__ import annotations

import threading
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from clew.errors import SourceError
from clew.knowledge.code.store import CodeStore
from clew.knowledge.git import store as git_log
from clew.knowledge.git.log import MAX_BODY, GitCommit, Touched, parse_log
from clew.knowledge.git.run import stream_git
from clew.knowledge.git.store import CommitFilter, GitLog
from tests.knowledge.git.repository import Repository


@pytest.fixture
def log(store: CodeStore, repository: Repository) -> GitLog:
    return GitLog(store, repository.root)


def commits_of(log: GitLog, path: str) -> list[GitCommit]:
    return log.select(CommitFilter(paths=tuple(log.names_of(path))))[0]


def subjects(log: GitLog, path: str) -> list[str]:
    return [commit.subject for commit in commits_of(log, path)]


@pytest.mark.req("O6")
def test_commits_are_linked_to_the_files_they_touched(log: GitLog, repository: Repository) -> None:
    first = repository.commit("Begin", {"a.py": "1\n", "b.py": "1\n"})
    repository.commit("Change a", {"a.py": "2\n"})
    (repository.root / "b.py").unlink()
    repository.commit("Drop b")
    assert log.refresh().added == 3

    assert subjects(log, "a.py") == ["Change a", "Begin"]
    assert subjects(log, "b.py") == ["Drop b", "Begin"]
    found = log.find(first[:10])
    assert found is not None
    assert (found.sha, found.author, found.parents) == (first, "A Writer", ())
    assert found.files == (Touched("a.py"), Touched("b.py"))
    assert commits_of(log, "b.py")[0].files == (Touched("b.py"),)
    assert commits_of(log, "nowhere.py") == []


def test_a_file_is_followed_through_its_names(log: GitLog, repository: Repository) -> None:
    repository.commit("Write", {"old name.py": "one\ntwo\nthree\nfour\n"})
    repository.git("mv", "old name.py", "größe.py")
    repository.commit("Rename")
    repository.commit("Edit", {"größe.py": "one\ntwo\nthree\nfour\nfive\n"})
    log.refresh()
    assert log.names_of("größe.py") == ["größe.py", "old name.py"]
    assert subjects(log, "größe.py") == ["Edit", "Rename", "Write"]


def test_only_what_is_new_is_read(log: GitLog, repository: Repository) -> None:
    repository.commit("One", {"a": "1"})
    assert (log.refresh().added, log.refresh().added) == (1, 0)
    repository.commit("Two", {"a": "2"})
    assert (log.refresh().added, log.count()) == (1, 2)


def test_history_that_was_rewritten_is_followed(log: GitLog, repository: Repository) -> None:
    repository.commit("One", {"a": "1"})
    wrong = repository.commit("Wrogn", {"a": "2"})
    log.refresh()
    repository.git("commit", "-q", "--amend", "-m", "Right")

    done = log.refresh()
    assert (done.added, done.removed) == (1, 1)
    assert subjects(log, "a") == ["Right", "One"]
    assert log.find(wrong) is None


def test_history_whose_old_end_is_gone_is_read_anew(log: GitLog, repository: Repository) -> None:
    repository.commit("One", {"a": "1"})
    repository.commit("Two", {"a": "2"})
    log.refresh()
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    repository.commit("Other", {"a": "3"})

    log.refresh()
    assert subjects(log, "a") == ["Other", "One"]


def test_branches_are_followed_there_and_back(log: GitLog, repository: Repository) -> None:
    repository.commit("Base", {"a": "1"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("On the side", {"a": "2"})
    log.refresh()
    repository.git("checkout", "-q", "main")
    log.refresh()
    assert subjects(log, "a") == ["Base"]
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    log.refresh()
    assert subjects(log, "a") == ["On the side", "Base"]
    assert log.count() == 3


def test_no_more_than_the_newest_commits_are_read(log: GitLog, repository: Repository) -> None:
    for at in range(6):
        repository.commit(f"Commit {at}", {"a": str(at)})
    log.refresh(limit=4)
    assert subjects(log, "a") == [f"Commit {at}" for at in (5, 4, 3, 2)]


def test_a_folder_without_history_has_none(tmp_path: Path, store: CodeStore, repository: Repository) -> None:
    assert GitLog(store, tmp_path).refresh().head is None
    assert GitLog(store, repository.root).refresh().head is None


def test_history_that_goes_away_is_forgotten(log: GitLog, repository: Repository) -> None:
    repository.commit("One", {"a": "1"})
    log.refresh()
    repository.git("checkout", "-q", "--orphan", "empty")
    assert log.refresh().removed == 1
    assert log.count() == 0


def test_addresses_and_keys_are_left_out(log: GitLog, repository: Repository) -> None:
    key = "ghp_" + "a1B2" * 9
    body = f"See {key} by mail to x.y@example.org\n\nCo-authored-by: B Helper <helper@example.org>\nDecision: keep it"
    repository.commit(f"Add it\n\n{body}", {"a": "1"})
    log.refresh()
    [commit] = commits_of(log, "a")
    told = str(commit)
    assert key not in told
    assert "example.org" not in told


def test_hostile_names_and_messages_are_only_text(log: GitLog, repository: Repository) -> None:
    odd = {"\x01deadbeef": "1", ":100644 100644 0 0 M": "1", "-n": "1", "a\tb": "1", "a\nb": "1"}
    repository.commit("\x01fake\n\n:100644 M\n\x01again", odd)
    repository.commit("Next", {"plain": "1"})
    log.refresh()
    assert log.count() == 2
    assert {file.path for file in log.select(CommitFilter())[0][1].files} == set(odd)
    assert subjects(log, "-n") == ["fake"]


def test_programs_in_the_git_configuration_of_a_repository_are_not_run(
    log: GitLog, repository: Repository, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    repository.commit("Begin", {".gitattributes": "* diff=evil filter=evil\n", "a.py": "1\n"})
    for name in ("diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "core.pager", "filter.evil.clean"):
        repository.git("config", name, str(trap))
    repository.git("config", "diff.external", str(trap))
    repository.write({"a.py": "0\n1\n"})

    log.refresh()
    assert subjects(log, "a.py") == ["Begin"]
    assert not (tmp_path / "sprung").exists()


def test_paths_are_told_from_the_folder_that_was_opened(store: CodeStore, repository: Repository) -> None:
    repository.commit("Begin", {"part/a.py": "1", "other/b.py": "1"})
    log = GitLog(store, repository.root / "part")
    log.refresh()
    assert subjects(log, "a.py") == ["Begin"]
    assert commits_of(log, "a.py")[0].files == (Touched("a.py"),)


def test_settings_of_the_user_change_nothing(log: GitLog, repository: Repository) -> None:
    for name, value in (
        ("log.showRoot", "false"),
        ("diff.relative", "true"),
        ("color.ui", "always"),
        ("diff.renames", "false"),
        ("log.decorate", "full"),
        ("i18n.logOutputEncoding", "latin1"),
    ):
        repository.git("config", name, value)
    repository.commit("Größe", {"a.py": "1\n2\n3\n"})
    repository.git("mv", "a.py", "b.py")
    repository.commit("Move")
    log.refresh()
    assert subjects(log, "b.py") == ["Move", "Größe"]


def test_a_partial_clone_fetches_no_contents(store: CodeStore, repository: Repository, tmp_path: Path) -> None:
    repository.commit("Write", {"a.py": "one\ntwo\nthree\n"})
    repository.git("mv", "a.py", "b.py")
    repository.commit("Rename")
    repository.commit("Edit", {"b.py": "one\ntwo\nthree\nfour\n", "c.py": "1"})
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git(
        "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repository.root}", str(tmp_path / "part")
    )
    log = GitLog(store, tmp_path / "part")
    assert log.refresh().added == 3
    assert subjects(log, "b.py") == ["Edit", "Rename", "Write"]


def test_a_refresh_that_was_broken_off_is_completed(
    log: GitLog, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(4):
        repository.commit(f"Commit {at}", {"a": str(at)})
    monkeypatch.setattr("clew.knowledge.git.store._BATCH", 1)
    written = []

    def stop(*given: object) -> int:
        written.append(given)
        if len(written) == 3:
            raise KeyboardInterrupt
        return write(*given)  # type: ignore[arg-type]  # they are passed on

    write = git_log._write
    monkeypatch.setattr(git_log, "_write", stop)
    with pytest.raises(KeyboardInterrupt):
        log.refresh()
    assert log.head is None
    monkeypatch.setattr(git_log, "_write", write)
    log.refresh()
    assert subjects(log, "a") == [f"Commit {at}" for at in (3, 2, 1, 0)]


def test_threads_share_a_log(log: GitLog, repository: Repository) -> None:
    repository.commit("One", {"a": "1"})
    log.refresh()
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.append(subjects(log, "a"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [["One"]] * 4


def test_a_password_in_an_address_is_no_part_of_a_commit(log: GitLog, repository: Repository) -> None:
    address = "https://adm:S3cr3t!x9@db.example.com/y"
    repository.commit(f"Move to {address}\n\nNot postgres://svc:pa$s#Word%21x@pg.example.com/z\n\nSee-also: {address}")
    log.refresh()
    [commit] = log.select(CommitFilter())[0]
    shown = "https://adm:[masked]@db.example.com/y"
    assert commit.subject == f"Move to {shown}"
    assert commit.body.startswith("Not postgres://svc:[masked]@pg.example.com/z")


def test_a_key_that_is_cut_off_is_not_shown_in_part(log: GitLog, repository: Repository) -> None:
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{'A' * 5_000}\n-----END RSA PRIVATE KEY-----"
    address = f"https://adm:S3cr3t{'x' * 300}@db.example.com/y"
    gap = MAX_BODY + 1_000 - len(key) - 100
    repository.commit(f"Add it\n\n{key}{'word ' * (gap // 5)} {address} and more {'word ' * 1_000}")
    log.refresh()
    [commit] = log.select(CommitFilter())[0]
    assert "S3cr3t" not in commit.body


@pytest.mark.parametrize(
    ("seconds", "year"),
    [
        ("99999999999999", 9999),
        ("253402300800", 9999),
        ("18446744073709551615", 9999),
        ("-99999999999", 1970),
        ("abc", 1970),
        ("", 1970),
    ],
)
def test_a_commit_of_an_impossible_time_is_read(
    log: GitLog, repository: Repository, tmp_path: Path, seconds: str, year: int
) -> None:
    before = repository.commit("Before", {"a": "1"})
    who = f"A Writer <writer@example.org> {seconds} +0000"
    tree = repository.git("write-tree")
    (tmp_path / "raw").write_text(f"tree {tree}\nparent {before}\nauthor {who}\ncommitter {who}\n\nStrange\n")
    sha = repository.git("hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "raw"))
    repository.git("reset", "-q", "--hard", sha)
    assert log.refresh().added == 2
    found = log.find(sha)
    assert found is not None
    assert (found.subject, found.at.year) == ("Strange", year)
    assert found.at.astimezone(timezone(timedelta(hours=14))) == found.at


def test_an_error_of_git_is_told_in_our_words(repository: Repository) -> None:
    with pytest.raises(SourceError, match="git: log ended with 128") as failed:
        list(stream_git(repository.root, ["log", "no-such-branch"]))
    assert "no-such-branch" not in str(failed.value)


def test_a_log_that_breaks_off_gives_what_it_has() -> None:
    assert list(parse_log([])) == []
    [commit] = parse_log([b"\x01abc", b"", b"0", b"n", b"subject"])
    assert (commit.sha, commit.subject, commit.files) == ("abc", "subject", ())
