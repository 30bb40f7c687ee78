"""Follow-up questions, and parts of a folder that are not read."""

from __future__ import annotations

import pytest

from clew.app import App
from clew.catalog.operations.answers import Question


@pytest.mark.req("BEY-13")
@pytest.mark.parametrize(
    "first", ["where is base_place", "where is the place of all places"], ids=["by its name", "by its answer"]
)
async def test_it_means_the_subject_of_the_question_before_under_the_same_handle(app: App, first: str) -> None:
    catalog = (await app.workspace()).catalog
    before = await catalog.ask(Question(query=first), by=app.me)
    after = await catalog.ask(Question(query="which tests cover it?", handle=before.handle), by=app.me)
    assert [item.path for item in after.known] == ["tests/test_factory.py"]
    alone = await catalog.ask(Question(query="which tests cover it?"), by=app.me)
    assert "calls `PlaceFactory.base_place`" not in "".join(item.text for item in alone.known)


@pytest.mark.req("BEY-13")
async def test_a_changelog_that_is_too_large_is_named(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = app.knowledge()
    (knowledge.root / "CHANGELOG.md").write_text("# 9.0.0\n\n" + "- Paint it green\n" * 150_000)
    await knowledge.gather()
    found = await knowledge.answer("what changed in 9.0.0", app.me)
    assert "`CHANGELOG.md` is not read: it has over 2,000,000 bytes." in found.notes
