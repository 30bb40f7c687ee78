"""Checks of agents for `clew doctor`: their models, agents that do not run, and rules about unknown tools.

The provider of the default model is asked for its list of models, which costs nothing. Nothing is written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from clew.app import App, open_app
from clew.cli.checks.folder_checks import CheckFinding, ok, remark, wrong
from clew.cli.project import trail_file
from clew.cli.terminal.output import count
from clew.config import Config
from clew.errors import ClewError, ModelError

PATIENCE_SECONDS = 3.0
"""How long the provider of a model has for its list."""
NAMED = 5
"""Models of a list that a finding names."""


async def check_agents(config: Config) -> AsyncIterator[CheckFinding]:
    """Check the default model, then the agents and the permissions of an existing trail."""
    yield await check_models(config)
    file = trail_file(config)
    if file is not None and not file.exists():
        return
    try:
        async with open_app(config) as app:
            for finding in [await _check_roll(app), *await _check_kept_back(app), *await _check_rules(app)]:
                yield finding
    except ClewError as error:
        yield remark("agents", error.message, error.hint)


async def check_models(config: Config) -> CheckFinding:
    """The model of agents that name none, and whether its provider answers. A provider that may answer later is worth a
    note."""
    from clew.llm.model import open_models  # of use here only

    models = open_models(config)
    try:
        _, info = models.resolve()
        listed = await models.listed(seconds=PATIENCE_SECONDS)
    except ModelError as error:
        is_wrong = models.is_configured("") and not error.retryable
        return (wrong if is_wrong else remark)("models", error.message, error.hint)
    finally:
        await models.close()
    if listed and not info.is_known and not {info.name, f"{info.name}:latest"} & set(listed):
        others = ", ".join(listed[:NAMED])
        return remark("models", f"{info.provider} does not list {info.name}", f"Load it there, or name one of {others}")
    return ok("models", f"{info.full_name} by default; {info.provider} answers")


async def _check_roll(app: App) -> CheckFinding:
    from clew.agents.conversations.agent_status import AgentStatuses
    from clew.agents.conversations.conversation import open_conversations  # agents take long to load
    from clew.llm.model import open_models

    flow = (await open_conversations(app.trail, app.clock, by=app.me)).flow
    if not await app.ownership.holds():
        return remark(
            "agents", "none runs: you have not agreed to this trail", "Look at it, then agree with `clew trust`"
        )
    found = await AgentStatuses(app.trail, flow, app.clock, open_models(app.config)).call(by=app.me)
    broken = [each.agent_id for each in found if each.circuit != "closed" or each.dead]
    if broken:
        return remark("agents", f"not well: {', '.join(broken)}", "`clew agents` and `clew dlq ls` show the details")
    return ok("agents", count(len(found), "agent") if found else "none yet; the first `clew chat` brings some")


async def _check_kept_back(app: App) -> list[CheckFinding]:
    from clew.agents.folder.blocked_agents import find_blocked_agents

    definitions = (await app.workspace()).definitions
    if definitions is None:
        return []
    await definitions.refresh()
    return [
        remark("agents", f"{each.name} does not run: {each.reason}", each.hint)
        for each in find_blocked_agents(definitions)
    ]


async def _check_rules(app: App) -> list[CheckFinding]:
    """Report rules about unknown tools, as far as the definitions of agents and tools show which tools exist."""
    from clew.agents.conversations.conversation import open_conversations
    from clew.agents.tools.toolbox import SPAWN
    from clew.context.definition import read_definition
    from clew.skills.agent_tools import ALWAYS, USUAL
    from clew.tools.permissions.permission_settings import find_strays
    from clew.trail.model.selector import Selector

    flow = (await open_conversations(app.trail, app.clock, by=app.me)).flow
    names = {*ALWAYS, *USUAL, SPAWN}
    for tool in (await app.trail.records.list(Selector(schema_name=flow.tool), by=app.me, limit=200)).items:
        names.add(str(tool.context.get("name")))
    for agent in (await app.trail.records.list(Selector(schema_name=flow.agent), by=app.me, limit=200)).items:
        names.update(read_definition(agent).capabilities.tools or ())
    return [remark("rules", line, "Correct it in config.toml") for line in find_strays(app.config.permissions, names)]
