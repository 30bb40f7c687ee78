"""The tools of a suite of AgentDojo as tools of Clew. Each conversation has an environment of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentdojo.functions_runtime import Function, FunctionCall, FunctionsRuntime, TaskEnvironment

from clew.tools.content import GuidedContent, as_content
from clew.tools.tool import Effects, Tool, ToolContext

CHANGING: dict[str, frozenset[str]] = {
    "workspace": frozenset(
        {
            "send_email",
            "delete_email",
            "create_calendar_event",
            "cancel_calendar_event",
            "reschedule_calendar_event",
            "add_calendar_event_participants",
            "append_to_file",
            "create_file",
            "delete_file",
            "share_file",
        }
    ),
    "travel": frozenset(
        {
            "create_calendar_event",
            "cancel_calendar_event",
            "reserve_hotel",
            "reserve_car_rental",
            "reserve_restaurant",
            "send_email",
        }
    ),
    "banking": frozenset(
        {
            "send_money",
            "schedule_transaction",
            "update_scheduled_transaction",
            "update_password",
            "update_user_info",
        }
    ),
    "slack": frozenset(
        {
            "add_user_to_channel",
            "send_direct_message",
            "send_channel_message",
            "invite_user_to_slack",
            "remove_user_from_slack",
            "post_webpage",
        }
    ),
}
"""The tools of each suite that change or send something; all others only read."""
SCHEME = "http://"


@dataclass(slots=True)
class Stage:
    """The environment of one conversation, and the calls that reached it."""

    environment: TaskEnvironment
    done: list[FunctionCall] = field(default_factory=list)


class SuiteTools:
    """The tools of one suite. A call waits until its conversation has a stage."""

    def __init__(self, suite: str, functions: list[Function]) -> None:
        self._changing = CHANGING[suite]
        self._runtime = FunctionsRuntime(functions)
        self._stages: dict[str, asyncio.Future[Stage]] = {}

    def set_stage(self, session: str, stage: Stage) -> None:
        self._stage(session).set_result(stage)

    def _stage(self, session: str) -> asyncio.Future[Stage]:
        return self._stages.setdefault(session, asyncio.get_running_loop().create_future())

    def tools(self) -> list[Tool]:
        return [self._tool(each) for each in self._runtime.functions.values()]

    def _tool(self, function: Function) -> Tool:
        async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
            stage = await self._stage(str(context.by.session))
            made = FunctionCall(function=function.name, args=without_scheme(arguments))
            stage.done.append(made)
            found, _ = self._runtime.run_function(stage.environment, made.function, made.args, raise_on_error=True)
            return as_content(str(found))

        return Tool(
            name=function.name,
            description=function.description[:1_000],
            call=call,
            check=dict,
            schema=function.parameters.model_json_schema(),
            effects=Effects(reads_only=function.name not in self._changing),
        )


def as_script(call: FunctionCall) -> dict[str, dict[str, Any]]:
    """A call as a scripted model makes it. Clew asks about an address without a scheme, so it gets one."""
    arguments: dict[str, Any] = json.loads(json.dumps(dict(call.args), default=str))
    if isinstance(url := arguments.get("url"), str):
        arguments["url"] = url if "://" in url else SCHEME + url
    return {call.function: arguments}


def without_scheme(arguments: Mapping[str, Any]) -> dict[str, Any]:
    url = arguments.get("url")
    return {**arguments, "url": url.removeprefix(SCHEME)} if isinstance(url, str) else dict(arguments)
