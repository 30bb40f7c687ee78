"""Failures and what resolved them, as commits tell it: what was reverted, what was fixed, and decisions that break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from clew.knowledge.history.commits import Commit
from clew.knowledge.history.decision import Decision

ResolutionKind = Literal["fixes", "reverts"]

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,40})\b|\bReverts?:?\s+([0-9a-f]{7,40})\b")
_FIXES = re.compile(
    r"\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?)\b:?\s+((?:[\w.-]+/[\w.-]+)?#\d{1,7}|[A-Z][A-Z0-9]{1,9}-\d{1,6}|[0-9a-f]{12,40}\b)",
    re.IGNORECASE,
)
_CONVENTIONAL = re.compile(r"(?P<type>[a-z]{2,12})(?:\((?P<scope>[^)]{1,60})\))?(?P<breaks>!)?:\s+(?P<what>.+)")
_BREAKING = re.compile(r"^BREAKING[ -]CHANGE:\s*(.+)", re.MULTILINE)
_TRAILERS = frozenset(("decision", "why", "reason", "rationale", "breaking-change", "breaking change"))


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """A failure and the commit that ended it. `failure` is an issue (`#12`) or the commit that was wrong."""

    kind: ResolutionKind
    failure: str
    commit: str
    what: str
    files: tuple[str, ...] = ()


def find_resolutions(commits: Iterable[Commit]) -> list[Resolution]:
    """Pairs of failure and resolution, in the order of the commits, each once."""
    found = [resolution for commit in commits for resolution in _resolutions(commit)]
    return list({(each.failure, each.commit): each for each in found}.values())


def find_commit_decisions(commits: Iterable[Commit]) -> list[Decision]:
    """Decisions that commits tell of: changes that break, by mark or footer, and trailers that give a reason."""
    return [decision for commit in commits for decision in _decisions(commit)]


def _resolutions(commit: Commit) -> Iterator[Resolution]:
    text = "\n".join([commit.subject, commit.body, *(f"{name}: {value}" for name, value in commit.trailers)])
    files = tuple(file.path for file in commit.files[:50])
    for found in _REVERTS.finditer(text):
        yield Resolution(
            kind="reverts", failure=found[1] or found[2], commit=commit.sha, what=commit.subject, files=files
        )
    for found in _FIXES.finditer(text):
        yield Resolution(kind="fixes", failure=found[1], commit=commit.sha, what=commit.subject, files=files)


def _decisions(commit: Commit) -> Iterator[Decision]:
    marked = _CONVENTIONAL.fullmatch(commit.subject)
    broken = _BREAKING.search(commit.body)
    if broken or (marked and marked["breaks"]):
        yield _decision(commit, "breaking", broken[1] if broken else commit.subject)
        return
    for name, value in commit.trailers:
        if name.lower() in _TRAILERS:
            yield _decision(commit, name.lower(), value)


def _decision(commit: Commit, status: str, text: str) -> Decision:
    return Decision(
        kind="commit",
        title=commit.subject,
        source=commit.sha,
        line=0,
        hash=commit.sha,
        status=status,
        day=commit.at.date(),
        context=commit.body,
        decision=text.strip(),
    )
