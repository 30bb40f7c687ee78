"""The meta-tools, with which an agent lists, loads and unloads skills."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from clew.errors import ManifestError
from clew.skills.manifest import ONLY_BY_NAME, Skill
from clew.skills.registry import META_TOOLS
from clew.skills.sessions.loads import LoadTerms, loadable_skills
from clew.skills.sessions.session import LOAD_SKILL, brought_by
from clew.tools.tool import Effects, Tool, tool

_READING = Effects(reads_only=True, repeats_safely=True, reaches_out=False)
_LOADING = Effects(repeats_safely=True, reaches_out=False)


class SkillLoader(Protocol):
    """The part of a session that the meta-tools use."""

    @property
    def terms(self) -> LoadTerms: ...

    async def load_skill(self, name: str, *, by: str = "") -> Any: ...

    async def load_toolset(self, name: str, *, by: str = "") -> Any: ...

    async def unload_skill(self, name: str, *, by: str = "") -> Any: ...

    async def unload_toolset(self, name: str, *, by: str = "") -> Any: ...

    def skill_content(self, name: str) -> str: ...

    def toolset_content(self, name: str) -> str: ...


def meta_tools(session: SkillLoader) -> dict[str, Tool]:
    """Return the five meta-tools of a session, by name. A refusal is a result, not an error: `{error,
    availableSkills}`."""

    @tool(name="listAvailableSkills", effects=_READING)
    async def list_available_skills() -> list[dict[str, Any]]:
        """List the skills that you can load: their names, descriptions and toolsets."""
        return available_skills(session.terms)

    @tool(name=LOAD_SKILL, effects=_LOADING)
    async def load_skill(skillName: str) -> dict[str, Any]:
        """Load a skill: returns its instructions, and makes its tools available.

        Args:
            skillName: a name that listAvailableSkills shows
        """
        loading = session.load_skill(skillName, by=LOAD_SKILL)
        return await _answer(loading, "availableSkills", lambda _: _loaded_skill(session, skillName))

    @tool(name="loadToolset", effects=_LOADING)
    async def load_toolset(toolsetName: str) -> dict[str, Any]:
        """Load one toolset without its skill: returns notes on its use, and makes its tools available.

        Args:
            toolsetName: a name that listAvailableSkills shows among the toolsets of a skill
        """
        loading = session.load_toolset(toolsetName, by="loadToolset")
        return await _answer(loading, "availableToolsets", lambda _: _loaded_toolset(session, toolsetName))

    @tool(name="unloadSkill", effects=_LOADING)
    async def unload_skill(skillName: str) -> dict[str, Any]:
        """Unload a skill that you no longer need. Tools that another loaded skill needs stay.

        Args:
            skillName: a skill that is loaded
        """
        unloading = session.unload_skill(skillName, by="unloadSkill")
        return await _answer(unloading, "availableSkills", lambda done: _unloaded(skillName, done))

    @tool(name="unloadToolset", effects=_LOADING)
    async def unload_toolset(toolsetName: str) -> dict[str, Any]:
        """Unload a toolset that was loaded without a skill. A toolset that a loaded skill needs stays.

        Args:
            toolsetName: a toolset that is loaded
        """
        unloading = session.unload_toolset(toolsetName, by="unloadToolset")
        return await _answer(unloading, "availableToolsets", lambda done: _unloaded(toolsetName, done))

    made = (list_available_skills, load_skill, load_toolset, unload_skill, unload_toolset)
    return dict(zip(META_TOOLS, made, strict=True))


def available_skills(terms: LoadTerms) -> list[dict[str, Any]]:
    """Return name, description and toolsets of every loadable skill, with a note on skills of the third tier. A
    withheld skill has only its name and the reason."""
    return [_available(terms.manifest.skills[name], terms) for name in loadable_skills(terms)]


def _available(skill: Skill, terms: LoadTerms) -> dict[str, Any]:
    if reason := terms.withhold(skill):
        return {"name": skill.name, "description": "", "toolsets": [], "withheld": reason}
    by_name = {"onlyByName": True} if skill.tier == ONLY_BY_NAME else {}
    return {"name": skill.name, "description": skill.description, "toolsets": list(skill.toolsets), **by_name}


async def _answer(change: Awaitable[Any], key: str, tell: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the outcome of a change; for a refusal the reason and, under `key`, the allowed names."""
    try:
        done = await change
    except ManifestError as error:
        return {"error": str(error), key: list(error.context.get(key, ()))}
    return {"success": True, **tell(done)}


def _loaded_skill(session: SkillLoader, name: str) -> dict[str, Any]:
    skills = brought_by(session.terms.manifest, name, session.terms.withhold)
    toolsets = dict.fromkeys(each for skill in skills for each in session.terms.manifest.skills[skill].toolsets)
    return {"name": name, "content": session.skill_content(name), "toolsets": list(toolsets)}


def _loaded_toolset(session: SkillLoader, name: str) -> dict[str, Any]:
    toolset, content = session.terms.manifest.toolsets[name], session.toolset_content(name)
    return {"name": name, "description": toolset.description, "content": content, "tools": list(toolset.tools)}


def _unloaded(name: str, done: Any) -> dict[str, Any]:
    kept = {"keptBy": list(done.kept_by)} if done.kept_by else {}
    return {"name": name, "toolsets": list(done.state.loaded_toolsets), **kept}
