from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.formats.types import GITHUB_COMMIT
from tests.catalog.formats.documents import read, walk

SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
COMMIT: dict[str, Any] = {
    "sha": SHA,
    "html_url": f"https://github.com/acme/shop/commit/{SHA}",
    "commit": {
        "author": {"name": "Ann", "email": "ann@example.org", "date": "2026-01-02T03:04:05Z"},
        "message": "Retry the payment\n\nIt failed on timeouts.",
        "tree": {"sha": "ab"},
    },
    "author": {"login": "ann"},
    "files": [{"filename": "pay.py", "status": "modified", "additions": 1, "deletions": 0, "patch": "+retry()"}],
}


@pytest.mark.req("ERN-18")
def test_a_commit_tells_its_message_and_its_files() -> None:
    root = read(COMMIT, GITHUB_COMMIT, id=SHA, base="commits")
    assert (root.path, root.name, root.type) == (f"commits/{SHA}", "Retry the payment", "commit")
    assert root.description == "Commit by ann on 2026-01-02: Retry the payment. It failed on timeouts."
    assert root.content == (
        f"Commit 6dcb09b5b5: Retry the payment\n\nby ann; on 2026-01-02; https://github.com/acme/shop/commit/{SHA}\n\n"
        "It failed on timeouts.\n\nFiles:\n- pay.py (modified, +1 -0)"
    )
    (changes,) = root.children
    assert changes.content.endswith("```diff\n+retry()\n```")


def test_an_address_for_mail_is_not_shown() -> None:
    assert not any("example.org" in node.content for node in walk([read(COMMIT, GITHUB_COMMIT)]))


def test_a_commit_without_account_or_message_still_has_a_name() -> None:
    root = read({"sha": SHA, "author": None, "commit": {"message": "", "author": None}}, GITHUB_COMMIT)
    assert root.name == "6dcb09b5b5"
    assert "by somebody" in root.content


def test_a_huge_patch_is_cut_and_a_long_list_of_files_counted() -> None:
    files = [{"filename": f"f{number}", "patch": "+x\n" * 50_000} for number in range(2)]
    files += [{"filename": f"g{number}", "patch": ""} for number in range(500)]
    root = read({**COMMIT, "files": files}, GITHUB_COMMIT)
    assert "- and 202 more" in "".join(node.content for node in walk([root]))
    assert sum(len(node.content) for node in walk([root])) < 70_000
