"""Questions after a checkout that renames files, before any watcher reports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.app import open_app
from clew.config import Config, HygieneConfig
from tests.knowledge.code.repositories import git, make_repository

CODE = {
    "src/retry.py": 'def backoff(attempt):\n    """Seconds to wait."""\n    return 2**attempt\n',
    "src/client.py": "from src.retry import backoff\n\n\ndef fetch(url):\n    return backoff(1)\n",
    ".gitignore": ".clew/\n",
}
DECISION = {"docs/decisions/0001-retry.md": "# 1. Retry twice\n\n## Decision\n\nA payment is retried twice.\n"}


@pytest.mark.req("BEY-06")
@pytest.mark.parametrize(
    ("files", "first", "question"),
    [
        (CODE, "where is backoff", "where is backoff"),
        (CODE, "where is fetch", "what calls backoff"),
        (CODE | DECISION, "where is fetch", "which function waits seconds"),
        (CODE | DECISION, "where is backoff", "what calls backoff"),
    ],
)
async def test_a_renamed_file_is_found_at_its_new_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], first: str, question: str
) -> None:
    root = make_repository(tmp_path / "shop", files)
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 3_600.0)
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        known = app.knowledge()
        await known.gather()
        assert (await known.answer(first, app.me)).items
        git(root, "mv", "src", "lib")
        git(root, "commit", "-q", "-m", "rename")
        found = await known.answer(question, app.me)
    assert found.items
    assert {item.path.split("/")[0] for item in found.items if item.path} == {"lib"}
