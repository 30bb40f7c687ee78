"""Facts are read from the files once; `code.db` has them for later processes until a file changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.knowledge.project import fact_reader
from clew.knowledge.project.facts import ProjectFacts
from tests.knowledge.code.sample_project import opened

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
MANIFEST = """\
[project]
name = "letters"
requires-python = ">=3.10"
"""


async def versions(root: Path) -> list[str]:
    """The Python version of the folder, as a new process finds it."""
    async with opened(root) as graph:
        facts = ProjectFacts(graph)
        weights = {"python": 1.0, "version": 1.0}
        found = await facts.search("which python version is required", await graph.state(), weights)
        return [each.node.content for each in found]


async def test_another_process_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(MANIFEST)
    first = await versions(tmp_path)
    assert first[0] == 'requires-python = ">=3.10"'

    monkeypatch.setattr(fact_reader, "index_facts", lambda root, paths: pytest.fail("read again"))
    assert await versions(tmp_path) == first


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    manifest = tmp_path / "pyproject.toml"
    manifest.write_text(MANIFEST)
    await versions(tmp_path)
    manifest.write_text(MANIFEST.replace("3.10", "3.12"))
    assert (await versions(tmp_path))[0] == 'requires-python = ">=3.12"'


async def test_keys_in_a_manifest_are_not_stored(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'{MANIFEST}description = "token {TOKEN}"\n')
    await versions(tmp_path)
    stored = b"".join(path.read_bytes() for path in (tmp_path / ".clew").iterdir() if path.is_file())
    assert b"requires-python" in stored
    assert TOKEN.encode() not in stored
