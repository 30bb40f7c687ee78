"""The files of the index, and their kinds."""

from __future__ import annotations

import os
import subprocess
import unicodedata
from pathlib import Path

import pytest

from clew.knowledge.code.file_content import MAX_BYTES, blob_id, read_content
from clew.knowledge.code.files import Tree
from clew.knowledge.code.models import FileStatus
from tests.knowledge.code.repositories import git, make_repository, write


def seen(root: Path) -> set[str]:
    return set(Tree(root).look())


def test_tracked_and_new_files_count_and_ignored_ones_do_not(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a", ".gitignore": "*.log\nout/\n"})
    write(root, "new.py")
    write(root, "b.log")
    write(root, "out/c.py")
    assert seen(root) == {"a.py", ".gitignore", "new.py"}


def test_a_tracked_file_counts_though_a_rule_ignores_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    write(root, ".gitignore", "a.py\n")
    assert "a.py" in seen(root)


@pytest.mark.req("SYL-62")
@pytest.mark.parametrize("is_git", [True, False])
def test_folders_of_the_ignore_list_are_left_out(tmp_path: Path, is_git: bool) -> None:
    write(tmp_path, "a.py")
    names = ("node_modules", "vendor", "__pycache__", ".idea", ".vscode", "dist", "build", ".cache", ".clew", ".venv")
    for name in names:
        write(tmp_path, f"{name}/x.py")
        write(tmp_path, f"deep/{name}/x.py")
    if is_git:
        git(tmp_path, "init", "-q")
    assert seen(tmp_path) == {"a.py"}


def test_a_folder_called_build_counts_where_its_files_are_tracked(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"operations/build/wheel.py": "x", "node_modules/m.js": "x"})
    write(root, "operations/build/made.py")
    assert seen(root) == {"operations/build/wheel.py"}


@pytest.mark.parametrize("is_git", [True, False])
def test_any_name_that_is_text_is_found(tmp_path: Path, is_git: bool) -> None:
    names = {
        "with space.py",
        "line\nbreak.py",
        'quote".py',
        "-option.py",
        "tab\t.py",
        "日本語.py",
        ":(glob)x.py",
        "#a.py",
    }
    names |= {unicodedata.normalize(form, "é.py") for form in ("NFC", "NFD")}
    for name in names:
        write(tmp_path, f"dir é/{name}")
    with open(os.fsencode(tmp_path) + b"/\xff.py", "wb"):
        pass
    if is_git:
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "dir é/with space.py")
    found = seen(tmp_path)
    assert found == {f"dir é/{name}" for name in names}
    tree = Tree(tmp_path)
    assert set(tree.choose(found)) == found


@pytest.mark.parametrize("is_git", [True, False])
def test_links_are_not_followed_and_loops_end(tmp_path: Path, is_git: bool) -> None:
    write(tmp_path, "a.py")
    os.symlink("a.py", tmp_path / "link.py")
    os.symlink(".", tmp_path / "loop")
    os.symlink("/etc", tmp_path / "out")
    os.mkfifo(tmp_path / "pipe.py")
    if is_git:
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "a.py", "link.py", "loop")
    assert seen(tmp_path) == {"a.py"}


def test_a_repository_within_is_not_a_part(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    make_repository(root / "inner", {"b.py": "b"})
    make_repository(tmp_path / "lib", {"c.py": "c"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "lib"), "lib")
    assert seen(root) == {"a.py", ".gitmodules"}
    assert seen(root / "inner") == {"b.py"}


def test_without_git_a_repository_within_is_not_a_part_either(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    make_repository(tmp_path / "inner", {"b.py": "b"})
    assert seen(tmp_path) == {"a.py"}


def test_a_repository_without_a_commit_and_an_empty_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert seen(tmp_path) == set()
    write(tmp_path, "a.py")
    assert seen(tmp_path) == {"a.py"}
    assert seen(tmp_path / "nowhere") == set()


def test_a_sparse_checkout_has_only_what_is_there(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a/x.py": "a", "b/y.py": "b", "top.py": ""})
    git(root, "sparse-checkout", "set", "--cone", "a")
    assert seen(root) == {"a/x.py", "top.py"}


def test_a_part_of_a_repository_is_looked_at_by_itself(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a/x.py": "a", "b/y.py": "b", ".gitignore": "scratch/\n"})
    assert seen(root / "a") == {"x.py"}
    write(root, "scratch/mine.py")
    assert seen(root / "scratch") == {"mine.py"}


def test_git_variables_of_the_environment_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    other = make_repository(tmp_path / "other", {"b.py": "b"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert seen(root) == {"a.py"}


def test_a_program_that_a_repository_names_is_not_run(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a"})
    ran = tmp_path / "ran"
    script = write(tmp_path, "evil", f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(script))
    assert seen(root) == {"a.py"}
    assert not ran.exists()


def test_files_that_are_made_to_hold_keys_do_not_count(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a", ".env": "X=1", "server.pem": "x", ".env.example": "X="})
    assert seen(root) == {"a.py", ".env.example"}


def test_the_id_of_a_content_is_the_one_of_git(tmp_path: Path) -> None:
    place = write(tmp_path, "a.py", "print('é')\n")
    printed = subprocess.run(["git", "hash-object", str(place)], capture_output=True, text=True, check=True).stdout
    assert blob_id(place.read_bytes()) == printed.strip()
    content = read_content(str(tmp_path), "a.py")
    assert content is not None
    assert (content.blob, content.body) == (printed.strip(), place.read_bytes())


def test_a_file_that_is_gone_or_no_file_has_no_content(tmp_path: Path) -> None:
    write(tmp_path, "folder/a.py")
    os.symlink("folder", tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    for path in ("none.py", "folder", "pipe", "folder/a.py/b.py", "nul\0.py"):
        assert read_content(str(tmp_path), path) is None
    through_link = read_content(str(tmp_path), "link/a.py")
    assert through_link is None or through_link.left_out


def test_a_huge_file_is_known_by_name_only(tmp_path: Path) -> None:
    write(tmp_path, "big.py", b"x = 1\n" * (MAX_BYTES // 6 + 1))
    content = read_content(str(tmp_path), "big.py")
    assert content is not None
    assert content.left_out.startswith("has over")
    assert not content.body


@pytest.mark.req("BEY-06")
def test_a_status_proves_nothing_until_time_has_passed() -> None:
    fine = FileStatus(1, 5_000_000_001, 5_000_000_001, 1)
    assert not fine.settled(5_000_000_001)
    assert not fine.settled(5_040_000_000)
    assert fine.settled(5_060_000_000)
    coarse = FileStatus(1, 5_000_000_000, 5_000_000_000, 1)
    assert not coarse.settled(6_900_000_000)
    assert coarse.settled(7_100_000_000)


def test_names_that_differ_in_case_are_different_files(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"Readme.md": "a", "README.md": "b"})
    assert seen(root) == {"Readme.md", "README.md"}
