"""Collects the skills, agents, commands and rules of a folder in the formats of other programs.

Each real file is read once, even if several links lead to it. Faults in the tree are reported as problems, never
raised.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clew.decode_errors import unmixed
from clew.skills.agent_tools import ALWAYS, permissions_of, tools_of
from clew.skills.checks.problems import Problem, in_order
from clew.skills.files.tree_walk import TreeWalk, walk
from clew.skills.formats.definition_files import DefinitionFile, find_definitions
from clew.skills.formats.definition_reader import ParseCache, ParsedDefinition, Reader
from clew.skills.formats.rules import resolve_beside
from clew.skills.formats.safe_open import Root
from clew.skills.formats.unique_names import name_all
from clew.skills.manifest import AgentSpec, Skill, SkillLink
from clew.trust import Wish, printable, real_folder

MAX_PROBLEMS = 1_000
_MAX_SUMMARY, _MAX_POWERS = 300, 1_500
_POWERS = ("permissionMode", "permission", "disallowedTools", "sandbox_mode", "web_search")
"""Keys of other programs that limit an agent, and that Clew enforces too."""
_WITHOUT_EFFECT = ("hooks", "isolation", "maxTurns", "steps", "maxSteps", "mcpServers", "mcp_servers", "background")
"""Keys of other programs that Clew ignores."""


class RuleFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule file of the tree (AGENTS.md, CLAUDE.md …), which applies to its folder.

    All paths are relative to the root. `kind` is the file name. `target` is the real file if this one is a link, else
    empty. `references` are the files that a CLAUDE.md imports with `@path`.
    """

    path: str
    kind: str
    target: str = ""
    references: tuple[SkillLink, ...] = ()
    digest: str = ""


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """The path of a second file that is a link to a definition or an exact copy of it, and the path of the real file.
    Both paths are relative to the root."""

    path: str
    target: str


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions of a tree. Agents and skills are sorted by name, the rest by path."""

    agents: tuple[AgentSpec, ...] = ()
    skills: tuple[Skill, ...] = ()
    rules: tuple[RuleFile, ...] = ()
    aliases: tuple[Alias, ...] = ()
    problems: tuple[Problem, ...] = ()


def collect(
    root: Path, *, places: Sequence[str] = (), memory: ParseCache | None = None, tree: TreeWalk | None = None
) -> Collected:
    """Read the definitions below `root`, or only those in its folders `places`. Never raises for faults in files.

    With the `memory` of an earlier call, only changed files are read again. `tree` is a walk of the same folders that
    was done just now.
    """
    if not os.path.isdir(root):
        problem = Problem(kind="config", path=".", message="this folder of definitions does not exist")
        return Collected(problems=(problem,))
    base = Root(os.fspath(root))
    tree = tree or walk(base, places)
    problems = list(tree.problems)
    found, rules = find_definitions(tree, problems)
    reader = Reader(base, tree, memory if memory is not None else ParseCache())
    readings = [(each, reader.read(each)) for each in found]
    skills = [
        (_with_references(reading.skill, each, tree, problems), each.above)
        for each, reading in readings
        if reading.skill is not None
    ]
    agents = [(reading.agent, each.above) for each, reading in readings if reading.agent is not None]
    named_skills, skill_copies, skill_problems = name_all(skills, "skill")
    named_agents, agent_copies, agent_problems = name_all(agents, "agent")
    read_rules = [_rule(each, reader.read(each), problems) for each in rules]
    problems += [
        *skill_problems,
        *agent_problems,
        *(problem for _, reading in readings for problem in reading.problems),
    ]
    links = [(each.path, each.target) for each in tree.links]
    return Collected(
        agents=tuple(named_agents),
        skills=tuple(named_skills),
        rules=tuple(sorted((each for each in read_rules if each is not None), key=lambda each: each.path)),
        aliases=tuple(Alias(path=path, target=at) for path, at in sorted({*links, *skill_copies, *agent_copies})),
        problems=tuple(_bounded(problems)),
    )


def wishes(collected: Collected, root: Path) -> list[Wish]:
    """Return the agents and skills that need the user's consent, sorted by kind and name.

    Definitions without a digest are left out: nobody can agree to them.
    """
    place = real_folder(root)
    agents = [("agent", each.name, each.digest, _agent_summary(each)) for each in collected.agents]
    skills = [("skill", each.name, each.digest, _skill_summary(each)) for each in collected.skills]
    return [
        Wish(folder=place, kind=kind, name=name, digest=digest, summary=summary)
        for kind, name, digest, summary in (*agents, *skills)
        if digest
    ]


def _agent_summary(agent: AgentSpec) -> str:
    """Return the purpose of an agent, then its permissions. The description is cut first, so permissions stay
    visible."""
    about = printable(_warn_about_scripts(agent.name, agent.description), _MAX_SUMMARY).rstrip(".; ")
    skills = [f"skills: {', '.join(agent.loadable)}"] if agent.loadable else []
    model = [f"model: {agent.model}"] if agent.model else []
    also = [f"{key}: {agent.metadata[key]}" for key in _POWERS if agent.metadata.get(key)]
    lost = ", ".join(key for key in _WITHOUT_EFFECT if agent.metadata.get(key))
    idle = [f"without effect here: {lost}"] if lost else []
    powers = printable("; ".join((*_powers(agent), *skills, *model, *idle, *also)), _MAX_POWERS)
    return f"{about}; {powers}" if about else powers


def _powers(agent: AgentSpec) -> list[str]:
    """Return the effective tools of an agent, and the rules that restrict them."""
    rules = permissions_of(agent)
    said = {"asked about": rules.ask, "but not": rules.allow if rules.ask else (), "denied": rules.deny}
    narrowed = [f"{how}: {', '.join(each)}" for how, each in said.items() if each]
    if agent.tools is None and not rules.deny:
        return ["lists no tools: it gets the tools for files and commands", *narrowed]
    tools = [each for each in tools_of(agent) if each not in ALWAYS]
    return [f"tools: {', '.join(tools)}" if tools else "has no tools", *narrowed]


def _warn_about_scripts(name: str, summary: str) -> str:
    """Add a warning to the summary if the name mixes letters of several scripts to look like another name."""
    shown = unmixed(name)
    return summary if shown == name else f"(a name with letters of several scripts: {shown}) {summary}"


def _skill_summary(skill: Skill) -> str:
    count = len(skill.scripts)
    scripts = f" ({count} script{'s' if count != 1 else ''})" if count else ""
    about = f"{printable(skill.description, _MAX_SUMMARY - 40)}{scripts}"
    return printable(_warn_about_scripts(skill.name, about), _MAX_SUMMARY)


def _with_references(skill: Skill, found: DefinitionFile, tree: TreeWalk, problems: list[Problem]) -> Skill:
    """Remove the references that do not lead to a file below the root, and report them."""
    if not skill.references:
        return skill
    beside = skill.path if skill.folder in tree.folders else found.path
    kept = []
    for each in skill.references:
        target = resolve_beside(beside, each.path)
        if target is not None and tree.find(target) is not None:
            kept.append(each)
            continue
        reason = "leads out of the root" if target is None else "leads to no file"
        message = f"the reference {printable(each.path, 200)} {reason}: it is ignored"
        problems.append(Problem(kind="build", severity="warning", path=skill.path, line=each.line, message=message))
    return msgspec.structs.replace(skill, references=tuple(kept))


def _rule(found: DefinitionFile, reading: ParsedDefinition, problems: list[Problem]) -> RuleFile | None:
    """Return the rule file, or None if it cannot be read. Imports of a link are relative to the real file."""
    problems.extend(reading.problems)
    if not reading.digest:
        return None
    target = found.real if found.real != found.path else ""
    references = [each for each in reading.references if each.path != found.real]
    return RuleFile(
        path=found.path, kind=found.name, target=target, references=tuple(references), digest=reading.digest
    )


def _bounded(problems: list[Problem]) -> list[Problem]:
    ordered = in_order({(each.path, each.line, each.message): each for each in problems}.values())
    if len(ordered) <= MAX_PROBLEMS:
        return ordered
    rest = len(ordered) - MAX_PROBLEMS
    more = Problem(kind="build", severity="warning", path=".", message=f"{rest:,} more problems are not listed")
    return [*ordered[:MAX_PROBLEMS], more]
