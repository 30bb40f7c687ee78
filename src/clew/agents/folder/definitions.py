"""Definitions of agents as those read them who run agents: a budget or permissions that cannot be used are found before
anything runs."""

from __future__ import annotations

from clew.agents.budgets.amounts import read_limits
from clew.context.definition import AgentDefinition, read_definition
from clew.tools.permissions.policy import read_policy
from clew.trail.model.breadcrumb import Breadcrumb


def read_agent(breadcrumb: Breadcrumb) -> AgentDefinition:
    """The agent that a breadcrumb defines. Raises InvalidInput that names the field."""
    found = read_definition(breadcrumb)
    read_limits(found.budget)
    read_policy(found.permissions or {})
    return found
