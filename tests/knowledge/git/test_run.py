"""Git in a hostile repository: none of its programs are run, and nothing waits for them."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.errors import SourceError
from clew.knowledge.code import files
from clew.knowledge.code.file_content import find_origins
from clew.knowledge.code.files import Tree
from clew.knowledge.code.store import CodeStore
from clew.knowledge.git import run as asking
from clew.knowledge.git.commits import Commits
from clew.knowledge.git.run import GitFailed, find_head, find_objects, is_stuck, run_git, stream_git
from clew.knowledge.git.store import GitLog
from tests.knowledge.code.repositories import git, make_repository, write


@pytest.fixture(autouse=True)
def remembering_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_stuck", {})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of git that were started."""
    commands: list[str] = []
    start = subprocess.Popen

    def noted(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
        commands.append(" ".join(arguments))
        return start(arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", noted)
    return commands


def lose(root: Path, path: str) -> None:
    """Have a repository without the content of a file, and with a program that would fetch it."""
    blob = git(root, "rev-parse", f"HEAD:{path}").strip()
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    git(root, "config", "core.repositoryformatversion", "1")
    git(root, "config", "extensions.partialClone", "evil")
    git(root, "config", "remote.evil.url", str(root))
    git(root, "config", "remote.evil.promisor", "true")
    git(root, "config", "protocol.file.allow", "always")
    git(root, "config", "remote.evil.uploadpack", f"touch {root.parent}/ran; git-upload-pack")


def test_listing_files_runs_no_program_that_would_fetch(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a", "sub/.gitignore": "*.o\n", "sub/b.py": "b"})
    git(root, "update-index", "--skip-worktree", "sub/.gitignore")
    (root / "sub/.gitignore").unlink()
    lose(root, "sub/.gitignore")
    write(root, "sub/new.py", "c")
    assert Tree(root).look().keys() == {"a.py", "sub/b.py", "sub/new.py"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("variable", ["GIT_ALLOW_PROTOCOL", "GIT_NO_LAZY_FETCH"])
def test_each_of_two_locks_keeps_a_content_from_being_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Older versions of git know only one of them."""
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    lose(root, "a.py")
    only = {name: value for name, value in asking.git_environment().items() if name != variable}
    monkeypatch.setattr(asking, "git_environment", lambda: only)
    with pytest.raises(GitFailed):
        run_git(root, ["cat-file", "blob", "HEAD:a.py"])
    assert not (tmp_path / "ran").exists()


def test_a_pipe_among_the_settings_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[str]
) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a", "b.log": "b"})
    write(root, ".gitignore", "*.log\n")
    os.mkfifo(tmp_path / "pipe")
    git(root, "config", "include.path", str(tmp_path / "pipe"))
    monkeypatch.setattr(files, "GIT_SECONDS", 0.3)
    assert Tree(root).look().keys() == {"a.py", ".gitignore"}
    count = len(started)
    assert count
    assert Tree(root).look().keys() == {"a.py", ".gitignore"}
    assert Tree(root).choose(["a.py", "b.log"]).keys() == {"a.py"}
    assert len(started) == count


def test_a_pipe_in_the_place_of_rules_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    write(root, "sub/new.py", "n")
    os.mkfifo(root / "sub/.gitignore")
    monkeypatch.setattr(files, "GIT_SECONDS", 0.3)
    assert Tree(root).look().keys() == {"a.py", "sub/new.py"}
    assert is_stuck(os.path.realpath(root), "ls-files")


def test_quick_questions_are_not_asked_again_where_git_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[str]
) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    assert find_head(root)
    os.mkfifo(tmp_path / "pipe")
    git(root, "config", "include.path", str(tmp_path / "pipe"))
    monkeypatch.setattr(asking, "QUICK_SECONDS", 0.3)
    assert find_head(root) is None
    del started[:]
    assert find_head(root) is None
    with pytest.raises(SourceError, match="did not answer recently"):
        list(stream_git(root, ["log"]))
    assert not started


def test_a_log_without_output_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    os.mkfifo(tmp_path / "pipe")
    git(root, "config", "include.path", str(tmp_path / "pipe"))
    monkeypatch.setattr(asking, "LOG_SECONDS", 0.3)
    with pytest.raises(SourceError, match="took over"):
        list(stream_git(root, ["log"]))


def be_git(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a program stand in the place of git."""
    write(folder, "bin/git", f"#!/bin/sh\n{script}\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("printed", [r"a\000b", r"\377\376", "", "a/b/c", "0123456789", r"\n\n\n"])
def test_a_git_that_prints_nonsense_is_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a\n"})
    be_git(tmp_path, f"printf '{printed}'", monkeypatch)
    assert find_head(root) is None
    with pytest.raises(SourceError):
        find_objects(root)
    with closing(CodeStore(tmp_path / "code.db")) as store:
        assert GitLog(store, root).refresh().head is None
    with pytest.raises(SourceError):
        find_origins(root, "a.py", 1, 1)


async def test_a_git_that_prints_nonsense_leaves_no_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a\n"})
    be_git(tmp_path, r"printf 'a\000b\377'", monkeypatch)
    with closing(CodeStore(tmp_path / "code.db")) as store:
        commits = Commits(store, root, lambda: None)
        await commits.catch_up()
        await commits.read()
        assert await commits.count() == 0


def test_an_answer_without_end_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_git(tmp_path, "exec yes", monkeypatch)
    monkeypatch.setattr(asking, "MAX_ANSWER", 100_000)
    with pytest.raises(SourceError, match="over 100,000 bytes"):
        run_git(tmp_path, ["rev-list"])
    monkeypatch.setattr(asking, "LOG_SECONDS", 0.3)
    with pytest.raises(SourceError, match="took over"):
        list(stream_git(tmp_path, ["log"]))


def test_a_stream_with_a_time_limit_ends_though_pieces_keep_coming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_git(tmp_path, r"while true; do printf 'a\000'; done", monkeypatch)
    with pytest.raises(SourceError, match="took over"):
        list(stream_git(tmp_path, ["log"], timeout=0.3))
    assert not is_stuck(tmp_path, "log")


def test_the_beginning_of_an_endless_piece_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_git(tmp_path, r"head -c 3000000 /dev/zero | tr '\000' a; printf '\000b\000'; printf c", monkeypatch)
    pieces = list(stream_git(tmp_path, ["log"]))
    assert [len(piece) for piece in pieces] == [asking.MAX_PIECE, 1, 1]
