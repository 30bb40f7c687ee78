"""Trees of definitions, written for a test."""

from __future__ import annotations

from pathlib import Path

from clew.skills.checks.problems import Problem
from clew.skills.definitions.manifest_builder import BuildResult, build
from clew.tools.tool import Tool, tool


def write(root: Path, files: dict[str, str]) -> Path:
    """Put files below a folder, and give it back."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def markdown(body: str = "", **fields: str) -> str:
    """A file whose front matter has these lines."""
    lines = [f"{key}: {value}" for key, value in fields.items()]
    return "\n".join(["---", *lines, "---", body])


def researcher() -> dict[str, str]:
    """An agent with two skills, two toolsets and three tools, all of it valid."""
    return {
        "agents/researcher.md": markdown("You research.", initialSkills="[webSearch]", skills="[dataAnalysis]"),
        "skills/webSearch.md": markdown("# How to search", description="Search the web", toolsets="[search]"),
        "skills/dataAnalysis/SKILL.md": markdown("# Analyse", description="Analyse data", toolsets="[analysis]"),
        "toolsets/search.md": markdown("Be brief.", description="Search engines", tools="[googleSearch, bingSearch]"),
        "toolsets/analysis/TOOLSET.md": markdown(description="Analysis", tools="[analyzeData]"),
        "tools/googleSearch.md": markdown("Notes", description="Search with Google"),
        "tools/bingSearch.md": markdown(description="Search with Bing"),
        "tools/analyzeData/TOOL.md": markdown(description="Analyse numbers"),
    }


def google(description: str = "Search with Google") -> Tool:
    @tool(
        name="googleSearch",
        description=description,
        category="search",
        see_also=("bingSearch",),
        examples=({"query": "clew"},),
    )
    async def search(query: str, limit: int = 10) -> str:
        return query * limit

    return search


def problem_of(built: BuildResult) -> Problem:
    """The one problem that there is."""
    assert len(built.problems) == 1, [each.message for each in built.problems]
    return built.problems[0]


def only_problem(root: Path, *tools: Tool) -> Problem:
    return problem_of(build(root, tools))
