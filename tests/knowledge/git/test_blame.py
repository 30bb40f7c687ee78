"""The commit of a line, also in repositories that try to fake it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from clew.errors import InvalidInput, NotFound, SourceError
from clew.knowledge.code.file_content import find_origins
from clew.knowledge.git.blame import read_line_history
from tests.knowledge.git.repository import Repository

OTHERS = "TOP-SECRET-LINE of another file"
TWO = {"a.py": "one\ntwo\n"}


def shas(root: Path, path: str, first: int, last: int) -> list[str]:
    return [origin.sha for origin in find_origins(root, path, first, last)]


@pytest.fixture
def told(repository: Repository) -> list[str]:
    return [
        repository.commit("First", {"a.py": "one\nold\n", "part/b.py": "b\n"}),
        repository.commit("Second", TWO),
    ]


# -- settings --------------------------------------------------------------------------------------------------


def test_revisions_that_a_repository_would_have_ignored_count(repository: Repository, told: list[str]) -> None:
    repository.write({"ignored": told[1]})
    repository.git("config", "blame.ignoreRevsFile", "ignored")
    assert shas(repository.root, "a.py", 1, 2) == told


def test_no_file_that_a_setting_names_is_read(repository: Repository, told: list[str], tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text(f"{OTHERS}\n")
    os.mkfifo(tmp_path / "pipe")
    for name in ("blame.ignoreRevsFile", "mailmap.file", "core.attributesFile", "diff.orderFile"):
        for path in ("other.txt", "pipe"):
            repository.git("config", "--add", name, str(tmp_path / path))
    os.mkfifo(repository.root / ".mailmap")
    os.mkfifo(repository.root / ".gitattributes")
    origin = find_origins(repository.root, "a.py", 2, 2)[0]
    assert [commit.sha for commit in read_line_history(repository.root, origin)] == told[::-1]


def test_settings_of_the_user_do_not_send_git_into_the_repository(
    repository: Repository, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write({"ignored": told[1]})
    (tmp_path / ".gitconfig").write_text("[blame]\n\tignoreRevsFile = ignored\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shas(repository.root, "a.py", 1, 2) == told


# -- repositories of all kinds ---------------------------------------------------------------------------------


def test_a_working_tree_beside_another(repository: Repository, told: list[str], tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert shas(tmp_path / "side", "a.py", 1, 2) == told


def test_a_repository_that_borrowed_objects_and_has_its_own_by_now(
    repository: Repository, told: list[str], tmp_path: Path
) -> None:
    repository.git("clone", "-q", "--shared", str(repository.root), str(tmp_path / "shared"))
    with pytest.raises(SourceError, match="borrows objects"):
        shas(tmp_path / "shared", "a.py", 1, 2)
    repository.git("-C", str(tmp_path / "shared"), "repack", "-a", "-d", "-q")
    (tmp_path / "shared" / ".git" / "objects" / "info" / "alternates").unlink()
    assert shas(tmp_path / "shared", "a.py", 1, 2) == told


def test_a_repository_without_its_beginning(repository: Repository, told: list[str], tmp_path: Path) -> None:
    repository.git("clone", "-q", "--depth=1", f"file://{repository.root}", str(tmp_path / "part"))
    origin = find_origins(tmp_path / "part", "a.py", 1, 1)[0]
    assert origin.sha == told[1]
    assert [commit.sha for commit in read_line_history(tmp_path / "part", origin)] == [told[1]]


def test_a_repository_with_long_names_of_commits(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "long")
    shutil.rmtree(repository.root / ".git")
    repository.git("init", "-q", "--object-format=sha256")
    sha = repository.commit("First", TWO)
    assert len(sha) == 64
    assert shas(repository.root, "a.py", 1, 2) == [sha, sha]


def test_a_packed_repository_and_a_folder_of_it(repository: Repository, told: list[str]) -> None:
    repository.git("gc", "-q")
    assert shas(repository.root / "part", "b.py", 1, 1) == [told[0]]


@pytest.mark.parametrize("as_module", [True, False])
def test_a_line_of_another_repository_is_refused(repository: Repository, told: list[str], as_module: bool) -> None:
    inner = Repository(repository.root / "deep/inner")
    sha = inner.commit("Inner", {"src/c.py": "c\n"})
    if as_module:
        repository.commit("Take it in")
    with pytest.raises(InvalidInput, match=r"belongs to another repository, deep/inner\. Ask for it there"):
        find_origins(repository.root, "deep/inner/src/c.py", 1, 1)
    assert find_origins(inner.root, "src/c.py", 1, 1)[0].sha == sha


def test_a_file_that_is_new_beside_another_repository_is_only_new(repository: Repository, told: list[str]) -> None:
    repository.write({"deep/.git/notes": "no repository", "deep/new.py": "n\n"})
    assert find_origins(repository.root, "deep/new.py", 1, 1)[0].sha == ""


# -- lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["\x0c", "\x0b", "\x85", "\u2028", "\x1c", "a\rb"])
def test_lines_are_those_that_git_counts(repository: Repository, odd: str) -> None:
    first = repository.commit("First", {"a.py": f"one\n# {odd} #\nthree\nfour\n"})
    second = repository.commit("Second", {"a.py": f"one\n# {odd} #\nthree\n4\n"})
    assert shas(repository.root, "a.py", 1, 4) == [first, first, first, second]
    with pytest.raises(NotFound, match="The file has 4 lines"):
        find_origins(repository.root, "a.py", 5, 5)


@pytest.mark.parametrize("end", ["\x0c", "\r", "\u2028"])
def test_the_content_of_a_line_cannot_forge_its_commit(repository: Repository, told: list[str], end: str) -> None:
    forged = f"x = 1  # {end}{told[0]} 1 1{end}filename elsewhere.py\n"
    sha = repository.commit("Third", {"forged.py": forged})
    origin = find_origins(repository.root, "forged.py", 1, 1)[0]
    assert (origin.sha, origin.path) == (sha, "forged.py")


def test_both_ends_of_a_line_are_the_same_line(repository: Repository, told: list[str]) -> None:
    repository.write({"a.py": "one\r\ntwo\r\nnew\r\n"})
    assert shas(repository.root, "a.py", 1, 3) == [*told, ""]


# -- names -----------------------------------------------------------------------------------------------------


def test_a_name_with_the_mark_of_a_symbol_or_a_line_is_a_name(repository: Repository) -> None:
    first = repository.commit("First", {"a": "one\n", "a#b.py": "two\n"})
    second = repository.commit("Second", {"a:1": "three\n"})
    origins = [find_origins(repository.root, name, 1, 1)[0].path for name in ("a#b.py", "a:1", "a#b")]
    assert origins == ["a#b.py", "a:1", "a"]
    assert shas(repository.root, "a#b.py", 1, 1) == [first]
    assert shas(repository.root, "a:1", 1, 1) == [second]


@pytest.mark.parametrize("path", ["a#/../../outside", "../a#b", "x\udcff", "x\0", "/etc/passwd#a"])
def test_a_place_outside_of_the_repository_is_refused(repository: Repository, told: list[str], path: str) -> None:
    repository.write({"../outside": "secret\n"})
    with pytest.raises((InvalidInput, NotFound)) as refused:
        find_origins(repository.root, path, 1, 1)
    assert str(refused.value).isprintable()


def test_an_endless_name_is_not_repeated(repository: Repository, told: list[str]) -> None:
    with pytest.raises(NotFound) as refused:
        find_origins(repository.root, "a" * 5_000, 1, 1)
    assert len(str(refused.value)) < 300
