"""The wheel in an empty environment: a new user, only the runtime packages, and a first answer."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import pytest

from clew.files import locked
from tests.test_lock import ROOT, runtime_packages
from tests.worker_folders import shared_by_workers

PATIENCE = 300.0


def run(command: Sequence[str], folder: Path, home: Path) -> str:
    """The output of a program for a new user: only these variables, and an empty home folder."""
    bare = {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
    done = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as `make dist` builds it."""
    folder = shared_by_workers(tmp_path_factory, "dist")
    with locked(folder):
        return next(folder.glob("*.whl"), None) or build_wheel(folder)


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert " ".join(command[1:5]) in (ROOT / "Makefile").read_text(encoding="utf-8")
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and the packages that it asks for, and no others."""
    place = shared_by_workers(tmp_path_factory, "environment")
    with locked(place):
        if not (place / "bin" / "clew").exists():
            install(wheel, place)
    return place / "bin"


def install(wheel: Path, place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place)], timeout=PATIENCE, check=True)
    site = next(place.glob("lib/python*/site-packages"))
    for name in runtime_packages():
        link_package(name, site)
    pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    # by the name in the README's block, with its dependencies, all of which must be there
    run([*pip, "--no-index", shlex.split(install_block()[0], comments=True)[-1]], wheel.parent, place)


def install_block() -> list[str]:
    """The lines of the README that install Clew and try it."""
    return (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install\n")[2].split("```\n")[1].splitlines()


def link_package(name: str, site: Path) -> None:
    """Put a package of this environment into another one."""
    files = distribution(name).files or ()
    for top in {each.parts[0] for each in files if each.parts[0] not in ("..", "__pycache__")}:
        source = Path(str(distribution(name).locate_file(top)))
        if source.exists() and not (site / top).exists():
            (site / top).symlink_to(source)


def test_the_wheel_carries_the_weights_and_the_examples_and_no_leftovers(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "clew/llm/wordllama_files/weights/l2_supercat_256.safetensors" in names
    assert "clew/llm/wordllama_files/LICENSE" in names
    assert "clew/examples/run_demo.py" in names
    assert "clew/examples/06_workspace/.clew/config.toml" in names
    assert not [name for name in names if name.endswith((".db", ".pyc", ".lock")) or "credential" in name]


@pytest.mark.req("BEY-11")
def test_a_new_user_installs_the_wheel_and_gets_a_cited_answer(installed: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "handbook"
    home.mkdir()
    shutil.copytree(ROOT / "examples" / "06_workspace" / "docs", folder)
    shown = run([str(installed / "clew"), "ask", "who may refund 300 euros"], folder, home)
    assert "refunds.md" in shown
    assert "second person" in shown
    assert "not installed" not in shown
    found = run(
        [str(installed / "python"), "-c", "from clew.llm.wordllama import *; print(find_weights())"], home, home
    )
    assert Path(found.strip()).is_relative_to(installed.parent)
    run([str(installed / "clew"), "uninstall", "--yes"], folder, home)
    assert not (folder / ".clew").exists()


def test_the_installed_program_has_its_demos(installed: Path, tmp_path: Path) -> None:
    assert "kill -9" in run([str(installed / "clew"), "demo"], tmp_path, tmp_path)
    assert "The tool ran 1 time." in run([str(installed / "clew"), "demo", "resume"], tmp_path, tmp_path)


@pytest.mark.req("BEY-11")
def test_the_install_block_of_the_readme_runs(wheel: Path, installed: Path, tmp_path: Path) -> None:
    """`uv` needs a registry for the dependencies, so the wheel is installed by the block's other way, pip."""
    first, *others = [shlex.split(line, comments=True) for line in install_block()]
    assert first == ["uv", "tool", "install", f"./{wheel.name}"]
    assert "pip install" in install_block()[0]
    assert others
    for program, *arguments in others:
        assert program == "clew"
        shown = run([str(installed / program), *arguments], tmp_path, tmp_path)
        assert "clew connect" in shown
