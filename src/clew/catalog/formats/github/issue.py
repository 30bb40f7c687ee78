"""An issue of GitHub: its text, with the discussion as a child."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.github.github_parts import GithubComment, Label, grow_discussion, name_labels, on_day
from clew.catalog.formats.json_body import Person, decode_body
from clew.catalog.formats.prose import describe, join_blocks, tell
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import GITHUB_ISSUE, media_type
from clew.catalog.resource import RawContent, ResourceNode


class ReportedIssue(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    title: str
    body: str | None = None
    state: str = "open"
    state_reason: str | None = None
    user: Person | None = None
    html_url: str | None = None
    created_at: str | None = None
    labels: list[Label | str] = []
    discussion: list[GithubComment] = []


class Issue:
    name = "issue"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) == GITHUB_ISSUE

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        issue = decode_body(content, ReportedIssue, "an issue of GitHub")
        return build_tree(content, base_path, _grow(issue))


def _grow(issue: ReportedIssue) -> Branch:
    state = " as ".join(filter(None, (issue.state, (issue.state_reason or "").replace("_", " "))))
    opened = f"{on_day('opened', issue.created_at) or 'opened'} by {issue.user or Person()}"
    return Branch(
        name=f"#{issue.number} {issue.title}",
        text=join_blocks(
            f"Issue #{issue.number}: {issue.title}",
            tell(state, opened, name_labels(issue.labels), issue.html_url or ""),
            issue.body,
        ),
        description=f"Issue, {issue.state}: {issue.title}. {describe(issue.body or '')}",
        type="issue",
        metadata={"number": issue.number, "state": issue.state, "url": issue.html_url or ""},
        children=grow_discussion(issue.discussion),
    )
