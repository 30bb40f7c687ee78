"""The fallback of a conversation without a model: say how to add one, and answer from the catalog."""

from __future__ import annotations

from collections.abc import Iterator

from clew.access import Principal
from clew.agents.runs.model_hosts import has_model_host
from clew.catalog.catalog import Catalog
from clew.catalog.operations.answers import CatalogAnswer, CatalogEntry, Question
from clew.catalog.operations.markdown import cited_line, known_lines
from clew.clock import Clock
from clew.context.definition import AgentDefinition
from clew.errors import ModelError
from clew.llm.model import Models
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MOST = 2_000
"""Characters of a message that are searched for."""
EXAMPLES = 10
"""Documents that are listed if nothing matches a message."""


async def find_missing_model(
    trail: Trail, flow: Flow, clock: Clock, models: Models, agent: AgentDefinition, *, by: Principal
) -> ModelError | None:
    """Return the error that says why an agent has no model and how to add one. Return None if it has a model, a
    breadcrumb configures one, or another running process has one. Raises ModelError if the configured model cannot be
    used."""
    try:
        models.for_agent(agent.agent_id, agent.model or "")
    except ModelError as error:
        if error.kind != "config" or agent.llm_config_id:
            return None
        selector = Selector(schema_name=flow.tool_config, all_tags=(f"tool:{flow.model_tool}",))
        if (await trail.records.list(selector, by=by, limit=1)).items:
            return None
        if models.is_configured(agent.agent_id, agent.model or ""):
            raise
        return None if await has_model_host(trail, flow, clock, by=by) else error
    return None


async def ask_instead(catalog: Catalog, text: str, *, by: Principal) -> str:
    """The answer of the catalog to a message as markdown: the lines that `ask` cites, or else the matches of its
    domains; if nothing matches, an overview of the catalog."""
    answer = await catalog.ask(question_of(text), by=by)
    return await describe_answer(catalog, answer, by=by)


def question_of(text: str) -> Question:
    """The catalog question for a message, which is cut to `MOST` characters."""
    return Question(query=text[:MOST])


async def describe_answer(catalog: Catalog, answer: CatalogAnswer, *, by: Principal) -> str:
    """The markdown of an answer of the catalog, as `ask_instead` returns it."""
    if answer.known:
        return "\n".join((*known_lines(answer.notes, answer.text), *map(cited_line, answer.known)))
    if answer.is_relevant:
        return "\n\n".join(("Close to it:", *_sections(answer)))
    domains = [f"- **{each.name}**: {each.description}" for each in catalog.domains(by=by)]
    if not domains:
        return "Nothing here matches that: this folder has no files or tools yet."
    found = await catalog.list_resources(by=by, limit=EXAMPLES)
    parts = ["Nothing here is close to that. The domains of this folder:", "\n".join(domains)]
    if found:
        parts.append("\n".join(("Some of the documents:", "", *_lines(found))))
    return "\n\n".join(parts)


def _sections(answer: CatalogAnswer) -> Iterator[str]:
    """A section for each domain with matches, documents first."""
    for section in answer.sections:
        lines = _lines((*section.resources, *section.tools))
        if lines and not section.is_folded:
            yield "\n".join((f"## {section.domain}", "", *lines))


def _lines(entries: tuple[CatalogEntry, ...] | list[CatalogEntry]) -> list[str]:
    return [f"- **`{each.route}`**: {each.description}" for each in entries]
