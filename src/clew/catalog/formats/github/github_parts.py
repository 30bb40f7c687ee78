"""The parts that pull requests, commits and issues of GitHub share: people, labels, files and discussion."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.json_body import Person
from clew.catalog.formats.prose import cut, fence, join_blocks, one_line
from clew.catalog.formats.tree import Branch

MAX_PATCH = 20_000
MAX_LISTED_FILES = 300


class Label(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None


class GithubComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment, a review, or a remark on a line."""

    user: Person | None = None
    body: str | None = None
    created_at: str | None = None
    submitted_at: str | None = None
    state: str | None = None
    path: str | None = None


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    filename: str
    status: str = "changed"
    additions: int = 0
    deletions: int = 0
    patch: str | None = None

    def __str__(self) -> str:
        return f"{self.filename} ({self.status}, +{self.additions} -{self.deletions})"


def name_labels(labels: Sequence[Label | str]) -> str:
    names = [label if isinstance(label, str) else label.name or "" for label in labels]
    return f"labels: {', '.join(filter(None, names))}" if any(names) else ""


def on_day(word: str, time: str | None) -> str:
    return f"{word} {time[:10]}" if time else ""


def list_files(files: Sequence[ChangedFile]) -> str:
    if not files:
        return ""
    left = len(files) - MAX_LISTED_FILES
    more = [f"- and {left:,} more"] if left > 0 else []
    return "\n".join(["Files:", *(f"- {file}" for file in files[:MAX_LISTED_FILES]), *more])


def grow_changes(files: Sequence[ChangedFile]) -> list[Branch]:
    """The patches, when there are any."""
    blocks = [f"{file}\n\n{fence(cut(file.patch, MAX_PATCH), 'diff')}" for file in files if file.patch]
    names = ", ".join(file.filename for file in files[:20])
    text = "\n\n".join(blocks)
    return [Branch(name="Changes", text=text, description=f"Changes of {names}", type="changes")] if blocks else []


def grow_discussion(comments: Sequence[GithubComment]) -> list[Branch]:
    """The comments in order; empty without any."""
    blocks = [_show_comment(comment) for comment in comments if (comment.body or "").strip()]
    people = ", ".join(dict.fromkeys(str(comment.user or Person()) for comment in comments))
    text = "\n\n".join(blocks)
    about = f"Discussion between {people}"
    return [Branch(name="Discussion", text=text, description=about, type="discussion")] if blocks else []


def _show_comment(comment: GithubComment) -> str:
    when = on_day("on", comment.submitted_at or comment.created_at)
    state = (comment.state or "").lower().replace("_", " ")
    place = f"about {comment.path}" if comment.path else ""
    head = one_line(" ".join(filter(None, (str(comment.user or Person()), when, state, place))))
    return join_blocks(f"{head}:", comment.body)
