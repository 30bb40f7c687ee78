"""One rule of a permission policy, as a record and in its text form: `exec(git status*)`, `fetch(*.org)`,
`write-file(src/**)`, `grep`."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import Literal

import msgspec

from clew.errors import InvalidInput
from clew.fences import clean
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.globs import glob_matches

Verdict = Literal["allow", "ask", "deny"]
STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

MAX_PATTERN = 2_000

_TEXT = lazy_pattern(r"\s*([^\s()]{1,200})\s*(?:\((.*)\))?\s*", re.S)
_TARGETS = {"exec": "command", "fetch": "domain"}
"""Tool → the kind of pattern in its brackets; for all other tools it is a path."""


class Facet(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a call would do: a tool with at most a path, a command, a host and a route of the catalog."""

    tool: str
    path: str | None = None
    command: str | None = None
    domain: str | None = None
    route: str | None = None


class PermissionRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A verdict on tools whose name matches a glob, limited to these paths, commands or hosts.

    In a command `*` matches anything and `\\*` a star. A path is a glob from the working folder. A domain is a host, or
    `*.example.org` for all hosts below one.
    """

    tool: str
    verdict: Verdict
    path: str | None = None
    command: str | None = None
    domain: str | None = None

    def __post_init__(self) -> None:
        for name in ("tool", "path", "command", "domain"):
            value = getattr(self, name)
            if value is not None and not 0 < len(value) <= MAX_PATTERN:
                raise InvalidInput(f"rule.{name}", f"must have 1 to {MAX_PATTERN:,} characters")

    def matches(self, facet: Facet) -> bool:
        """Whether the rule applies to a facet. Rules that deny ignore case, because some file systems do."""
        return (
            wild_matches(self.tool, facet.tool)
            and (self.path is None or self._matches_path(facet.path))
            and (self.command is None or (facet.command is not None and wild_matches(self.command, facet.command)))
            and (self.domain is None or _matches_domain(self.domain, facet.domain))
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        """The patterns that a call must match beside the tool."""
        return tuple(each for each in (self.path, self.command, self.domain) if each is not None)

    @property
    def specificity(self) -> tuple[int, int, int]:
        """The sort key of rules: number of conditions, whether it names one tool, number of literal characters."""
        letters = sum(len(each) - each.count("*") - each.count("?") for each in (self.tool, *self.conditions))
        return len(self.conditions), "*" not in self.tool, letters

    def as_text(self) -> str:
        """Return the text form of the rule, with all conditions in the brackets."""
        return f"{self.tool}({', '.join(self.conditions)})" if self.conditions else self.tool

    def _matches_path(self, path: str | None) -> bool:
        if path is None or self.path is None:
            return False
        if self.verdict == "allow":
            return glob_matches(self.path, path)
        return glob_matches(clean(self.path).casefold(), clean(path).casefold())


def parse_rule(text: str, verdict: Verdict) -> PermissionRule:
    """Parse the text form of a rule. Raises InvalidInput."""
    found = _TEXT.fullmatch(text)
    if found is None or found[2] == "":
        hint = "Write a tool, such as read-file, or a tool with a pattern: exec(git status*)"
        raise InvalidInput("rule", f"{text[:100]!r} {_why_none(text)}", hint=hint)
    target = _TARGETS.get(found[1], "path")
    pattern = _normal(target, found[2]) if found[2] is not None else None
    return PermissionRule(tool=found[1], verdict=verdict, **({target: pattern} if pattern is not None else {}))


def _why_none(text: str) -> str:
    """Return the reason why a text is not a rule."""
    if not text.strip():
        return "is empty"
    if "(" in text and not text.rstrip().endswith(")"):
        return "has a bracket that is not closed"
    return "has nothing between its brackets" if "()" in text else "is not the name of a tool"


def normal_path(path: str) -> str:
    """Normalise a path. A relative one starts at the working folder."""
    return posixpath.normpath(path) if path else "."


def wild_matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern with `*` wildcards and backslash escapes. Linear in the text."""
    first, *others = _pieces(pattern)
    if not others:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    *between, last = others
    for piece in between:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - at >= len(last) and text.endswith(last)


@lru_cache(maxsize=1_024)
def _pieces(pattern: str) -> tuple[str, ...]:
    """Return the texts between the wildcards."""
    pieces = [""]
    for found in re.finditer(r"\\([\\*])|(\*)|(.)", pattern, re.S):
        if found[2]:
            pieces.append("")
        else:
            pieces[-1] += found[1] or found[3]
    return tuple(pieces)


def _matches_domain(pattern: str, host: str | None) -> bool:
    if host is None:
        return False
    wanted = pattern.lower().rstrip(".")
    if wanted == "*":
        return True
    return host.endswith(wanted[1:]) if wanted.startswith("*.") else host == wanted


def _normal(target: str, pattern: str) -> str:
    if target == "path":
        return normal_path(pattern)
    return pattern.strip().lower().rstrip(".") if target == "domain" else " ".join(pattern.split())
