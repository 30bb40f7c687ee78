"""The domain `skills`: one entry point that finds a skill for a need, and leads to loading it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from clew.catalog.domain import Domain, SearchConfig, Segment
from clew.catalog.registry import DomainRegistry
from clew.catalog.resource import Pipeline
from clew.catalog.skills.loaded_skills import LoadedSkills
from clew.catalog.skills.skill_tools import SkillTools
from clew.catalog.skills.source import SkillFormat, SkillSource
from clew.errors import InvalidInput
from clew.skills.discovery.skill_records import DOMAIN, REFERENCE_TYPE, SKILL_TYPE
from clew.skills.discovery.skill_search import SkillSearch
from clew.tools import Effects, GuidedContent, Tool, ToolContext, tool

ABOUT = (
    "Skills: instructions for particular kinds of work, some with tools of their own. `find` says which one fits a"
    " need, and leads to loading it"
)
MAX_FOUND = 10

_READS = Effects(reads_only=True, repeats_safely=True, reaches_out=False)
_LOADS = Effects(repeats_safely=True, reaches_out=False)

SkillName = Annotated[str, msgspec.Meta(description="the name of a skill", max_length=200)]
ToolsetName = Annotated[str, msgspec.Meta(description="instead of a skill: the name of one toolset", max_length=200)]


def build_skills(loaded: LoadedSkills, registry: DomainRegistry, search: SkillSearch) -> Domain:
    """Build the domain of a folder's skills. The routes of toolsets are looked up in `registry`."""
    desk = SkillTools(loaded, registry, search)
    return Domain(
        name=DOMAIN,
        description=ABOUT,
        tools=(*_looking_tools(desk), *_loading_tools(desk)),
        extractors=(Pipeline(source=SkillSource(loaded.definitions), formats=(SkillFormat(),)),),
        search=SearchConfig(
            segments=(
                Segment(name="skills", types=(SKILL_TYPE,), priority=1, limit=50),
                Segment(name="references", types=(REFERENCE_TYPE,), priority=2, limit=5),
            )
        ),
    )


def _looking_tools(desk: SkillTools) -> tuple[Tool, ...]:
    @tool(title="Find a skill", effects=_READS)
    async def find(
        need: Annotated[str, msgspec.Meta(description="what is to be done, in your own words", min_length=1)],
        ctx: ToolContext,
        limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_FOUND)] = 5,
    ) -> GuidedContent:
        """Find the skills for a piece of work: tested instructions, often with tools that nothing else shows. Use it
        before you begin something that others have done before; its result leads to loading the skill."""
        return await desk.find(need, limit, ctx.by, ctx.handle)

    @tool(name="list", title="List the skills", searchable=False, effects=_READS)
    async def list_(ctx: ToolContext) -> GuidedContent:
        """List the skills that can be loaded, those that are loaded, and those that wait for the user's consent."""
        return await desk.list_all(ctx.by, ctx.handle)

    @tool(title="Read a reference", searchable=False, effects=_READS)
    async def reference(
        skill: SkillName,
        path: Annotated[str, msgspec.Meta(description="its path, or the text by which the skill names it")],
        ctx: ToolContext,
    ) -> GuidedContent:
        """Read a document that a skill refers to, when its instructions say so or the work needs it."""
        return await desk.reference(skill, path, ctx.by)

    return find, list_, reference


def _loading_tools(desk: SkillTools) -> tuple[Tool, ...]:
    @tool(title="Load a skill", searchable=False, effects=_LOADS)
    async def load(ctx: ToolContext, skill: SkillName = "", toolset: ToolsetName = "") -> GuidedContent:
        """Load a skill: its instructions come back, and its tools can be run until it is unloaded."""
        _check_one(skill, toolset)
        if skill:
            return await desk.load_skill(skill, ctx.by, ctx.handle)
        return await desk.load_toolset(toolset, ctx.by, ctx.handle)

    @tool(title="Unload a skill", searchable=False, effects=_LOADS)
    async def unload(
        ctx: ToolContext,
        skill: SkillName = "",
        toolset: ToolsetName = "",
        all: Annotated[bool, msgspec.Meta(description="all that is loaded")] = False,
    ) -> GuidedContent:
        """Unload a skill that is no longer needed. Tools that another loaded skill brings stay."""
        if all and not skill and not toolset:
            return await desk.unload_all(ctx.by, ctx.handle)
        _check_one(skill, toolset)
        return await desk.unload(skill, toolset, ctx.by, ctx.handle)

    return load, unload


def _check_one(skill: str, toolset: str) -> None:
    if bool(skill) == bool(toolset):
        raise InvalidInput("skill", "or toolset is needed, but not both", hint='For example {"skill": "release-notes"}')
