"""The tools that an agent of a file has in the end."""

from __future__ import annotations

from clew.skills.agent_tools import USUAL, permissions_of, tools_of
from clew.skills.manifest import AgentPermissions, AgentSpec


def test_tools_of_other_programs_are_known_by_their_names_here() -> None:
    agent = AgentSpec(name="reader", tools=("Read", "Bash", "crossing-time"))
    assert tools_of(agent) == ("ask", "get", "read-file", "exec", "crossing-time")


def test_an_agent_that_names_no_tools_has_the_usual_ones_and_one_with_an_empty_list_has_none() -> None:
    assert tools_of(AgentSpec(name="any")) == ("ask", "get", *USUAL)
    assert tools_of(AgentSpec(name="none", tools=())) == ()


def test_a_completely_denied_tool_is_missing_under_every_name() -> None:
    rules = AgentPermissions(deny=("Bash", "write-*", "read-file(secrets/**)"))
    agent = AgentSpec(name="careful", permissions=rules)
    assert tools_of(agent) == ("ask", "get", "read-file", "edit-file", "preview-edit", "glob", "grep", "fetch")
    assert tools_of(AgentSpec(name="none", permissions=AgentPermissions(deny=("*",)))) == ()


def test_rules_have_the_names_of_here() -> None:
    rules = AgentPermissions(allow=("Read",), ask=("WebFetch(*.org)",), deny=("Bash(git push*)", "crossing-time"))
    assert permissions_of(AgentSpec(name="a", permissions=rules)) == AgentPermissions(
        allow=("read-file",), ask=("fetch(*.org)",), deny=("exec(git push*)", "crossing-time")
    )
