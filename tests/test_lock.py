"""`make` installs only packages from the hashed lock files, and a runtime install stays small."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))
MAX_PACKAGES = 60
"""Clew itself among them."""
MAX_BYTES = 300_000_000
OWN_BYTES = 36_000_000
"""Clew with its bytecode and the weights that its wheel carries."""
BYTECODE = 1.18
"""The bytecode of the runtime packages adds a sixth to their files: 217 MB become 256."""


def pinned(lock: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_has_a_hash_and_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert len(re.findall(r"^[a-z0-9._-]+==[^\n]*\\\n +--hash=sha256:", text, re.MULTILINE)) == len(
        re.findall(r"^[a-z0-9._-]+==", text, re.MULTILINE)
    )


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-bench.lock", "requirements-run.lock"])
def test_the_build_backend_is_in_the_lock(lock: str) -> None:
    for requirement in PROJECT["build-system"]["requires"]:
        assert Requirement(requirement).name in pinned(lock)
    assert "--no-build-isolation" in (ROOT / "tools" / "setup_venv.py").read_text(encoding="utf-8")


@pytest.mark.req("BEY-11")
def test_running_installs_no_tool_of_development() -> None:
    needed = {canonicalize_name(Requirement(each).name) for each in PROJECT["project"]["dependencies"]}
    assert needed <= pinned("requirements-run.lock") <= pinned("requirements.lock")
    assert not pinned("requirements-run.lock") & {"mypy", "hypothesis", "coverage", "openai", "anthropic", "uv"}


@pytest.mark.req("BEY-11")
def test_the_team_of_make_run_finds_a_linter_and_tests_but_a_user_of_the_wheel_installs_neither() -> None:
    assert {"pytest", "ruff"} <= pinned("requirements-run.lock")
    assert not {"pytest", "ruff"} & {
        canonicalize_name(Requirement(each).name) for each in PROJECT["project"]["dependencies"]
    }


@pytest.mark.req("BEY-11")
def test_a_runtime_install_has_at_most_sixty_packages_and_300_megabytes() -> None:
    found = runtime_packages()
    assert len(found) + 1 <= MAX_PACKAGES
    assert sum(found.values()) * BYTECODE + OWN_BYTES <= MAX_BYTES, found


def test_packages_that_leave_the_lock_leave_an_existing_environment(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "setup_venv.py"))
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    for name in ("clew", "pip", "Old_Package", "of.both", "of_running", "of_testing"):
        (site / f"{name}-1.0.dist-info").mkdir(parents=True)
        (site / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    run, full = tmp_path / "requirements-run.lock", tmp_path / "requirements.lock"
    run.write_text("of-both==1.0\nof-running==1.0\n")
    full.write_text("of-both==1.0\nof-testing==1.0\n")
    assert tool["stale_packages"](tmp_path / ".venv", full) == ["of-running", "old-package"]
    assert tool["stale_packages"](tmp_path / ".venv", run) == ["old-package"], "one environment has both"


def runtime_packages() -> dict[str, int]:
    """Every package that a runtime install of this machine brings, with the bytes of its files."""
    found: dict[str, int] = {}
    waiting = [Requirement(each) for each in PROJECT["project"]["dependencies"]]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        extras = {"", *wanted.extras}
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            pytest.fail(f"{name} is not installed: run `make test` to update the environment")
        if name not in found:
            files = [each for each in package.files or () if each.suffix != ".pyc"]
            found[name] = sum(Path(str(each.locate())).stat().st_size for each in files if each.locate().exists())
        for line in package.requires or ():
            needed = Requirement(line)
            is_wanted = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras)
            if is_wanted and (canonicalize_name(needed.name) not in found or needed.extras):
                waiting.append(Requirement(f"{needed.name}{_spelled(needed.extras)}"))
    return found


def _spelled(extras: set[str]) -> str:
    return f"[{','.join(sorted(extras))}]" if extras else ""
