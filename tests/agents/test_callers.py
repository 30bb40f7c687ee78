"""The chain of agents that called one another: an agent whose chain cannot be followed may do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from clew.agents.runs.callers import MAX_DEPTH, CallingAgent, caller_metadata, find_caller, walk_callers
from clew.context.definition import AgentDefinition


def agent(name: str, metadata: dict[str, Any] | None = None) -> AgentDefinition:
    return AgentDefinition(agent_id=name, metadata=metadata or {})


def test_the_metadata_of_a_caller_are_read_as_written() -> None:
    caller = CallingAgent(agent="parent", request="r1", budget="b")
    assert find_caller(caller_metadata(caller)) == caller
    assert find_caller({}) is None


@pytest.mark.parametrize("told", ["parent", 7, [], {"agent": 7}])
def test_a_caller_that_cannot_be_read_is_an_unknown_one(told: Any) -> None:
    assert find_caller({"called_by": told}) == CallingAgent()


@pytest.mark.parametrize(("depth", "is_whole"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
async def test_callers_are_followed_up_to_one_limit(depth: int, is_whole: bool) -> None:
    chain = [
        agent("0"),
        *(agent(str(at), caller_metadata(CallingAgent(agent=str(at - 1)))) for at in range(1, depth + 1)),
    ]

    async def find(name: str) -> AgentDefinition | None:
        return chain[int(name)]

    found = [each async for each in walk_callers(chain[-1], find)]
    assert (None not in found) == is_whole
