"""The meta-tools: by these an agent sees which skills there are, and loads and unloads them itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from clew.errors import ManifestError
from clew.skills.loads import Terms, loadable_skills
from clew.skills.registry import META_TOOLS
from clew.skills.session import brought_by
from clew.tools.tool import Effects, Tool, tool

_READING = Effects(reads_only=True, repeats_safely=True, reaches_out=False)
_LOADING = Effects(repeats_safely=True, reaches_out=False)


class Loading(Protocol):
    """What the meta-tools need of a session."""

    @property
    def terms(self) -> Terms: ...

    async def load_skill(self, name: str, *, by: str = "") -> Any: ...

    async def load_toolset(self, name: str, *, by: str = "") -> Any: ...

    async def unload_skill(self, name: str, *, by: str = "") -> Any: ...

    async def unload_toolset(self, name: str, *, by: str = "") -> Any: ...

    def skill_content(self, name: str) -> str: ...

    def toolset_content(self, name: str) -> str: ...


def meta_tools(session: Loading) -> dict[str, Tool]:
    """The five meta-tools of a session, by name. A refusal is an answer: `{error, availableSkills}`."""

    @tool(name="listAvailableSkills", effects=_READING)
    async def list_available_skills() -> list[dict[str, Any]]:
        """List the skills that you can load: their names, what they are for, and the toolsets that they bring."""
        return available_skills(session.terms)

    @tool(name="loadSkill", effects=_LOADING)
    async def load_skill(skillName: str) -> dict[str, Any]:
        """Load a skill: its instructions come back, and its tools become available.

        Args:
            skillName: a name that listAvailableSkills shows
        """
        try:
            await session.load_skill(skillName, by="loadSkill")
        except ManifestError as error:
            return _refusal(error, "availableSkills")
        skills = brought_by(session.terms.manifest, skillName, session.terms.withhold)
        toolsets = [each for name in skills for each in session.terms.manifest.skills[name].toolsets]
        content = session.skill_content(skillName)
        return {"success": True, "name": skillName, "content": content, "toolsets": list(dict.fromkeys(toolsets))}

    @tool(name="loadToolset", effects=_LOADING)
    async def load_toolset(toolsetName: str) -> dict[str, Any]:
        """Load one toolset without its skill: notes on its use come back, and its tools become available.

        Args:
            toolsetName: a name that listAvailableSkills shows among the toolsets of a skill
        """
        try:
            await session.load_toolset(toolsetName, by="loadToolset")
        except ManifestError as error:
            return _refusal(error, "availableToolsets")
        toolset = session.terms.manifest.toolsets[toolsetName]
        content = session.toolset_content(toolsetName)
        about = {"description": toolset.description, "content": content, "tools": list(toolset.tools)}
        return {"success": True, "name": toolsetName, **about}

    @tool(name="unloadSkill", effects=_LOADING)
    async def unload_skill(skillName: str) -> dict[str, Any]:
        """Unload a skill that you no longer need. Tools that another loaded skill needs stay.

        Args:
            skillName: a skill that is loaded
        """
        try:
            done = await session.unload_skill(skillName, by="unloadSkill")
        except ManifestError as error:
            return _refusal(error, "availableSkills")
        return _unloaded(skillName, done)

    @tool(name="unloadToolset", effects=_LOADING)
    async def unload_toolset(toolsetName: str) -> dict[str, Any]:
        """Unload a toolset that was loaded by itself. One that a loaded skill needs stays.

        Args:
            toolsetName: a toolset that is loaded
        """
        try:
            done = await session.unload_toolset(toolsetName, by="unloadToolset")
        except ManifestError as error:
            return _refusal(error, "availableToolsets")
        return _unloaded(toolsetName, done)

    made = (list_available_skills, load_skill, load_toolset, unload_skill, unload_toolset)
    return dict(zip(META_TOOLS, made, strict=True))


def available_skills(terms: Terms) -> list[dict[str, Any]]:
    """Name, description and toolsets of every skill that an agent may load, and why one cannot be loaded now."""
    skills = [(name, terms.manifest.skills[name]) for name in loadable_skills(terms)]
    return [
        {
            "name": name,
            "description": skill.description,
            "toolsets": list(skill.toolsets),
            **({"withheld": reason} if (reason := terms.withhold(skill)) else {}),
        }
        for name, skill in skills
    ]


def _unloaded(name: str, done: Any) -> dict[str, Any]:
    kept: Mapping[str, Any] = {"keptBy": list(done.kept_by)} if done.kept_by else {}
    return {"success": True, "name": name, "toolsets": list(done.state.loaded_toolsets), **kept}


def _refusal(error: ManifestError, key: str) -> dict[str, Any]:
    return {"error": str(error), key: list(error.context.get(key, ()))}
