"""Formats rules for a model: within a token budget, in fences, with their origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from clew.fences import clean, fenced
from clew.llm.tokens import estimate_tokens
from clew.skills.exposure import Via
from clew.skills.rules.files import AgentRule
from clew.trust import printable

ITEM = "rule:"
"""Prefix of rule items in an exposure set."""
WAITING = "its rules are not shown until the user agrees to them"
_UNTRUSTED = "untrusted"


class RuleText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule file or a linked document for an agent. `folder` is the folder that it applies to, empty for the whole
    tree. `via` is the tier: initial, intent or path. `why` is the reason. `left_out` describes a cut. `version` changes
    with the text."""

    path: str
    folder: str
    text: str
    version: str
    tokens: int
    via: Via
    why: str
    left_out: str = ""

    @property
    def item(self) -> str:
        """Its name in an exposure set."""
        return f"{self.place}{self.version}"

    @property
    def place(self) -> str:
        """Prefix of the items of all its versions."""
        return f"{ITEM}{self.path}#"


def as_text(rule: AgentRule, via: Via, why: str, *, is_trusted: bool) -> RuleText:
    """Convert a rule for an agent, without its text if the user has not agreed to it."""
    reason = f"{why}, imported by {rule.imported_by}" if rule.imported_by else why
    return RuleText(
        path=rule.path,
        folder=rule.folder,
        text=clean(rule.text).strip("\n") if is_trusted else "",
        version=rule.digest[:16] if is_trusted else _UNTRUSTED,
        tokens=rule.tokens if is_trusted else 0,
        via=via,
        why=reason,
        left_out="" if is_trusted else WAITING,
    )


def fit(texts: Sequence[RuleText], budget: int) -> list[RuleText]:
    """Fit texts into a budget, in the same order. Rules of inner folders take precedence.

    A text that does not fit now is left out; one that is larger than the budget is cut. Both carry a note.
    """
    room = budget
    fitted: dict[int, RuleText] = {}
    for at in sorted(range(len(texts)), key=lambda at: -_depth(texts[at])):
        each = texts[at]
        if each.tokens > room:
            is_hopeless = each.tokens > budget and room == budget
            each = _cut(each, budget) if is_hopeless else _postponed(each)
        fitted[at] = each
        room -= each.tokens
    return [fitted[at] for at in range(len(texts))]


def render(texts: Iterable[RuleText]) -> str:
    """Format the texts for a prompt, each with its origin, in a fence that its content cannot close."""
    return "\n\n".join(map(_render, texts))


def _render(each: RuleText) -> str:
    name = printable(each.path, 300).replace("`", "'")
    if not each.text:
        return f"`{name}`: {each.left_out}."
    below = printable(each.folder, 300).replace("`", "'")
    holds = f"for files below `{below}`" if each.folder else "for the whole project"
    about = "A document for this work" if each.via == "intent" else f"Rules {holds}"
    rest = f"\n\n{each.left_out}." if each.left_out else ""
    return f"{about}, from `{name}` ({printable(each.why, 300)}):\n\n{fenced(each.text, 'markdown')}{rest}"


def _depth(each: RuleText) -> int:
    return each.folder.count("/") + 1 if each.folder else 0


def _postponed(each: RuleText) -> RuleText:
    reason = (
        f"left out for now, because it has about {each.tokens:,} tokens: read the file, or get it with the next call"
    )
    return msgspec.structs.replace(each, text="", tokens=0, left_out=reason)


def _cut(each: RuleText, room: int) -> RuleText:
    """Keep as many whole lines as fit, or the beginning of a first line that is too long."""
    lines, used = [], 0
    for line in each.text.split("\n"):
        used += estimate_tokens(line) + 1
        if used > room:
            break
        lines.append(line)
    text = "\n".join(lines) or each.text[: room // 2]
    tokens = min(estimate_tokens(text), room)
    reason = f"about {each.tokens - tokens:,} tokens of it are left out: read the file for the rest"
    return msgspec.structs.replace(each, text=text, tokens=tokens, left_out=reason)
