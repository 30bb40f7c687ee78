"""Checks that the tools and the model named in agent files exist, as far as the folder and its trail know them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.cli.folder_access import open_here
from clew.cli.options import Here
from clew.cli.project import trail_file
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.skills.checks.problems import Problem
    from clew.skills.files.document import MarkdownDocument
    from clew.skills.manifest import AgentSpec, Manifest

_MAX_KNOWN = 200
_WILD = ("*", "?", "[", "(", "://", "mcp__")
"""Patterns that are not plain names: globs, parts of tools, routes, and tools of servers."""
_ELSEWHERE = (
    *("Task", "Agent", "TodoWrite", "TodoRead", "WebSearch", "NotebookEdit", "NotebookRead", "ExitPlanMode"),
    *("AskUserQuestion", "Skill", "BashOutput", "KillShell", "SlashCommand", "LSP", "Question", "CodeSearch"),
)
"""Tools of other programs that have no equivalent in Clew. Naming them is not a mistake."""


async def check_agent_names(manifest: Manifest, root: Path, here: Here) -> list[Problem]:
    """Return a warning for each unknown tool and model that an agent names, with the nearest name. The trail is read
    only if it is needed to look up a tool. Nothing is started or fetched.
    """
    from clew.agents.tools.toolbox import SPAWN
    from clew.llm.model import open_models
    from clew.skills.agent_tools import ALWAYS, FOREIGN, USUAL

    agents = list(manifest.agents.values())
    if not agents:
        return []
    tools = {*ALWAYS, *USUAL, SPAWN, *manifest.tools}
    spelled = {*FOREIGN, *(name.lower() for name in _ELSEWHERE)}
    if any(True for each in agents for _ in _strays(each, tools, spelled)):
        tools |= await _on_trail(here)
    models = set(open_models(here.config()).names())
    return [told for each in agents for told in _check(each, root, tools, spelled, models)]


async def _on_trail(here: Here) -> set[str]:
    """The tools that are breadcrumbs; empty if there is no trail that can be opened."""
    from clew.agents.conversations.conversation import open_conversations
    from clew.trail.model.selector import Selector

    file = trail_file(here.config())
    if file is None or not file.exists():
        return set()
    try:
        async with open_here(here) as app:
            flow = (await open_conversations(app.trail, app.clock, by=app.me)).flow
            page = await app.trail.records.list(Selector(schema_name=flow.tool), by=app.me, limit=_MAX_KNOWN)
            return {str(each.context.get("name")) for each in page.items}
    except ClewError:  # other checks report problems of the trail
        return set()


def _strays(agent: AgentSpec, tools: Set[str], spelled: Set[str]) -> Iterator[tuple[str, str]]:
    """The unknown tools that an agent names, each with its place in the front matter."""
    rules = agent.permissions if agent.origin == "clew" else type(agent.permissions)()
    given = [(f"tools[{number}]", name) for number, name in enumerate(agent.tools or ())]
    for verdict in rules.__struct_fields__:
        texts = enumerate(getattr(rules, verdict))
        given += [(f"permissions.{verdict}[{number}]", text.partition("(")[0].strip()) for number, text in texts]
    for place, name in given:
        if name not in tools and name.lower() not in spelled and not any(each in name for each in _WILD):
            yield place, name


def _check(agent: AgentSpec, root: Path, tools: Set[str], spelled: Set[str], models: Set[str]) -> Iterator[Problem]:
    strays = list(_strays(agent, tools, spelled))
    is_stray = bool(agent.model) and agent.model not in models and ":" not in agent.model
    if not strays and not is_stray:
        return
    document = _document(agent, root)
    for place, name in strays:
        yield _unknown(document, place, "tool", name, tools | spelled, agent.name)
    if is_stray:
        yield _unknown(document, "model", "model or role", agent.model, models, agent.name)


def _unknown(document: MarkdownDocument, place: str, what: str, name: str, known: Set[str], agent: str) -> Problem:
    from clew.skills.checks.suggestions import nearest
    from clew.skills.definitions.fields import problem_at

    more: dict[str, Any] = {"nearest": nearest(name, known), "allowed": tuple(sorted(known))[:_MAX_KNOWN]}
    at = place if place in document.values else place.partition("[")[0]
    context = {f"{what.partition(' ')[0]}Name": name, "requestedBy": agent}
    return problem_at(
        document, at, f"there is no {what} `{name[:80]}`", kind="build", severity="warning", context=context, **more
    )


def _document(agent: AgentSpec, root: Path) -> MarkdownDocument:
    """The parsed file of an agent, for the positions in it; an empty document if it can no longer be read."""
    from clew.skills.files.document import MarkdownDocument, read_document
    from clew.skills.formats.agents import read_toml

    try:
        raw = (root / agent.path).read_bytes()
    except OSError:
        return MarkdownDocument(path=agent.path)
    return read_toml(raw, agent.path) if agent.path.endswith(".toml") else read_document(raw, agent.path)
