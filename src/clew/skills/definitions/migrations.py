"""Migrates manifests of earlier versions step by step, with pure functions.

1 → 2: skills listed tools directly; now such a skill has a toolset of the same name.
2 → 3: `loadTrigger` and `requiresExplicit` became `triggers` and `tier`, and names are required.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.errors import ConfigError, ValidationError
from clew.skills.manifest import SUPPORTED, VERSION

Data = dict[str, Any]
_SECTIONS = ("agents", "skills", "toolsets", "tools")


def migrate(data: Data, path: str = "") -> Data:
    """Return the definitions in the current version. Does not change the given data.

    Raises ConfigError for an unsupported version, and ValidationError for data that fit no version.
    """
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version not in SUPPORTED:
        said = "has no version" if version is None else f"has version {str(version)[:40]!s}"
        place = f"{path}: " if path else ""
        raise ConfigError(
            f"{place}the manifest {said}, which is not supported; supported are {list(SUPPORTED)}",
            choices=tuple(str(each) for each in SUPPORTED),
        )
    if version < VERSION:
        _check_shape(data, path)
    while version < VERSION:
        data = _STEPS[version](data)
        version += 1
        data["version"] = version
    return data


def to_version_2(data: Data) -> Data:
    """Give every skill with `tools` a toolset of its name. A manifest without tools gets an entry for each one."""
    skills, toolsets = {}, dict(data.get("toolsets", {}))
    named: dict[str, Data] = {}
    for name, skill in data.get("skills", {}).items():
        tools = skill.get("tools", [])
        kept = {key: value for key, value in skill.items() if key != "tools"}
        skills[name] = {**kept, "toolsets": [*kept.get("toolsets", []), name]} if tools else kept
        if tools:
            toolsets[name] = {"name": name, "description": skill.get("description", ""), "tools": tools}
            named |= {each: {"name": each, "description": ""} for each in tools}
    return {**data, "skills": skills, "toolsets": toolsets, "tools": data.get("tools", named)}


def to_version_3(data: Data) -> Data:
    """Fill in names from the keys, convert `loadTrigger` to a trigger, and `requiresExplicit` to tier 3."""
    migrated = {**data, **{section: _named(data.get(section, {})) for section in _SECTIONS}}
    migrated["skills"] = {name: _tiered(skill) for name, skill in migrated["skills"].items()}
    return migrated


def _check_shape(data: Data, path: str) -> None:
    """Raise ValidationError if a migration cannot run: sections must hold objects, and names must be in lists."""
    for section in _SECTIONS:
        entries = data.get(section, {})
        if not isinstance(entries, dict):
            raise ValidationError(f"{section} must be an object", path=path, field=section)
        for name, entry in entries.items():
            field = f"{section}.{name[:80]}"
            if not isinstance(entry, dict):
                raise ValidationError(f"{field} must be an object", path=path, field=field)
            lists = [entry.get(key, []) for key in ("tools", "toolsets")]
            if not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in lists):
                raise ValidationError(f"{field}: tools and toolsets must be lists of strings", path=path, field=field)


def _named(section: Data) -> Data:
    return {key: {"name": key, **each} for key, each in section.items()}


def _tiered(skill: Data) -> Data:
    kept = {key: value for key, value in skill.items() if key not in ("loadTrigger", "requiresExplicit")}
    if skill.get("loadTrigger"):
        kept["triggers"] = {"pattern": skill["loadTrigger"]}
    if skill.get("requiresExplicit"):
        kept["tier"] = 3
    return kept


_STEPS: dict[int, Callable[[Data], Data]] = {1: to_version_2, 2: to_version_3}
"""The migration from each earlier version to the next."""
