"""The list of loadable skills, within a token budget.

The list has the form with the most detail that fits the budget: each skill with its description, with the first
sentence, with its name alone, or only the first names of each domain. It always gives the number of omitted skills.
Search covers all skills.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest

from clew.llm.tokens import estimate_tokens
from clew.skills.manifest import Skill

BUDGET = 1_500
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_SHORT, _LONG = 80, 400


def build_catalogue(skills: Sequence[Skill], budget: int = BUDGET) -> str:
    """Return one line per skill, by priority; empty without skills. The text is within the budget, as counted by
    `estimate_tokens`, unless the budget is too small even for the line with the count."""
    ordered = sorted(skills, key=lambda skill: (skill.tier, -skill.priority, skill.name))
    if not ordered:
        return ""
    for line in (head, _short):
        text = _within(budget, map(line, ordered))
        if text:
            return text
    return _names(ordered, budget)


@lru_cache(maxsize=4_096)
def one_line(text: str, limit: int = _LONG) -> str:
    """Return a text on one line, without markup and with at most `limit` characters."""
    flat = " ".join(text.replace("`", "").split())
    return flat if len(flat) <= limit else flat[: limit - 1].rsplit(" ", 1)[0] + "…"


def head(skill: Skill) -> str:
    """Return the name and description of a skill on one line."""
    return f"- **{one_line(skill.name, 100)}**: {one_line(skill.description)}"


def _short(skill: Skill) -> str:
    return f"- **{one_line(skill.name, 100)}**: {one_line(_SENTENCE.split(skill.description, 1)[0], _SHORT)}"


def _within(budget: int, lines: Iterable[str]) -> str:
    """Join lines, or return an empty text if they exceed the budget. Stops reading as soon as that is known."""
    made, least = [], 0
    for line in lines:
        made.append(line)
        least += estimate_tokens(line) - 1  # an estimate rounds up
        if least > budget:
            return ""
    text = "\n".join(made)
    return text if estimate_tokens(text) <= budget else ""


def _names(skills: Sequence[Skill], budget: int) -> str:
    """Return as many names by domain as fit. Every domain gets some."""
    domains: dict[str, list[str]] = {}
    for skill in skills:
        domains.setdefault(skill.domain, []).append(one_line(skill.name, 100))
    turns = zip_longest(*([domain] * len(names) for domain, names in domains.items()))
    order = [domain for domain in chain.from_iterable(turns) if domain is not None]

    def tokens(shown: int) -> int:
        return estimate_tokens(_fold(domains, Counter(order[:shown]), len(order) - shown))

    shown = max(0, bisect_right(range(len(order) + 1), budget, key=tokens) - 1)
    return _fold(domains, Counter(order[:shown]), len(order) - shown)


def _fold(domains: Mapping[str, Sequence[str]], kept: Mapping[str, int], missing: int) -> str:
    """List the first names of each domain, and the number of the others."""
    lines = []
    for domain, names in domains.items():
        if kept[domain]:
            listed = ", ".join(names[: kept[domain]])
            lines.append(f"- {one_line(domain, 40)}: {listed}" if domain else f"- {listed}")
    if missing:
        lines.append(f"- and {missing:,} more: describe what you need to find them")
    return "\n".join(lines)
