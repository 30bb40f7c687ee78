"""The skills that an agent could load, told within a number of tokens however many there are.

With room to spare each has its description; with less only the beginning of it, then only names, then the first names
of each domain. How many were left out is always said: the search sees all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from clew.llm.tokens import estimate_tokens
from clew.skills.manifest import Skill

BUDGET = 1_500
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_SHORT, _LONG = 80, 400

Line = Callable[[Skill], str]


def build_catalogue(skills: Sequence[Skill], budget: int = BUDGET) -> str:
    """One line a skill, important ones first; empty where there are none. Never over the budget, counted with
    `estimate_tokens`, unless not even the line that says how many there are fits."""
    ordered = sorted(skills, key=lambda skill: (skill.tier, -skill.priority, skill.name))
    if not ordered:
        return ""
    for line in (_long, _short):
        text = "\n".join(map(line, ordered))
        if estimate_tokens(text) <= budget:
            return text
    return _names(ordered, budget)


def one_line(text: str, limit: int = _LONG) -> str:
    """A text without line ends, signs that format it, or more characters than `limit`."""
    flat = " ".join(text.replace("`", "").split())
    return flat if len(flat) <= limit else flat[: limit - 1].rsplit(" ", 1)[0] + "…"


def _long(skill: Skill) -> str:
    return f"- **{one_line(skill.name, 100)}**: {one_line(skill.description)}"


def _short(skill: Skill) -> str:
    return f"- **{one_line(skill.name, 100)}**: {one_line(_SENTENCE.split(skill.description, 1)[0], _SHORT)}"


def _names(skills: Sequence[Skill], budget: int) -> str:
    """Names by domain, as many as fit, every domain with some of its own."""
    domains: dict[str, list[str]] = {}
    for skill in skills:
        domains.setdefault(skill.domain, []).append(one_line(skill.name, 100))
    shown = len(skills)
    while True:
        kept = _shares(domains, shown)
        text = _fold(domains, kept, len(skills) - sum(kept.values()))
        if estimate_tokens(text) <= budget or shown == 0:
            return text
        shown = min(shown - 1, int(shown * 0.95))


def _shares(domains: dict[str, list[str]], shown: int) -> dict[str, int]:
    """How many names of each domain: in turns, until so many are given out or all are."""
    kept = dict.fromkeys(domains, 0)
    left = min(shown, sum(map(len, domains.values())))
    for turn in range(max(map(len, domains.values()))):
        for domain, names in domains.items():
            if turn < len(names) and left:
                kept[domain] += 1
                left -= 1
    return kept


def _fold(domains: dict[str, list[str]], kept: dict[str, int], missing: int) -> str:
    lines = []
    for domain, names in domains.items():
        if kept[domain]:
            listed = ", ".join(names[: kept[domain]])
            lines.append(f"- {one_line(domain, 40)}: {listed}" if domain else f"- {listed}")
    if missing:
        lines.append(f"- and {missing:,} more: describe what you need to find them")
    return "\n".join(lines)
