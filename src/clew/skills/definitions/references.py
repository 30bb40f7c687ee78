"""Checks references between definitions: every name exists, and skills do not include each other in a cycle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from clew.skills.checks.problems import Kind, Severity
from clew.skills.checks.suggestions import nearest
from clew.skills.manifest import Manifest, Skill, is_route
from clew.skills.sessions.session import MAX_LOAD_DEPTH

MAX_ALLOWED = 200
"""The number of valid names that a problem lists."""


class BadReference(msgspec.Struct, frozen=True, kw_only=True):
    """A bad reference: item `number` of a field of the definition `name` refers to `target`."""

    sort: str
    name: str
    field: str
    number: int
    target: str
    message: str
    kind: Kind = "build"
    severity: Severity = "error"
    allowed: tuple[str, ...] = ()
    nearest: str = ""
    context: dict[str, Any] = {}


class DefinedNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names that definitions may refer to."""

    skills: Collection[str]
    toolsets: Collection[str]
    tools: Collection[str]


def find_bad_references(manifest: Manifest, names: DefinedNames) -> list[BadReference]:
    """Return all bad references, sorted by agents, skills, toolsets and tools.

    They are errors in Clew's own format. In other formats, and for related tools, they are warnings.
    """
    found: list[BadReference] = []
    for agent in manifest.agents.values():
        given = {"initial_skills": agent.initial_skills, "skills": agent.skills}
        found += find_unknown("agent", agent.name, given, names, _severity(agent.origin))
    for skill in manifest.skills.values():
        given = {"toolsets": skill.toolsets, "skills": skill.skills}
        found += find_unknown("skill", skill.name, given, names, _severity(skill.origin))
    for toolset in manifest.toolsets.values():
        found += find_unknown("toolset", toolset.name, {"tools": toolset.tools}, names)
    for tool in manifest.tools.values():
        if not tool.is_executable:
            found += find_unknown("tool", tool.name, {"see_also": tool.see_also}, names, "warning")
    return found + find_cycles(manifest.skills)


def find_unknown(
    sort: str, name: str, given: Mapping[str, Sequence[str]], names: DefinedNames, severity: Severity = "error"
) -> Iterator[BadReference]:
    """Return the references of a definition to names that do not exist, in order. Routes always count as known."""
    known: dict[str, tuple[str, Collection[str]]] = {
        "initial_skills": ("skill", names.skills),
        "skills": ("skill", names.skills),
        "toolsets": ("toolset", names.toolsets),
        "tools": ("tool", names.tools),
        "see_also": ("tool", names.tools),
    }
    for field, wanted in given.items():
        target, there = known[field]
        for number, each in enumerate(wanted):
            if each not in there and not (target == "tool" and is_route(each)):
                yield _unknown(sort, name, field, number, each, target, tuple(sorted(there)), severity)


def _severity(origin: str) -> Severity:
    return "error" if origin == "clew" else "warning"


def _unknown(
    sort: str,
    name: str,
    field: str,
    number: int,
    wanted: str,
    target: str,
    allowed: tuple[str, ...],
    severity: Severity,
) -> BadReference:
    return BadReference(
        sort=sort,
        name=name,
        field=field,
        number=number,
        target=wanted,
        message=f"unknown {target} `{wanted[:80]}`",
        severity=severity,
        allowed=allowed[:MAX_ALLOWED],
        nearest=nearest(wanted, allowed),
        context={f"{target}Name": wanted, f"available{target.capitalize()}s": allowed, "requestedBy": name},
    )


def find_cycles(skills: Mapping[str, Skill]) -> list[BadReference]:
    """Return circular dependencies of skills and chains that are too deep, each once, at one place that causes it."""
    closing = _closing(skills)
    found = [_cycle(skills[name], number, path) for name, (number, path) in closing.items()]
    depths: dict[str, int] = {}
    for name in _dependencies_first(skills, closing):
        below = [depths[each] for each in skills[name].skills if each in depths] if name not in closing else []
        depths[name] = 1 + max(below, default=0)
        if depths[name] > MAX_LOAD_DEPTH:
            found.append(_too_deep(skills[name], depths))
            depths[name] = 0
    return found


def _closing(skills: Mapping[str, Skill]) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the skills that close a cycle, each with the number of the reference and the cycle. Without these skills
    there are no cycles."""
    closing: dict[str, tuple[int, tuple[str, ...]]] = {}
    done: set[str] = set()
    for start in sorted(skills):
        path: dict[str, Iterator[tuple[int, str]]] = {}
        name: str | None = start if start not in done else None
        while name is not None:
            waiting = path.setdefault(name, enumerate(skills[name].skills))
            number, below = next(waiting, (-1, ""))
            if number < 0:
                done.add(name)
                path.popitem()
                name = next(reversed(path), None)
            elif below in path and name not in closing:
                names = list(path)
                closing[name] = (number, (*names[names.index(below) :], below))
            elif below in skills and below not in done and below not in path:
                name = below
    return closing


def _dependencies_first(skills: Mapping[str, Skill], closing: Collection[str]) -> Iterable[str]:
    """Order the skills so that each comes after those it includes. A skill that closes a cycle is treated as if it
    included none."""
    order: dict[str, None] = {}
    for start in sorted(skills):
        waiting = [(start, False)]
        while waiting:
            name, is_done = waiting.pop()
            if is_done:
                order[name] = None
            elif name not in order:
                waiting.append((name, True))
                below = () if name in closing else skills[name].skills
                waiting += [(each, False) for each in below if each in skills and each not in order]
    return order


def _cycle(skill: Skill, number: int, path: tuple[str, ...]) -> BadReference:
    shown = " → ".join(path if len(path) <= 12 else (*path[:6], "…", *path[-5:]))
    return BadReference(
        sort="skill",
        name=skill.name,
        field="skills",
        number=number,
        target=skill.skills[number],
        kind="validation",
        message=f"circular dependency of skills: {shown}",
        allowed=("skills that do not include this one",),
        context={"skillName": skill.name, "cycle": path},
    )


def _too_deep(skill: Skill, depths: Mapping[str, int]) -> BadReference:
    deepest = max(range(len(skill.skills)), key=lambda number: depths.get(skill.skills[number], 0))
    levels = depths[skill.name]
    return BadReference(
        sort="skill",
        name=skill.name,
        field="skills",
        number=deepest,
        target=skill.skills[deepest],
        kind="validation",
        message=f"`{skill.skills[deepest]}` includes skills {levels} levels deep",
        allowed=(f"at most {MAX_LOAD_DEPTH} levels",),
        context={"skillName": skill.name, "depth": levels, "limit": MAX_LOAD_DEPTH},
    )
