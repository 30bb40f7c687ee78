"""A pull request of GitHub: its text and files, with changes and discussion as children."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.github.github_parts import (
    ChangedFile,
    GithubComment,
    Label,
    grow_changes,
    grow_discussion,
    list_files,
    name_labels,
    on_day,
)
from clew.catalog.formats.json_body import Person, decode_body
from clew.catalog.formats.prose import describe, join_blocks, tell
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import GITHUB_PR, media_type
from clew.catalog.resource import RawContent, ResourceNode


class Ref(msgspec.Struct, frozen=True, kw_only=True):
    ref: str = ""


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    title: str
    body: str | None = None
    state: str = "open"
    draft: bool | None = None
    user: Person | None = None
    html_url: str | None = None
    created_at: str | None = None
    closed_at: str | None = None
    merged_at: str | None = None
    labels: list[Label | str] = []
    head: Ref | None = None
    base: Ref | None = None
    files: list[ChangedFile] = []
    discussion: list[GithubComment] = []

    @property
    def outcome(self) -> str:
        if self.merged_at:
            return on_day("merged", self.merged_at)
        if self.state == "closed":
            return on_day("closed", self.closed_at) or "closed"
        return "draft" if self.draft else self.state


class PullRequest:
    name = "pull-request"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) == GITHUB_PR

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        pull = decode_body(content, Pull, "a pull request of GitHub")
        return build_tree(content, base_path, _grow(pull))


def _grow(pull: Pull) -> Branch:
    way = f"{pull.head.ref} into {pull.base.ref}" if pull.head and pull.base else ""
    facts = tell(f"by {pull.user or Person()}", pull.outcome, way, name_labels(pull.labels), pull.html_url or "")
    about = describe(pull.body or "")
    return Branch(
        name=f"#{pull.number} {pull.title}",
        text=join_blocks(f"Pull request #{pull.number}: {pull.title}", facts, pull.body, list_files(pull.files)),
        description=f"Pull request {pull.outcome}: {pull.title}. {about}",
        type="pull_request",
        metadata={"number": pull.number, "state": pull.outcome.partition(" ")[0], "url": pull.html_url or ""},
        children=[*grow_changes(pull.files), *grow_discussion(pull.discussion)],
    )
