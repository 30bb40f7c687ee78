from __future__ import annotations

from typing import Any

import pytest

from clew.context.definition import definition_of, read_definition
from clew.errors import InvalidInput
from tests.context.conftest import Place


@pytest.mark.req("RCR-39")
async def test_a_breadcrumb_is_an_agent_with_all_that_it_says(place: Place) -> None:
    context = {
        "agent_id": "tagger",
        "llm_config_id": None,
        "model": "fast",
        "system_prompt": "Tag notes.",
        "capabilities": {"can_spawn_agents": True, "tools": ["read-*"], "max_turns": 3},
        "subscriptions": {"selectors": [{"schema_name": "agent.context.v1", "all_tags": ["consumer:tagger"]}]},
        "context_trigger": {"schema_name": "note.v1"},
        "context_sources": {"always": [{"type": "tag", "tag": "browser:active-tab", "optional": True}]},
    }
    written = await place.write("", title="Agent", schema_name=place.flow.agent, context=context)
    found = read_definition(written)
    assert (found.id, found.version, found.agent_id, found.model) == (written.id, 1, "tagger", "fast")
    assert found.capabilities.can_spawn_agents
    assert found.capabilities.max_turns == 3
    (subscription,) = found.subscriptions.selectors
    assert subscription.role == "trigger"
    assert subscription.fetch.method == "event_data"
    assert list(subscription.selector.all_tags) == ["consumer:tagger"]
    assert found.context_trigger is not None
    assert found.context_trigger.schema_name == "note.v1"
    assert found.context_sources.semantic.limit == 10
    assert found.context_sources.session.limit == 20


@pytest.mark.parametrize(
    ("context", "field", "hint"),
    [
        ({}, "agent_id", "text"),
        ({"agent_id": ""}, "agent_id", ""),
        ({"agent_id": "a", "sytem_prompt": "x"}, "sytem_prompt", "system_prompt"),
        ({"agent_id": "a", "context_sources": {"always": [{"schema_name": "x", "limit": 0}]}}, "limit", ""),
        ({"agent_id": "a", "context_sources": {"always": [{"type": "tag"}]}}, "context_sources.always[0].tag", "needs"),
        ({"agent_id": "a", "context_trigger": {"tag_prefix": ""}}, "context_trigger.tag_prefix", ""),
        ({"agent_id": "a", "subscriptions": {"selectors": [{"rol": "x"}]}}, "subscriptions.selectors[0].rol", "role"),
        ({"agent_id": "a", "context_sources": {"semantic": {"enabled": "yes"}}}, "semantic.enabled", ""),
    ],
)
def test_a_wrong_field_is_named_with_what_would_be_right(context: dict[str, Any], field: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        definition_of(context)
    assert field in caught.value.field
    assert hint in str(caught.value)


@pytest.mark.parametrize("name", ["team", "user", "runtime"])
def test_no_agent_has_a_name_by_which_it_could_act_as_the_team(name: str) -> None:
    with pytest.raises(InvalidInput, match="is reserved by Clew"):
        definition_of({"agent_id": name})
