"""Loading and unloading as pure functions from items to items: permissions of the agent, limits, and eviction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

import msgspec

from clew.decode_errors import MAX_SHOWN, suggest
from clew.errors import ValidationError
from clew.skills.exposure import Exposed, Items, Via
from clew.skills.manifest import AgentSpec, Manifest
from clew.skills.sessions.session import (
    AGENT,
    MAX_LOAD_DEPTH,
    SKILL,
    TOOLSET,
    Withhold,
    brought_by,
    cost_of,
    derive,
    is_skill,
    withhold_nothing,
)
from clew.skills.triggers import TriggeredSkill

MAX_SKILLS = 100
"""The default limit for skills in a session, dependencies included."""

MAX_NAMED = 30
"""An error lists at most this many names, else only their number. Its context has all of them."""

WhenFull = Literal["refuse", "evict"]
PASSING: tuple[Via, ...] = ("trigger", "intent", "path")
"""Automatic loads, which are evicted first."""
TRIGGERED: tuple[Via, ...] = ("trigger", "path")
"""Loads by a turn of the conversation, which a later turn removes."""


class LoadTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms for loads of one agent: the manifest, the agent, the limits, and the withheld skills."""

    manifest: Manifest
    agent: AgentSpec
    max_skills: int = MAX_SKILLS
    when_full: WhenFull = "refuse"
    withhold: Withhold = withhold_nothing


class LoadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a load: its origin, reason, loader, start and end."""

    since: datetime
    via: Via = "load"
    why: str = ""
    by: str = ""
    until: datetime | None = None


def loadable_skills(terms: LoadTerms) -> tuple[str, ...]:
    """Return the skills that an agent may load, initial ones first.

    An agent that lists no skills may load all: agent files of other programs have no such list.
    """
    names = terms.agent.loadable or tuple(terms.manifest.skills)
    return tuple(name for name in names if name in terms.manifest.skills)


def loadable_toolsets(terms: LoadTerms) -> tuple[str, ...]:
    """Return the toolsets that an agent may load without a skill: those of its skills, or all if it lists no skills."""
    if not terms.agent.loadable:
        return tuple(terms.manifest.toolsets)
    skills = [each for name in loadable_skills(terms) for each in brought_by(terms.manifest, name)]
    names = dict.fromkeys(toolset for skill in skills for toolset in terms.manifest.skills[skill].toolsets)
    return tuple(name for name in names if name in terms.manifest.toolsets)


def begin(items: Items, terms: LoadTerms, since: datetime, *, brings: bool = True) -> Items:
    """Return the items of a session that has begun: its mark, and with `brings` the initial skills of the agent. A
    session that has begun already stays unchanged, even if an initial skill was unloaded.

    The limit does not apply to initial skills. A withheld skill has no effect while it is withheld. Raises
    ValidationError as `check_chain` does.
    """
    mark = f"{AGENT}{terms.agent.name}"
    if mark in items:
        return items
    stamp = LoadRecord(since=since, via="initial", why=f"agent {terms.agent.name} starts with it", by=mark)
    first = starting_skills(terms) if brings else ()
    for name in first:
        if name in terms.manifest.skills:
            check_chain(terms, name)
    wanted = [f"{SKILL}{name}" for name in first]
    started = Exposed(item=mark, via="initial", why="the session began", since=since, by=mark)
    return {mark: started, **items, **_new(items, wanted, terms, stamp)}


def starting_skills(terms: LoadTerms) -> tuple[str, ...]:
    """Return the initial skills of an agent: those that it lists, then those of the first tier that it may load."""
    core = (name for name in loadable_skills(terms) if terms.manifest.skills[name].tier == 1)
    return tuple(dict.fromkeys((*terms.agent.initial_skills, *core)))


def follow(items: Items, matched: Sequence[TriggeredSkill], terms: LoadTerms, since: datetime) -> Items:
    """Return the items after a turn: with the skills that it triggers, without those that only earlier turns triggered.
    A skill that may not be loaded, or has no room, is skipped. Other items stay."""
    names = {f"{SKILL}{each.skill}" for each in matched}
    items = {key: each for key, each in items.items() if not _is_triggered(each) or key in names}
    for each in matched:
        stamp = LoadRecord(since=since, via=each.via, why=each.why, by="turn")
        with suppress(ValidationError):
            items = load_skills(items, [each.skill], terms, stamp)
    return items


def load_skills(items: Items, names: Sequence[str], terms: LoadTerms, stamp: LoadRecord) -> Items:
    """Return the items with these skills. A loaded skill stays as it is, but a skill that was triggered, or loaded for
    a time, stays for good once it is loaded by name.

    Raises ValidationError if a skill does not exist, is withheld, is not allowed for the agent, or has circular or too
    deep dependencies, and if the session would hold too many skills.
    """
    for name in names:
        check_skill(terms, name)
        check_chain(terms, name)
        check_withheld(terms, name)
    wanted = [f"{SKILL}{name}" for name in names]
    new = _new(items, wanted, terms, stamp)
    return _fitted(items, new, wanted, terms) if new else items


def load_toolset(items: Items, name: str, terms: LoadTerms, stamp: LoadRecord) -> Items:
    """Return the items with a toolset. Raises ValidationError if it does not exist or the agent may not load it."""
    check_toolset(terms, name)
    return {**items, **_new(items, [f"{TOOLSET}{name}"], terms, stamp)}


def unload_skill(items: Items, name: str, terms: LoadTerms) -> Items:
    """Return the items without a skill. Dependencies of other skills stay. Raises ValidationError for an unknown
    skill."""
    if f"{SKILL}{name}" not in items and name not in terms.manifest.skills:
        raise _unknown("skill", name, loadable_skills(terms), terms)
    return {key: each for key, each in items.items() if key != f"{SKILL}{name}"}


def unload_toolset(items: Items, name: str, terms: LoadTerms) -> Items:
    """Return the items without a toolset that was loaded without a skill. Raises ValidationError for an unknown
    toolset."""
    if f"{TOOLSET}{name}" not in items and name not in terms.manifest.toolsets:
        raise _unknown("toolset", name, loadable_toolsets(terms), terms)
    return {key: each for key, each in items.items() if key != f"{TOOLSET}{name}"}


def skills_bringing(items: Iterable[str], terms: LoadTerms, *, skill: str = "", toolset: str = "") -> tuple[str, ...]:
    """Return the loaded skills that include another skill or a toolset."""
    loaded = [item.removeprefix(SKILL) for item in items if is_skill(item)]
    return tuple(name for name in loaded if name != skill and _brings(terms, name, skill, toolset))


def check_skill(terms: LoadTerms, name: str) -> None:
    """Raise ValidationError unless the skill exists and the agent may load it."""
    available = loadable_skills(terms)
    if name not in terms.manifest.skills:
        raise _unknown("skill", name, available, terms)
    if name not in available:
        raise _refused("skill", name, "it is not one of its skills", available, terms)


def check_toolset(terms: LoadTerms, name: str) -> None:
    """Raise ValidationError unless the agent may load a toolset."""
    available = loadable_toolsets(terms)
    if name not in terms.manifest.toolsets:
        raise _unknown("toolset", name, available, terms)
    if name not in available:
        raise _refused("toolset", name, "none of its skills has it", available, terms)


def check_chain(terms: LoadTerms, name: str) -> None:
    """Raise ValidationError if a dependency of a skill does not exist, or if the dependencies are circular or deeper
    than MAX_LOAD_DEPTH levels."""
    deepest: dict[str, int] = {}

    def follow(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            raise ValidationError(f"circular dependency of skills: {circle}", skillName=path[0], cycle=circle)
        if len(path) == MAX_LOAD_DEPTH:
            chain = " → ".join((*path, name))
            message = f"dependencies of skills are deeper than {MAX_LOAD_DEPTH} levels: {chain}"
            raise ValidationError(message, skillName=path[0], depth=len(path) + 1, limit=MAX_LOAD_DEPTH)
        if deepest.get(name, -1) >= len(path):
            return
        deepest[name] = len(path)
        if name not in terms.manifest.skills:
            raise _unknown("skill", name, tuple(terms.manifest.skills), terms, f", which {path[-1]} includes")
        for each in terms.manifest.skills[name].skills:
            follow(each, (*path, name))

    follow(name, ())


def check_withheld(terms: LoadTerms, name: str) -> None:
    """Raise ValidationError if a skill or one of its dependencies is withheld."""
    for each in brought_by(terms.manifest, name):
        if reason := terms.withhold(terms.manifest.skills[each]):
            about = reason if each == name else f"it includes {each}: {reason}"
            message = f"agent {terms.agent.name} may not load skill {name}: {about}"
            raise ValidationError(message, skillName=name, withheldSkill=each, requestedBy=terms.agent.name)


def _brings(terms: LoadTerms, name: str, skill: str, toolset: str) -> bool:
    brought = tuple(brought_by(terms.manifest, name, terms.withhold))
    return skill in brought or any(toolset in terms.manifest.skills[each].toolsets for each in brought)


def _new(items: Items, wanted: Sequence[str], terms: LoadTerms, stamp: LoadRecord) -> dict[str, Exposed]:
    """Return the items to add: those that are absent, or present only temporarily."""
    lasts = stamp.via not in PASSING and stamp.until is None
    new = [item for item in wanted if item not in items or (lasts and _is_passing(items[item]))]
    return {
        item: Exposed(
            item=item,
            via=stamp.via,
            why=stamp.why,
            since=stamp.since,
            tokens=cost_of(terms.manifest, derive(terms.manifest, "", [item], terms.withhold)),
            by=stamp.by,
            until=stamp.until,
        )
        for item in new
    }


def _is_triggered(exposed: Exposed) -> bool:
    return exposed.via in TRIGGERED and is_skill(exposed.item)


def _is_passing(exposed: Exposed) -> bool:
    return exposed.via in PASSING or exposed.until is not None


def _fitted(before: Items, new: Items, wanted: Sequence[str], terms: LoadTerms) -> Items:
    """Return the items within the limit. Eviction takes automatic loads first, then loads by name, the oldest first;
    never an initial skill, nor one that is being loaded."""
    items = {**before, **new}
    leaving = [item for item, each in items.items() if item not in wanted and _may_leave(each)]
    leaving.sort(key=lambda item: (items[item].via not in PASSING, items[item].since))
    count = _count(items, terms)
    while count > terms.max_skills:
        if terms.when_full == "refuse" or not leaving:
            raise ValidationError(
                f"{count} skills are over the limit of {terms.max_skills} for a session",
                hint="Unload a skill that is no longer needed",
                loadedSkills=[item.removeprefix(SKILL) for item in before if is_skill(item)],
                limit=terms.max_skills,
                requestedBy=terms.agent.name,
            )
        items = {item: each for item, each in items.items() if item != leaving[0]}
        del leaving[0]
        count = _count(items, terms)
    return items


def _may_leave(each: Exposed) -> bool:
    return is_skill(each.item) and each.via != "initial"


def _count(items: Items, terms: LoadTerms) -> int:
    return len(derive(terms.manifest, "", items, terms.withhold).discovered_skills)


def _unknown(kind: str, name: str, available: Sequence[str], terms: LoadTerms, where: str = "") -> ValidationError:
    return _error(kind, name, f"unknown {kind} {name[:MAX_SHOWN]!r}{where}", available, terms)


def _refused(kind: str, name: str, reason: str, available: Sequence[str], terms: LoadTerms) -> ValidationError:
    return _error(kind, name, f"agent {terms.agent.name} may not load {kind} {name}: {reason}", available, terms)


def _error(kind: str, name: str, message: str, available: Sequence[str], terms: LoadTerms) -> ValidationError:
    noun = f"{kind}s"
    hint = suggest(name, available, f"Its {noun} are")
    if len(available) > MAX_NAMED:
        near, _, _ = hint.rpartition(f"Its {noun} are")
        hint = f"{near}It may load {len(available)} {noun}"
    context: dict[str, Any] = {
        f"{kind}Name": name,
        f"available{noun.capitalize()}": tuple(available),
        "requestedBy": terms.agent.name,
    }
    return ValidationError(message, allowed=available, hint=hint, **context)
