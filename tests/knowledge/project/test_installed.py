"""Where packages are installed, and in which version."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.knowledge.project.packages import find_npm, find_python


def write(file: Path, text: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_package_of_npm_may_be_a_link_within_the_project(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root / "store" / "zod@3" / "package.json", '{"version": "3.1.0"}')
    write(tmp_path / "outside" / "package.json", '{"version": "9"}')
    (root / "node_modules").mkdir()
    (root / "node_modules" / "zod").symlink_to(root / "store" / "zod@3")
    (root / "node_modules" / "yup").symlink_to(tmp_path / "outside")
    found = find_npm(root, "zod")
    assert found is not None
    assert (Path(found.path).name, found.version) == ("zod@3", "3.1.0")
    assert find_npm(root, "yup") is None


@pytest.mark.parametrize("name", ["..", "../store/zod@3", "/etc", "", "a/b/c", "@x", "zod\0"])
def test_no_name_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path / "package.json", '{"version": "1"}')
    write(tmp_path / "store" / "zod@3" / "package.json", '{"version": "3.1.0"}')
    assert find_npm(tmp_path, name) is None
    assert find_python(tmp_path, name) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 3}', "[" * 50_000])
def test_a_manifest_that_says_nothing_has_no_version(tmp_path: Path, text: str) -> None:
    write(tmp_path / "node_modules" / "zod" / "package.json", text)
    found = find_npm(tmp_path, "zod")
    assert found is not None
    assert found.version == ""


def test_a_package_of_python_is_found_however_its_name_is_spelt(tmp_path: Path) -> None:
    info = tmp_path / "venv" / "lib" / "python3.12" / "site-packages" / "Weather_Lib-1.2.dist-info"
    write(info / "METADATA")
    found = find_python(tmp_path, "weather.lib")
    assert found is not None
    assert (found.path, found.version) == (str(info.resolve()), "1.2")
    assert find_python(tmp_path, "weather") is None
