"""A tool that needs its user's consent, and helpers for tests of consent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from clew.access import Principal
from clew.agents.conversations.sessions import SentMessage
from clew.agents.conversations.steps import Choice
from clew.clock import Clock
from clew.tools.permissions.policy import read_policy
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import CLERK, hire

ASK = read_policy({"rules": [{"tool": "pay", "verdict": "ask"}, {"tool": "*", "verdict": "allow"}]})
PAYING: list[dict[str, Any]] = [
    {"user": "pay", "call": {"pay": {"amount": 3, "token": "hunter2"}}},
    {"expect": "/paid 3|did not allow|is not allowed/", "say": "Done."},
]
PERMISSIONS = "tools-runner/permissions"


class Bank:
    """The payments by key and amount, and runs that must ask before they pay."""

    def __init__(self, trail: Trail, clock: Clock, me: Principal) -> None:
        self.trail, self.clock, self.me = trail, clock, me
        self.paid: list[str] = []
        self.amounts: list[int] = []

    def open(self, script: Sequence[Mapping[str, Any]] = PAYING, *more: Tool) -> AbstractAsyncContextManager[Running]:
        """A runtime whose agents can pay, and use some other tools."""

        @tool(effects=Effects(keyed=True))
        async def pay(amount: int, context: ToolContext, token: str = "") -> str:
            """Pay something."""
            self.paid.append(context.key)
            self.amounts.append(amount)
            return f"paid {amount}"

        return running(self.trail, self.clock, self.me, script, tools=[pay, *more], policy=ASK)

    @asynccontextmanager
    async def asking(
        self, script: Sequence[Mapping[str, Any]] = PAYING, *more: Tool
    ) -> AsyncIterator[tuple[Running, SentMessage, Breadcrumb]]:
        """A run that waits for its user's consent: the runtime, the message and the question."""
        async with self.open(script, *more) as run:
            await hire(run)
            sent = await say(run)
            yield run, sent, await asked(run)


async def asked(run: Running, count: int = 1) -> Breadcrumb:
    """The newest question, once there are so many."""
    return (await run.until(Selector(schema_name=run.flow.permission_request), count))[-1]


async def say(run: Running, text: str = "pay", session: str | None = None) -> SentMessage:
    return await run.talk.send(text, by=run.me, agent=CLERK, session=session)


async def answer(run: Running, question: Breadcrumb, choice: Choice) -> None:
    await run.talk.answer_permission(question.context["request_id"], choice, by=run.me)


async def of_pay(run: Running, sent: SentMessage, schema: str) -> Breadcrumb:
    """The one record of a schema that a run has about paying."""
    (found,) = [each for each in await run.written(sent.run, schema) if each.context["tool"] == "pay"]
    return found


def answer_draft(flow: Flow, request_id: str, choice: str, **more: Any) -> Draft:
    """An answer as a door writes it; `question` names the one that it is to."""
    return Draft(
        title="An answer",
        schema_name=flow.permission_answer,
        tags=(f"request:{request_id}",),
        context={"request_id": request_id, "answer": choice, "by": "somebody", **more},
    )


async def ask_for(run: Running, amount: int, id: str = "r1", **more: Any) -> Breadcrumb:
    """A request that the tools runner takes."""
    draft = Draft(
        title="A request",
        schema_name=run.flow.request,
        tags=("workspace:tools", f"request:{id}", "session:s"),
        context={"tool": "pay", "input": {"amount": amount, **more}, "requestId": id, "requestedBy": CLERK},
    )
    return await run.trail.records.create(draft, by=run.me)
