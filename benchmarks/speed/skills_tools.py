"""The tools of an agent when thousands of tools are registered and ten of them are exposed."""

from __future__ import annotations

from typing import Any

from clew.skills.library import Skills
from clew.skills.manifest import AgentSpec, Manifest, Skill, Toolset
from clew.skills.registry import META_TOOLS
from clew.tools import GuidedContent, Tool, ToolContext
from speed.report import Finding, Promise, Row
from speed.skills_stage import Settings, Work, compare, take_turns

MEASURE = "tools of an agent"
MOST = 1.0
CLEW, LOOKED_AT = "clew, get_tools", "clew, get_tools and every tool"
PEER = "pydantic-ai, filtered toolset"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"query": {"type": "string", "description": "what"}}}


async def measure(settings: Settings) -> list[Finding]:
    contenders = {**ours(settings), **(theirs(settings) if settings.peers else {})}
    for name, work in contenders.items():
        if (found := await work(0)) != settings.exposed:
            raise RuntimeError(f"{name} gave {found} of {settings.exposed} tools")
    times = await take_turns(settings, contenders, settings.samples)
    rows = [
        Row(
            measure=MEASURE,
            records=settings.tools,
            contender=name,
            values={**rounds.spread(), "p99 ms": rounds.milliseconds(0.99)},
        )
        for name, rounds in times.items()
    ]
    promise = Promise(
        name=f"get_tools, {settings.exposed} exposed, every one looked at, p99 ms",
        records=settings.tools,
        value=times[LOOKED_AT].milliseconds(0.99),
        target=MOST,
        at_least=False,
    )
    return [*rows, promise, *compare(MEASURE, settings.tools, times, {PEER: LOOKED_AT})]


def ours(settings: Settings) -> dict[str, Work]:
    skills = Skills(build_manifest(settings))
    for name, toolset in skills.manifest.toolsets.items():
        skills.register_tools(name, [make_tool(each) for each in toolset.tools])

    async def called(number: int) -> int:
        await skills.get_tools("agent")
        return settings.exposed

    async def looked_at(number: int) -> int:
        tools = await skills.get_tools("agent")
        return len(list(tools.values())) - len(META_TOOLS)

    return {CLEW: called, LOOKED_AT: looked_at}


def theirs(settings: Settings) -> dict[str, Work]:
    from pydantic_ai import RunContext  # only where peers are measured
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset
    from pydantic_ai.usage import RunUsage

    names = [name for toolset in build_manifest(settings).toolsets.values() for name in toolset.tools]
    defined = [ToolDefinition(name=each, description=about(each), parameters_json_schema=SCHEMA) for each in names]
    exposed = frozenset(names[: settings.exposed])
    toolset: Any = ExternalToolset(defined).filtered(lambda context, tool: tool.name in exposed)
    context: RunContext[None] = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    async def filtered(number: int) -> int:
        return len(await toolset.get_tools(context))

    return {PEER: filtered}


def build_manifest(settings: Settings) -> Manifest:
    """Toolsets of as many tools as are exposed, and an agent whose one skill brings the first of them."""
    size = settings.exposed
    toolsets = {
        f"set-{first}": Toolset(
            name=f"set-{first}",
            description="Tools that belong together.",
            tools=tuple(f"tool-{at}" for at in range(first, first + size)),
        )
        for first in range(0, settings.tools, size)
    }
    skill = Skill(name="first", description="The first tools.", toolsets=("set-0",))
    return Manifest(
        agents={"agent": AgentSpec(name="agent", initial_skills=("first",))}, skills={"first": skill}, toolsets=toolsets
    )


def make_tool(name: str) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        return GuidedContent(content=name)

    return Tool(name=name, description=about(name), call=call, check=dict, schema=SCHEMA)


def about(name: str) -> str:
    return f"Looks up what {name}  knows about a customer, in one line."
