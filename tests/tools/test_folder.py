"""Paths never lead out of a working folder, with any file names and concurrent changes."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from clew import files
from clew.errors import ClewError, InvalidInput, NotFound, ToolFailure
from clew.tools.files import folder as folder_module
from clew.tools.files.folder import WorkingFolder
from tests.tools.working_folder import plant


def refusal(folder: WorkingFolder, path: str, *, to_write: bool = False) -> str:
    with pytest.raises((InvalidInput, ToolFailure)) as caught:
        folder.locate(path, to_write=to_write)
    return str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "a/../../secret.txt",
        "/etc/passwd",
        "~/x",
        "~",
        "out/secret.txt",
        "out",
        "one.txt",
        "\0",
        "x" * 5_000,
    ],
)
def test_a_path_that_leads_out_is_refused(tmp_path: Path, path: str) -> None:
    plant(tmp_path, {"secret.txt": "s", "root/a/b.txt": "x"})
    root = tmp_path / "root"
    (root / "out").symlink_to(tmp_path)
    (root / "one.txt").symlink_to(tmp_path / "secret.txt")
    assert refusal(WorkingFolder(root), path)


def test_a_link_that_leads_nowhere_outside_is_not_written_through(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {})
    (root / "new").symlink_to(tmp_path / "made-outside")
    assert "leads out" in refusal(WorkingFolder(root), "new", to_write=True)


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"a/b.txt": "x"})
    (root / "link").symlink_to("a")
    found = WorkingFolder(root)
    assert found.locate("link/b.txt") == "a/b.txt"
    assert found.resolve("./link//b.txt") == Path(os.path.realpath(root)) / "a/b.txt"


def test_a_whole_path_within_the_folder_is_taken_by_either_name_of_it(tmp_path: Path) -> None:
    plant(tmp_path / "real", {"a.txt": "x"})
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    folder = WorkingFolder(tmp_path / "alias")
    assert folder.locate(str(tmp_path / "alias/a.txt")) == "a.txt"
    assert folder.locate(os.path.realpath(tmp_path / "real/a.txt")) == "a.txt"
    assert folder.locate(str(tmp_path / "alias")) == ""


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "deep/.env", ".ENV", ".e\u200dnv", ".env.local", ".ssh/id_rsa", "a/.aws/credentials", "server.pem"),
        *(".clew/trail.db", ".clew/trail.db-wal", "inner/.clew/trail.db", ".clew/keys/x", ".netrc", "hole/x", ".env/x"),
    ],
)
def test_files_for_secrets_are_hidden_from_tools(tmp_path: Path, path: str) -> None:
    root = plant(tmp_path, {".ssh/x": "key"})
    (root / "hole").symlink_to(".ssh")
    with pytest.raises(ToolFailure, match="usually holds secrets") as caught:
        WorkingFolder(root).locate(path)
    assert caught.value.kind == "permission"
    assert "Ask the user" in str(caught.value)


@pytest.mark.parametrize("path", [".env.example", "environment.py", ".github/x.yml", ".clew/config.toml", "keys.py"])
def test_files_with_similar_names_are_not_secret(tmp_path: Path, path: str) -> None:
    assert WorkingFolder(tmp_path).locate(path) == path


def test_secrets_of_the_home_folder_are_kept_where_it_is_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(plant(tmp_path, {".kube/config": "x", "work/.kube/config": "x"})))
    folder = WorkingFolder(tmp_path)
    assert "secrets" in refusal(folder, ".kube/config")
    assert folder.locate("work/.kube/config")


@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks/pre-commit", ".clew/config.toml", "sub/.git/config"),
        *("sub/mise.toml", ".helix/config.toml", ".Opencode/agent/a.md", "team.code-workspace", ".nvimrc"),
    ],
)
def test_files_that_make_programs_run_can_be_read_but_not_written(tmp_path: Path, path: str) -> None:
    folder = WorkingFolder(tmp_path)
    assert folder.locate(path) == path
    assert "tools may not write" in refusal(folder, path, to_write=True)


def test_pipes_sockets_and_folders_are_refused_without_waiting(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a/b": "x"})
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))
        folder = WorkingFolder(root)
        for path, said in (("pipe", "a pipe"), ("s", "regular file"), ("a", "a folder")):
            with pytest.raises(InvalidInput, match=said):
                folder.read(path, 100)
        with pytest.raises(InvalidInput, match="not a regular file"):
            folder.write("pipe", b"x")
    with pytest.raises(InvalidInput):
        folder.write("a", b"x")


def test_a_missing_file_names_what_may_be_meant(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"src/readme.md": "x"}))
    with pytest.raises(NotFound, match=r"Did you mean src/readme\.md\?"):
        folder.read("src/raedme.md", 100)


def test_a_path_that_becomes_a_link_after_its_check_is_not_opened(tmp_path: Path) -> None:
    plant(tmp_path, {"outside/a.txt": "secret", "root/inner/a.txt": "mine"})
    folder = WorkingFolder(tmp_path / "root")
    real = folder.locate("inner/a.txt")
    (tmp_path / "root/inner").rename(tmp_path / "root/moved")
    (tmp_path / "root/inner").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidInput):
        folder.read(real, 100)
    with pytest.raises(InvalidInput):
        folder.write(real, b"gone")
    assert (tmp_path / "outside/a.txt").read_text() == "secret"


def test_a_race_of_links_never_gives_what_is_outside(tmp_path: Path) -> None:
    """A folder is repeatedly swapped for a link and back while it is read."""
    plant(tmp_path, {"outside/a.txt": "secret", "root/inner/a.txt": "mine"})
    root = tmp_path / "root"
    folder = WorkingFolder(root)
    (root / "bad").symlink_to(tmp_path / "outside")
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            (root / "inner").rename(root / "kept")
            (root / "bad").rename(root / "inner")
            (root / "inner").rename(root / "bad")
            (root / "kept").rename(root / "inner")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        for _ in range(400):
            try:
                seen.add(folder.read(folder.locate("inner/a.txt"), 100)[0])
            except ClewError:
                continue
    finally:
        is_over.set()
        swapper.join()
    assert seen <= {b"mine"}


def test_a_write_is_whole_keeps_the_rights_and_leaves_nothing_beside(tmp_path: Path) -> None:
    root = plant(tmp_path, {"run.sh": "old"})
    (root / "run.sh").chmod(0o750)
    folder = WorkingFolder(root)
    folder.write("run.sh", b"new")
    folder.write("deep/er/new.txt", b"x")
    assert (root / "run.sh").read_bytes() == b"new"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(root)) == ["deep", "run.sh"]
    assert os.listdir(root / "deep/er") == ["new.txt"]


def test_a_write_that_expected_another_file_writes_nothing(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a.txt": "old"})
    folder = WorkingFolder(root)
    _, about = folder.read("a.txt", 100)
    plant(root, {"a.txt": "changed by somebody"})
    with pytest.raises(InvalidInput, match="changed since you read it"):
        folder.write("a.txt", b"new", expected=folder_module.stamp_of(about))
    assert (root / "a.txt").read_text() == "changed by somebody"
    assert os.listdir(root) == ["a.txt"]


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"a": "x" * 11}))
    with pytest.raises(InvalidInput, match="more than 10 bytes"):
        folder.read("a", 10)


def test_names_of_any_bytes_are_shown_as_plain_text(tmp_path: Path) -> None:
    folder = WorkingFolder(tmp_path)
    for name in ("a\x1b[31mb", "zeile\nzwei", os.fsdecode(b"caf\xe9"), "\ud800"):
        with pytest.raises((NotFound, InvalidInput)) as caught:
            folder.read(folder.locate(name), 10)
        assert str(caught.value).encode().decode().isprintable()


def test_the_same_rules_apply_where_folders_cannot_be_opened_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "STEPWISE", False)
    monkeypatch.setattr(folder_module, "STEPWISE", False)
    plant(tmp_path, {"outside/a.txt": "secret", "root/a.txt": "x"})
    folder = WorkingFolder(tmp_path / "root")
    folder.write("b/c.txt", b"new")
    assert folder.read("b/c.txt", 10)[0] == b"new"
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidInput):
        folder.read("link/a.txt", 100)
