"""A commit of GitHub: its message and files, with the changes as a child."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.github.github_parts import ChangedFile, grow_changes, list_files, on_day
from clew.catalog.formats.json_body import Person, decode_body
from clew.catalog.formats.prose import describe, join_blocks, tell
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import GITHUB_COMMIT, media_type
from clew.catalog.resource import RawContent, ResourceNode

_SHORT = 10


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    date: str | None = None


class CommitMessage(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    author: Signature | None = None


class PushedCommit(msgspec.Struct, frozen=True, kw_only=True):
    sha: str
    commit: CommitMessage
    author: Person | None = None
    html_url: str | None = None
    files: list[ChangedFile] = []

    @property
    def written_by(self) -> str:
        signed = self.commit.author.name if self.commit.author else None
        return str(self.author) if self.author else signed or "somebody"


class GithubCommit:
    name = "commit"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) == GITHUB_COMMIT

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        commit = decode_body(content, PushedCommit, "a commit of GitHub")
        return build_tree(content, base_path, _grow(commit))


def _grow(commit: PushedCommit) -> Branch:
    subject, _, body = commit.commit.message.strip().partition("\n")
    date = commit.commit.author.date if commit.commit.author else None
    facts = tell(f"by {commit.written_by}", on_day("on", date), commit.html_url or "")
    return Branch(
        name=subject or commit.sha[:_SHORT],
        text=join_blocks(f"Commit {commit.sha[:_SHORT]}: {subject}", facts, body, list_files(commit.files)),
        description=f"Commit by {commit.written_by} {on_day('on', date)}: {subject}. {describe(body)}",
        type="commit",
        metadata={"sha": commit.sha, "url": commit.html_url or ""},
        children=grow_changes(commit.files),
    )
