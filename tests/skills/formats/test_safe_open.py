"""Files are opened only below their root, even with links and races."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew import files
from clew.errors import FormatError
from clew.skills.formats import safe_open
from clew.skills.formats.safe_open import Root

from .trees import plant


def refusal(root: Root, path: str) -> str:
    with pytest.raises(FormatError) as caught:
        root.read(path, 100)
    return caught.value.reason


def test_a_file_is_read_and_digested_up_to_the_limit(tmp_path: Path) -> None:
    root = Root(str(plant(tmp_path, {"a/b.txt": "x" * 100, "a/c.txt": "x" * 101})))
    assert root.read("a/b.txt", 100) == b"x" * 100
    assert root.digest("a/b.txt", 100)[1] == 100
    assert refusal(root, "a/c.txt") == "has more than 100 bytes"


def test_a_folder_replaced_by_a_link_is_not_entered(tmp_path: Path) -> None:
    plant(tmp_path, {"outside/a.txt": "secret"})
    root = Root(str(plant(tmp_path / "root", {"inner/a.txt": "mine"})))
    assert root.read("inner/a.txt", 100) == b"mine"
    (tmp_path / "root/inner").rename(tmp_path / "root/other")
    (tmp_path / "root/inner").symlink_to(tmp_path / "outside")
    assert "read it" in refusal(root, "inner/a.txt")
    with pytest.raises(FormatError), root.listing("inner") as entries:
        list(entries)


def test_a_file_replaced_by_a_link_is_not_read(tmp_path: Path) -> None:
    plant(tmp_path, {"secret.txt": "secret"})
    root = Root(str(plant(tmp_path / "root", {"b.txt": "b"})))
    (tmp_path / "root/a.txt").symlink_to(tmp_path / "secret.txt")
    assert "became a link" in refusal(root, "a.txt")


def test_a_path_with_links_and_dots_is_followed_only_below_the_root(tmp_path: Path) -> None:
    plant(tmp_path, {"secret.txt": "secret"})
    root = Root(str(plant(tmp_path / "root", {"a/b.txt": "b", "c/d.txt": "d"})))
    (tmp_path / "root/c/link.txt").symlink_to("../a/b.txt")
    (tmp_path / "root/c/out.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "root-but-not").mkdir()
    assert root.load("c/link.txt", 10) == b"b"
    assert root.load("c/../a/b.txt", 10) == b"b"
    for path in ("c/out.txt", "../secret.txt", "c/../../secret.txt", "../root-but-not"):
        with pytest.raises(FormatError, match="leads out of the root"):
            root.load(path, 10)
    for path in ("missing", "/etc/passwd", "a\x00b"):
        with pytest.raises(FormatError):
            root.load(path, 10)


@pytest.mark.skipif(os.name != "posix", reason="there are no pipes with names here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(Root(str(tmp_path)), "pipe") == "is not a regular file"


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    root = Root(str(plant(tmp_path, {"a/b": "c"})))
    assert refusal(root, "a") == "is not a regular file"
    assert refusal(root, "x") == "does not exist"
    assert refusal(root, "a/b/c") == "changed while Clew read it"
    assert refusal(root, "a/" + "x" * 5_000) == "has too long a path"


def test_without_openat_the_same_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_open, "STEPWISE", False)
    monkeypatch.setattr(files, "STEPWISE", False)
    plant(tmp_path, {"outside/a.txt": "secret"})
    root = Root(str(plant(tmp_path / "root", {"inner/a.txt": "mine"})))
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    assert root.read("inner/a.txt", 100) == b"mine"
    with root.listing("inner") as entries:
        assert [each.name for each in entries] == ["a.txt"]
    assert "became a link" in refusal(root, "link/a.txt")
    assert refusal(root, "missing") == "does not exist"


def test_link_target_is_empty_for_a_file(tmp_path: Path) -> None:
    root = Root(str(plant(tmp_path, {"a": "b"})))
    (tmp_path / "link").symlink_to("nowhere")
    assert (root.link_target("link"), root.link_target("a"), root.link_target("x")) == ("nowhere", "", "")
