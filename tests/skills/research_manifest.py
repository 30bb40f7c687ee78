"""A small manifest that the tests of the runtime share: a researcher, an analyst, and one without restriction."""

from __future__ import annotations

import json
import re
from typing import Any

from clew.access import Principal
from clew.skills.manifest import AgentSpec, Manifest, Skill, ToolEntry, Toolset
from clew.tools.tool import Tool, ToolContext, tool

ME = Principal(owner_id="acme", agent_id="researcher", session="talk-1")


def make_tool(name: str, description: str = "") -> Tool:
    """A tool that returns its name and its arguments."""

    @tool(name=name, description=description or f"Does {name}")
    async def run(query: str = "") -> str:
        return f"{description or name}({query})"

    return run


def make_skill(name: str, *, toolsets: tuple[str, ...] = (), skills: tuple[str, ...] = (), content: str = "") -> Skill:
    text = content or f"# {name}\n\nHow to do {name}."
    return Skill(name=name, description=f"About {name}", toolsets=toolsets, skills=skills, content=text)


def make_toolset(name: str, *tools: str) -> Toolset:
    return Toolset(name=name, description=f"Tools for {name}", content=f"Notes on {name}.", tools=tools)


def make_manifest(agents: list[AgentSpec], skills: list[Skill], toolsets: list[Toolset] | None = None) -> Manifest:
    named = toolsets or []
    tools = dict.fromkeys(tool for toolset in named for tool in toolset.tools)
    return Manifest(
        agents={each.name: each for each in agents},
        skills={each.name: each for each in skills},
        toolsets={each.name: each for each in named},
        tools={name: ToolEntry(name=name, description=f"Does {name}", schema={"type": "object"}) for name in tools},
    )


MANIFEST = make_manifest(
    [
        AgentSpec(name="researcher", initial_skills=("webSearch",), skills=("dataAnalysis", "reporting", "charts")),
        AgentSpec(name="analyst", initial_skills=("dataAnalysis",)),
        AgentSpec(name="anybody"),
    ],
    [
        make_skill("webSearch", toolsets=("search",)),
        make_skill("dataAnalysis", toolsets=("analysis", "tables")),
        make_skill("reporting", toolsets=("tables",), skills=("charts",)),
        make_skill("charts", toolsets=("vis",)),
        make_skill("deploying", toolsets=("ops",)),
    ],
    [
        make_toolset("search", "googleSearch", "bingSearch"),
        make_toolset("analysis", "analyzeData", "formatData"),
        make_toolset("tables", "readTable"),
        make_toolset("vis", "plot"),
        make_toolset("ops", "deploy"),
        make_toolset("spare", "spareTool"),
    ],
)

TOOLS = {name: make_tool(name) for name in MANIFEST.tools}


async def call(made: Tool, **arguments: Any) -> Any:
    """The answer of a tool, parsed if it is JSON."""
    done = await made.call(made.check(arguments), ToolContext(by=ME))
    text = done.content
    return json.loads(text.removeprefix("```json\n").removesuffix("\n```")) if text.startswith("```json") else text


def names_in(section: str) -> list[str]:
    """The names that a section of a prompt lists, in their order."""
    return re.findall(r"^- \*\*(.+?)\*\*:", section, re.MULTILINE)
