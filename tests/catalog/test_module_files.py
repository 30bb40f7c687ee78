"""The place where Python would find a module, found without running it."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from uuid import uuid4

import pytest

from clew.catalog.consent import module_files
from clew.catalog.consent.module_files import is_inside, locate
from clew.errors import ConfigError


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name that no other test has used, in a folder that Python looks into."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"located_{uuid4().hex}"


def files(name: str, folder: Path) -> list[str]:
    importlib.invalidate_caches()
    located = locate(name, folder)
    assert located is not None
    assert not any(each.startswith("located_") for each in sys.modules)
    return [each.relative_to(folder).as_posix() for each in located.files]


def put(path: Path, text: str = "raise RuntimeError('imported')\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_module_is_one_file(name: str, tmp_path: Path) -> None:
    put(tmp_path / f"{name}.py")
    put(tmp_path / "other.py")
    assert files(name, tmp_path) == [f"{name}.py"]


def test_a_package_is_all_its_importable_files(name: str, tmp_path: Path) -> None:
    for path in ("__init__.py", "a/b.py", "a/data.json", "c.pyc", "x-y/z.py", ".venv/z.py", "__pycache__/a.pyc"):
        put(tmp_path / name / path, "\0" * 16)
    expected = [f"{name}/{path}" for path in ("__init__.py", "a/b.py", "c.pyc")]
    assert files(name, tmp_path) == files(f"{name}.a.b", tmp_path) == expected


def test_a_package_without_an_init_is_found_at_any_depth(name: str, tmp_path: Path) -> None:
    put(tmp_path / name / "a" / "b" / "c.py")
    assert files(f"{name}.a.b.c", tmp_path) == [f"{name}/a/b/c.py"]


def test_links_are_followed_once(name: str, tmp_path: Path) -> None:
    put(tmp_path / name / "__init__.py")
    put(tmp_path / "elsewhere" / "part.py")
    (tmp_path / name / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / name / "again").symlink_to(tmp_path / name)
    assert f"{name}/linked/part.py" in files(name, tmp_path)


def test_a_module_in_an_archive_is_the_archive(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr(f"{name}.py", "raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "all.zip"))
    assert files(name, tmp_path) == ["all.zip"]


def test_a_module_outside_the_folder_has_no_files(name: str, tmp_path: Path) -> None:
    put(tmp_path / f"{name}.py")
    project = tmp_path / "project"
    project.mkdir()
    located = locate(name, project)
    assert located is not None
    assert (located.place, list(located.files)) == (str(tmp_path / f"{name}.py"), [])


def test_a_link_to_a_file_outside_belongs_to_the_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    put(tmp_path / "outside.py")
    project.mkdir()
    (project / f"{name}.py").symlink_to(tmp_path / "outside.py")
    monkeypatch.syspath_prepend(str(project))
    assert files(name, project) == [f"{name}.py"]


@pytest.mark.parametrize("given", ["", ".", "..", "no_such_module_at_all", "a b", "no_such_module_at_all.x"])
def test_a_module_that_python_cannot_find_has_no_files(given: str, tmp_path: Path) -> None:
    assert locate(given, tmp_path) is None


def test_a_package_of_too_many_files_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_files, "MAX_FILES", 2)
    for at in range(4):
        put(tmp_path / name / f"part{at}.py")
    with pytest.raises(ConfigError, match="has over 2 files"):
        locate(name, tmp_path)


def test_a_path_is_inside_by_its_name_or_by_its_target(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "to-out").symlink_to(tmp_path / "out")
    (tmp_path / "to-in").symlink_to(tmp_path / "in")
    found = [
        is_inside(tmp_path / path, tmp_path / "in") for path in ("in/x", "in/to-out/x", "to-in/x", "out/x", "inner")
    ]
    assert found == [True, True, True, False, False]
