from __future__ import annotations

from typing import Any

from clew.catalog.formats.types import GITHUB_ISSUE
from tests.catalog.formats.documents import read

ISSUE: dict[str, Any] = {
    "number": 7,
    "title": "Login fails",
    "state": "closed",
    "state_reason": "not_planned",
    "user": {"login": "eve"},
    "body": "It says 500.",
    "labels": ["bug", {"name": "login"}, {"name": None}],
    "created_at": "2026-02-03T00:00:00Z",
    "html_url": "https://github.com/acme/shop/issues/7",
    "comments": 2,
}


def test_an_issue_tells_what_was_reported() -> None:
    root = read(ISSUE, GITHUB_ISSUE, id="7", base="issues")
    assert (root.path, root.name, root.type) == ("issues/7", "#7 Login fails", "issue")
    assert root.description == "Issue, closed: Login fails. It says 500."
    assert root.content == (
        "Issue #7: Login fails\n\nclosed as not planned; opened 2026-02-03 by eve; labels: bug, login; "
        "https://github.com/acme/shop/issues/7\n\nIt says 500."
    )


def test_its_discussion_is_a_child_in_order() -> None:
    said = [{"user": {"login": name}, "body": text} for name, text in (("ann", "Same."), ("bob", "Fixed."))]
    (discussion,) = read({**ISSUE, "discussion": said}, GITHUB_ISSUE, id="7").children
    assert (discussion.path, discussion.type) == ("7/discussion", "discussion")
    assert discussion.content == "ann:\n\nSame.\n\nbob:\n\nFixed."
    assert discussion.description == "Discussion between ann, bob"


def test_a_long_report_goes_on_in_parts() -> None:
    root = read({**ISSUE, "body": "A log line.\n" * 2_000}, GITHUB_ISSUE)
    assert {child.type for child in root.children} == {"part"}
