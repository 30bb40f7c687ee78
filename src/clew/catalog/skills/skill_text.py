"""Skills, and the results of loading them, as text for a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.access import Principal
from clew.catalog.operations.answers import CatalogEntry
from clew.catalog.operations.markdown import render_entry
from clew.catalog.operations.text import inline
from clew.catalog.registry import DomainRegistry, RoutedTool
from clew.catalog.route import parse_route
from clew.errors import InvalidInput
from clew.skills.catalogue import build_catalogue
from clew.skills.manifest import ONLY_BY_NAME, Skill
from clew.skills.sessions.agent_session import LoadOutcome
from clew.skills.sessions.session import Withhold

MAX_STEPS = 20
MAX_NAMED = 30


def describe(skill: Skill, *, is_loaded: bool, withheld: str) -> str:
    """A skill on one line. For a withheld skill, only the name is shown, because its texts are untrusted."""
    if withheld:
        return f"- **{inline(skill.name, 100)}** ({withheld})"
    state = " (loaded)" if is_loaded else ""
    toolsets = f" Toolsets: {', '.join(skill.toolsets)}." if skill.toolsets else ""
    return f"- **{inline(skill.name, 100)}**{state}: {inline(skill.description, 600)}{toolsets}"


def show_list(skills: Sequence[Skill], here: Sequence[str], withhold: Withhold) -> str:
    """List all skills within a number of tokens: loaded ones, loadable ones, those that load by name only, and withheld
    ones."""
    loaded = [each for each in skills if each.name in here]
    withheld = {each.name: reason for each in skills if (reason := withhold(each))}
    free = [each for each in skills if each.name not in withheld and each not in loaded]
    parts = [f"Loaded: {_names(here)}."] if here else []
    offered = [each for each in free if each.tier != ONLY_BY_NAME]
    by_name = [each.name for each in free if each.tier == ONLY_BY_NAME]
    parts += [f"{len(offered):,} skills can be loaded:\n\n{build_catalogue(offered)}"] if offered else []
    parts += [f"To be loaded only if the user names them: {_names(by_name)}."] if by_name else []
    bringing = [f"{each.name} ({', '.join(each.toolsets)})" for each in free if each.toolsets]
    parts += [f"With toolsets: {_names(bringing)}."] if bringing else []
    for reason in dict.fromkeys(withheld.values()):
        names = [name for name, why in withheld.items() if why == reason]
        parts.append(f"Not to be loaded, {reason}: {_names(names)}.")
    return "\n\n".join(parts) or "There are no skills for you here."


def show_change(what: str, done: LoadOutcome, outcome: str) -> str:
    """Describe a load or unload with its token count."""
    text = f"The {what} {outcome}. All that is loaded takes about {done.tokens_after:,} tokens"
    text += f", before it was {done.tokens_before:,}." if done.tokens_before != done.tokens_after else "."
    if done.kept_by:
        text += f" Part of it stays: {_names(done.kept_by)} brings it too."
    return text


def show_files(skill: Skill) -> str:
    """List the scripts and assets of a skill, and say where they are; empty for a skill without any."""
    files = (*skill.scripts, *skill.assets)
    if not files:
        return ""
    place = f"in the folder {inline(skill.folder)}" if skill.folder else "in the project's root"
    return f"Files of {inline(skill.name, 100)}, {place}: {_names(files)}."


def show_first(name: str, content: str) -> str:
    """The text of a skill that came along because the caller starts with it."""
    return f"The skill {inline(name, 100)} is loaded too, as from the start:\n\n{content}"


def show_tools(tools: Iterable[str], registry: DomainRegistry, by: Principal) -> list[str]:
    """The tools that are open now, as `ask` shows tools; then the names of tools outside of this catalog."""
    found = {name: _find(name, registry) for name in tools}
    mine = [each for each in found.values() if each is not None and each.scopes <= by.scopes]
    lines = [line for each in mine for line in render_entry(_entry(each))]
    missing = [name for name, each in found.items() if each is None or not each.scopes <= by.scopes]
    parts = ["\n".join(("Its tools, for `get`:", "", *lines))] if lines else []
    return [*parts, *([f"Not available here: {_names(missing)}."] if missing else [])]


def _find(name: str, registry: DomainRegistry) -> RoutedTool | None:
    try:
        return registry.find_tool(parse_route(name))
    except InvalidInput:
        return None


def _entry(each: RoutedTool) -> CatalogEntry:
    return CatalogEntry(route=each.text, description=each.about, params=each.params)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(inline(each, 200) for each in names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else shown
