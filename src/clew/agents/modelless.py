"""What a conversation does where no model is configured: say how to add one, and answer what needs none."""

from __future__ import annotations

from clew.access import Principal
from clew.agents.requests import MODEL_TOOL
from clew.catalog.answers import Question
from clew.catalog.catalog import Catalog
from clew.context.definition import AgentDefinition
from clew.errors import ModelError
from clew.llm.model import Models
from clew.trail.flow import Flow
from clew.trail.selector import Selector
from clew.trail.store import Trail

MOST = 2_000
"""Characters of a message that are looked up."""


async def find_missing_model(
    trail: Trail, flow: Flow, models: Models, agent: AgentDefinition, *, by: Principal
) -> ModelError | None:
    """Why an agent has no model, with how to add one; None where it has one, or a breadcrumb configures it."""
    try:
        models.for_agent(agent.agent_id, agent.model or "")
    except ModelError as error:
        if error.kind != "config" or agent.llm_config_id:
            return None
        selector = Selector(schema_name=flow.tool_config, all_tags=(f"tool:{MODEL_TOOL}",))
        configured = await trail.records.list(selector, by=by, limit=1)
        return None if configured.items else error
    return None


async def ask_instead(catalog: Catalog, text: str, *, by: Principal) -> str:
    """What the catalog knows about a message, as markdown."""
    answer = await catalog.ask(Question(query=text[:MOST]), by=by)
    return answer.markdown
