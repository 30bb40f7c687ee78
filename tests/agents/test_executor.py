"""The common way in which agents, tools and workflows handle an event."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.agents.runs.executor import Gathered, UniversalExecutor, inherit
from clew.context.definition import Subscription
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from tests.agents.records import event, record

SOURCE = Path(__file__).parents[2] / "src" / "clew"


async def echo(trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
    return [Draft(title=trigger.title, context={"keys": sorted(gathered)})]


async def gather_nothing(wanted: Sequence[Subscription], trigger: Breadcrumb) -> Gathered:
    return {each.key: () for each in wanted}


@pytest.mark.req("RCR-26")
@pytest.mark.req("RCR-27")
async def test_the_trigger_is_always_given_beside_what_was_subscribed_to() -> None:
    subscriptions = [
        Subscription(schema_name="ping.v1", key="ping"),
        Subscription(schema_name="note.v1", role="context", key="notes"),
    ]
    executor = UniversalExecutor(subscriptions, echo, gather_nothing)
    (made,) = await executor(event(record("ping.v1")))
    assert made.context == {"keys": ["notes", "ping", "trigger"]}


@pytest.mark.req("RCR-26")
async def test_a_context_subscription_starts_no_run() -> None:
    executor = UniversalExecutor([Subscription(schema_name="note.v1", role="context", key="notes")], echo)
    assert list(await executor(event(record("note.v1")))) == []
    assert list(await executor(event(record("other.v1")))) == []


@pytest.mark.req("RCR-26")
async def test_a_trigger_comes_before_a_context_that_is_met_as_well() -> None:
    both = [Subscription(schema_name="a.v1", role="context"), Subscription(schema_name="a.v1")]
    found = UniversalExecutor(both, echo).find_subscription(event(record("a.v1")))
    assert found is not None
    assert found.role == "trigger"


@pytest.mark.req("RCR-40")
async def test_outputs_inherit_the_session_and_the_run_of_their_trigger() -> None:
    executor = UniversalExecutor([Subscription(schema_name="a.v1")], echo)
    (made,) = await executor(event(record("a.v1", "session:s", "run:r", "other")))
    assert tuple(made.tags) == ("session:s", "run:r")


def test_a_draft_that_names_its_own_run_keeps_it_and_one_that_begins_a_run_gets_none() -> None:
    trigger = record("a.v1", "session:s", "run:r")
    assert tuple(inherit(Draft(title="a", context={}, tags=("run:own",)), trigger).tags) == ("run:own", "session:s")
    assert tuple(inherit(Draft(title="a", context={}, tags=("run:",)), trigger).tags) == ("session:s",)


def test_each_trigger_has_a_durable_handler_of_its_own() -> None:
    subscriptions = [Subscription(schema_name="a.v1"), Subscription(schema_name="b.v1")]
    handlers = UniversalExecutor(subscriptions, echo).handlers("agent/x", after=3)
    assert [(each.name, each.selector.schema_name, each.after) for each in handlers] == [
        ("agent/x", "a.v1", 3),
        ("agent/x/1", "b.v1", 3),
    ]


@pytest.mark.req("RCR-25")
@pytest.mark.parametrize("package", ["agents", "context"])
def test_no_runner_waits_for_an_answer_that_another_event_brings(package: str) -> None:
    """Handlers neither sleep, nor poll, nor wait on the log. The names of functions that may follow the log for the
    whole process."""
    waiting = re.compile(r"asyncio\.sleep\(|\.log\.wait\(|\.log\.follow\(|time\.sleep\(")
    followers = {"cancellation.py", "placement.py", "registry.py", "runtime.py", "conversation.py", "worker_records.py"}
    found = {
        path.name for path in sorted((SOURCE / package).rglob("*.py")) if waiting.search(path.read_text())
    } - followers
    assert found == set()
