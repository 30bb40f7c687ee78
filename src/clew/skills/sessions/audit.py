"""The audit of an exposure set: time, cause and reason of each load and unload of a skill."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from clew.skills.exposure import EndedExposure, Exposed, Exposure
from clew.skills.manifest import Manifest
from clew.skills.sessions.session import SKILL, brought_by, is_skill


class SkillLoadEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One load of a skill, and its unload if it has ended, with times and causes."""

    skill_name: str
    loaded_at: datetime
    loaded_by: str = ""
    via: str
    why: str = ""
    unloaded_at: datetime | None = None
    unloaded_by: str = ""
    reason: str = ""


def load_events(exposure: Exposure, manifest: Manifest) -> list[SkillLoadEvent]:
    """Return the recorded loads of skills, in order. Each is followed by its dependencies in the current manifest."""
    stays: list[Exposed | EndedExposure] = [*exposure.ended, *exposure.items.values()]
    skills = [each for each in stays if is_skill(each.item)]
    skills.sort(key=lambda each: each.since)
    return [event for each in skills for event in _events(each, manifest)]


def _events(stay: Exposed | EndedExposure, manifest: Manifest) -> Iterator[SkillLoadEvent]:
    skill = stay.item.removeprefix(SKILL)
    event = SkillLoadEvent(
        skill_name=skill, loaded_at=stay.since, loaded_by=stay.by or stay.via, via=stay.via, why=stay.why
    )
    if isinstance(stay, EndedExposure):
        event = msgspec.structs.replace(event, unloaded_at=stay.until, unloaded_by=stay.ended_by, reason=stay.reason)
    yield event
    for name in brought_by(manifest, skill):
        if name != skill:
            yield msgspec.structs.replace(event, skill_name=name, loaded_by=stay.item, why=f"{skill} includes it")
