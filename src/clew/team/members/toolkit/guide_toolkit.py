"""Tools of the Guide: routing, status, steering of tasks, and sessions. The Guide passes wishes of the user on; it
decides nothing in the user's place."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from clew.errors import InvalidInput, NotFound
from clew.team.members.roster import roster
from clew.team.members.toolkit.member_deps import READS, MemberDeps, session_principal
from clew.team.messages.conversation import get_conversation
from clew.team.messages.message_types import AGENTS
from clew.tools.tool import Tool, ToolContext, tool

RouteIntent = Literal["recall", "store", "check", "declare", "complete"]
TaskAction = Literal["prompt", "query", "interrupt", "ignore_inspector", "ignore_tester"]
AgentName = Annotated[str, msgspec.Meta(description="the name of an agent of the team")]
TOPICS = {
    "plan": "`clew code TEXT` plans a request; the user approves, changes or refuses the plan.",
    "tasks": "`/task N prompt|query|interrupt|ignore_inspector|ignore_tester` steers one task.",
    "sessions": "`/session new|list|switch|suspend|resume|show|close` works with sessions.",
    "stop": "`clew team stop` ends the work; finished work stays on the branch of the session.",
}


def guide_toolkit(deps: MemberDeps) -> tuple[Tool, ...]:
    """Return the tools of the Guide."""
    return (*_routing(deps), *_status(deps), *_steering(deps))


def _routing(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="guide_route_message", searchable=False, effects=READS)
    async def route_message(
        input: str, ctx: ToolContext, target: AgentName = "", intent: RouteIntent | None = None
    ) -> dict[str, Any]:
        """Choose the agent that takes a message. Without a target the router decides.

        Args:
            input: the message
            intent: what it is for, if you know it
        """
        if target:
            return {"target": _agent(target), "confidence": 1.0, "decided_by": "target", "intent": intent or ""}
        found = msgspec.to_builtins(await deps.router.route(input, owner=ctx.by.owner_id))
        return {**found, "intent": intent or found.get("intent") or ""}

    @tool(name="guide_classify_intent", searchable=False, effects=READS)
    async def classify_intent(input: str, ctx: ToolContext) -> dict[str, Any]:
        """Say what a message asks for and who would take it, without sending it.

        Args:
            input: the message
        """
        return dict(msgspec.to_builtins(await deps.router.route(input, owner=ctx.by.owner_id)))

    @tool(name="broadcast", searchable=False, effects=READS)
    async def broadcast(text: str, agents: tuple[str, ...], ctx: ToolContext) -> dict[str, str]:
        """Prepare the same message for several agents: returns it for each. Agents hold no references to each other, so
        each message is routed by itself.

        Args:
            text: the message
            agents: the names of the agents
        """
        if not agents:
            raise InvalidInput("agents", "are empty", hint=f"Agents are {', '.join(AGENTS)}")
        return {_agent(name): text for name in agents}

    return route_message, classify_intent, broadcast


def _status(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="guide_get_status", searchable=False, effects=READS)
    async def get_status(ctx: ToolContext) -> dict[str, Any]:
        """Return the phase of the session, the state of each task, open questions, and the agents."""
        state = await deps.state_of(get_conversation(ctx.by.session).session)
        tasks = {id: each.status.value for id, each in state.dag.nodes.items()} if state.dag is not None else {}
        return {
            "phase": state.phase.value,
            "tasks": tasks,
            "questions": [each.question for each in state.questions.values()],
            "agents": {name: member.mode.value for name, member in roster().items()},
            "tokens": state.tokens,
        }

    @tool(name="help", searchable=False, effects=READS)
    async def help_(topic: Literal["", "plan", "tasks", "sessions", "stop"] = "") -> str:
        """Return what the user can do.

        Args:
            topic: one topic, or all
        """
        return TOPICS[topic] if topic else "\n".join(TOPICS.values())

    return get_status, help_


def _steering(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="task_interact", searchable=False, effects=READS)
    async def task_interact(task: str, action: TaskAction, ctx: ToolContext, text: str = "") -> str:
        """Return the command with which the user steers a task, after a check that the task exists.

        Args:
            task: the id of a task or of its pipeline
            action: what the user wants
            text: the words of the user
        """
        state = await deps.state_of(get_conversation(ctx.by.session).session)
        known = [id for id, each in state.pipelines.items() if task in (id, each.task_id)]
        if not known:
            raise NotFound("task", task[:100], hint=f"Tasks are {', '.join(state.pipelines) or 'not started yet'}")
        if action in ("prompt", "query") and not text.strip():
            raise InvalidInput("text", f"is empty, and {action} needs it")
        return f"/task {known[-1]} {action} {text}".rstrip()

    @tool(name="session_list", searchable=False, effects=READS)
    async def session_list(ctx: ToolContext) -> list[dict[str, str]]:
        """Return the sessions of the user with their states."""
        return [{"session": name, "state": state} for name, state in await deps.sessions(by=session_principal(ctx))]

    @tool(name="session_switch", searchable=False, effects=READS)
    async def session_switch(name: str, ctx: ToolContext) -> str:
        """Return the command with which the user changes to another session, after a check that it exists.

        Args:
            name: the name of the session
        """
        names = [each for each, _ in await deps.sessions(by=session_principal(ctx))]
        if name not in names:
            raise NotFound("session", name[:100], hint=f"Sessions are {', '.join(names) or 'none'}")
        return f"/session switch {name}"

    return task_interact, session_list, session_switch


def _agent(name: str) -> str:
    if name not in AGENTS:
        raise InvalidInput(
            "target", f"{name[:50]!r} is not an agent of the team", hint=f"Agents are {', '.join(AGENTS)}"
        )
    return name
