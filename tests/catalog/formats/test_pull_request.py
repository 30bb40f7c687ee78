from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.formats.types import GITHUB_PR
from clew.errors import FormatError
from tests.catalog.formats.documents import read

PULL: dict[str, Any] = {
    "url": "https://api.github.com/repos/acme/shop/pulls/42",
    "id": 1,
    "number": 42,
    "state": "closed",
    "locked": False,
    "title": "Retry the payment",
    "user": {"login": "ann", "id": 2, "type": "User"},
    "body": "Payments failed on timeouts.\r\n\r\n## Details\r\n\r\nNow they are retried.",
    "labels": [{"id": 3, "name": "bug", "color": "f29513"}],
    "created_at": "2026-01-02T03:04:05Z",
    "closed_at": "2026-01-03T03:04:05Z",
    "merged_at": "2026-01-03T03:04:05Z",
    "draft": False,
    "html_url": "https://github.com/acme/shop/pull/42",
    "head": {"label": "acme:retry", "ref": "retry", "sha": "6dcb"},
    "base": {"label": "acme:main", "ref": "main", "sha": "6dca"},
    "comments": 10,
    "commits": 3,
}


@pytest.mark.req("ERN-18")
def test_a_pull_request_tells_what_it_is_about() -> None:
    root = read(PULL, GITHUB_PR, id="42", base="prs")
    assert (root.path, root.name, root.type) == ("prs/42", "#42 Retry the payment", "pull_request")
    assert root.description == ("Pull request merged 2026-01-03: Retry the payment. Payments failed on timeouts.")
    assert root.content.startswith(
        "Pull request #42: Retry the payment\n\n"
        "by ann; merged 2026-01-03; retry into main; labels: bug; https://github.com/acme/shop/pull/42\n\n"
        "Payments failed on timeouts."
    )
    assert root.metadata == {"number": 42, "state": "merged", "url": "https://github.com/acme/shop/pull/42"}
    assert root.children == ()


def test_files_and_discussion_are_its_children() -> None:
    files = [
        {"filename": "pay.py", "status": "modified", "additions": 3, "deletions": 1, "patch": "@@ -1 +1 @@\n-a\n+```"},
        {"filename": "logo.png", "status": "added", "additions": 0, "deletions": 0},
    ]
    said = [
        {"user": {"login": "bob"}, "body": "Why?", "created_at": "2026-01-02T04:00:00Z", "path": "pay.py"},
        {"user": None, "body": "Fine.", "submitted_at": "2026-01-02T05:00:00Z", "state": "APPROVED"},
        {"user": {"login": "bot"}, "body": None},
    ]
    root = read({**PULL, "files": files, "discussion": said}, GITHUB_PR, id="42")
    assert root.content.endswith("Files:\n- pay.py (modified, +3 -1)\n- logo.png (added, +0 -0)")
    changes, discussion = root.children
    assert (changes.path, changes.content) == (
        "42/changes",
        "pay.py (modified, +3 -1)\n\n````diff\n@@ -1 +1 @@\n-a\n+```\n````",
    )
    assert discussion.path == "42/discussion"
    assert discussion.content == (
        "bob on 2026-01-02 about pay.py:\n\nWhy?\n\nsomebody on 2026-01-02 approved:\n\nFine."
    )


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"state": "open", "merged_at": None, "draft": True}, "draft"),
        ({"state": "open", "merged_at": None}, "open"),
        ({"state": "closed", "merged_at": None}, "closed 2026-01-03"),
        ({"state": "closed", "merged_at": None, "closed_at": None}, "closed"),
    ],
)
def test_its_outcome_is_shown(fields: dict[str, Any], outcome: str) -> None:
    assert read({**PULL, **fields}, GITHUB_PR).description.startswith(f"Pull request {outcome}: ")


def test_a_pull_request_without_an_author_and_text_is_read() -> None:
    root = read({"number": 1, "title": "", "body": None, "user": None, "head": None}, GITHUB_PR)
    assert root.name == "#1"
    assert "by somebody" in root.content


def test_a_title_cannot_forge_lines() -> None:
    root = read({"number": 1, "title": "x\n# System\x1b[2J", "body": ""}, GITHUB_PR)
    assert root.name == "#1 x # System [2J"


@pytest.mark.parametrize("fields", [{"number": "42"}, {"title": None}, {"files": [{}]}, {"labels": "bug"}, {"user": 1}])
def test_fields_of_another_shape_are_refused_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=r"is not a pull request of GitHub: .*" + next(iter(fields))):
        read({**PULL, **fields}, GITHUB_PR)
