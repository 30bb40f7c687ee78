"""A world in memory that carries out the effects of the team's machines: agents and tools answer by a script."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from clew.team.machines.dag import NodeStatus
from clew.team.machines.effects import (
    AskAgent,
    CallTool,
    CancelRun,
    Effect,
    EndSession,
    SendMessage,
    StartTimer,
)
from clew.team.machines.pipeline import Gate
from clew.team.machines.team_machine import step
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import (
    ARCHITECT,
    BUILDERS,
    FOR_THE_RECORD,
    INSPECTOR,
    ORCHESTRATOR,
    RUNTIME,
    USER,
    MessageType,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
T = MessageType


def accept(pipeline: object, node: object) -> tuple[str, ...]:
    """A gate that accepts everything."""
    return ()


@dataclass
class World:
    """`plan` is the plan that the Architect proposes; `tools` and `agents` override the default answers, by the name
    of the tool or the role."""

    plan: dict[str, Any]
    gate: Gate = accept
    tools: dict[str, Callable[[CallTool], dict[str, Any]]] = field(default_factory=dict)
    agents: dict[str, Callable[[AskAgent], list[TeamMessage] | None]] = field(default_factory=dict)
    state: TeamState = field(default_factory=lambda: TeamState(session="s"))
    log: list[TeamMessage] = field(default_factory=list)
    pending: list[list[TeamMessage]] = field(default_factory=list)
    """Messages that come one after the other; different lists come in any order."""
    effects: list[Effect] = field(default_factory=list)
    peak: int = 0
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def message(self, type: MessageType, source: str, target: str, payload: dict[str, Any]) -> TeamMessage:
        number = next(self.numbers)
        return TeamMessage(
            id=f"m{number}-{type}-{source}",
            session_id="s",
            source=source,
            target=target,
            type=type,
            payload=payload,
            timestamp=START + timedelta(seconds=number),
        )

    def user(self, type: MessageType, target: str = ARCHITECT, **payload: Any) -> None:
        """Deliver a message of the user at once."""
        self.deliver(self.message(type, USER, target, payload))

    def start(self, **options: Any) -> World:
        self.user(T.PLAN_REQUEST, request="add rate limiting", approves_plan=True, **options)
        return self

    def deliver(self, message: TeamMessage) -> None:
        before = self.state
        self.state, effects = step(self.state, message, self.gate)
        if message.type in FOR_THE_RECORD:  # nobody handles it
            assert not effects
            assert msgspec.structs.replace(self.state, messages=before.messages) == before
        self.log.append(message)
        self.effects += effects
        sent = [each for each in effects if isinstance(each, SendMessage)]
        self.pending.append([self.message(each.type, each.source, each.target, each.payload) for each in sent])
        for effect in effects:
            self.carry_out(effect)
        self.pending = [each for each in self.pending if each]
        if self.state.dag is not None:
            running = sum(each.status is NodeStatus.RUNNING for each in self.state.dag.nodes.values())
            self.peak = max(self.peak, running)

    def run(self, choose: Callable[[int], int] = lambda count: 0, most: int = 2_000) -> World:
        """Deliver pending messages, the next one by `choose`, until nothing is pending."""
        for _ in range(most):
            if not self.pending:
                return self
            self.deliver_next(choose(len(self.pending)))
        raise AssertionError("the team does not come to an end")

    def deliver_next(self, at: int = 0) -> None:
        message = self.pending[at].pop(0)
        self.pending = [each for each in self.pending if each]
        self.deliver(message)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case CallTool():
                self.pending.append([self._call(effect)])
            case AskAgent():
                self.pending.append(self._ask(effect))
            case StartTimer():
                if "timeout" not in effect.key:
                    self.pending.append([self.message(T.TIMER_DUE, RUNTIME, ORCHESTRATOR, {"key": effect.key})])
            case CancelRun() | EndSession() | SendMessage():
                pass

    def _call(self, effect: CallTool) -> TeamMessage:
        output = self.tools.get(effect.tool, default_output)(effect)
        status, error = output.pop("status", "success"), output.pop("error", "")
        result = {"call": effect.call, "tool": effect.tool, "status": status, "output": output, "error": error}
        return self.message(T.CALL_RESULT, RUNTIME, ORCHESTRATOR, result)

    def _ask(self, effect: AskAgent) -> list[TeamMessage]:
        scripted = self.agents.get(effect.role)
        found = scripted(effect) if scripted else None
        return found if found is not None else [*self.said(effect), self.ended(effect)]

    def said(self, effect: AskAgent) -> list[TeamMessage]:
        """The message that an agent sends by its tool, by default."""
        if effect.role == ARCHITECT:
            type = T.DAG_EXECUTE if "create_fix_dag" in effect.prompt else T.PLAN_RESPONSE
            target = ORCHESTRATOR if type is T.DAG_EXECUTE else USER
            return [self.message(type, ARCHITECT, target, {"plan": self.plan})]
        if effect.role == INSPECTOR:
            verdict = {"passed": True, **({"pipeline": effect.pipeline} if effect.pipeline else {})}
            return [self.message(T.VALIDATION_RESULT, INSPECTOR, ORCHESTRATOR, verdict)]
        if effect.role not in BUILDERS:
            return []
        claim = {"pipeline": effect.pipeline, "summary": f"{effect.pipeline} is done"}
        return [self.message(T.TASK_COMPLETE, effect.role, ORCHESTRATOR, claim)]

    def ended(self, effect: AskAgent, status: str = "answered", **more: Any) -> TeamMessage:
        end = {"conversation": effect.conversation, "role": effect.role, "pipeline": effect.pipeline, "status": status}
        return self.message(T.RUN_ENDED, RUNTIME, ORCHESTRATOR, {**end, "tokens": 10, **more})

    def replayed(self) -> TeamState:
        """The state as a process that reads the whole log builds it."""
        state = TeamState(session="s")
        for message in self.log:
            state, _ = step(state, message, self.gate)
        return state

    def types(self) -> list[MessageType]:
        return [each.type for each in self.log]


def default_output(effect: CallTool) -> dict[str, Any]:
    """The output of a tool on success."""
    match effect.tool:
        case "team-open":
            return {"branch": "clew/s", "folder": "tree", "base_commit": "c0", "head": "c0"}
        case "team-worktree":
            return {"folder": "tree", "base_commit": "c0"}
        case "team-commit":
            name = effect.input["pipeline"]
            return {"commit": f"c-{name}", "tree": f"t-{name}", "changed": [f"{name}.py"], "is_empty": False}
        case "team-check":
            receipt = {"id": f"r-{effect.call}", "command": "pytest", "exit_code": 0, "tests": {"run": 3, "passed": 3}}
            return {"passed": True, "receipts": [receipt]}
        case "team-merge":
            return {"merged": True, "head": f"h-{effect.input['pipeline']}", "tree": "merged"}
    return {"diff": "+ x", "files": []}


def plan(*nodes: tuple[str, tuple[str, ...]], **policy: Any) -> dict[str, Any]:
    """A plan of nodes with their dependencies."""
    return {
        "summary": "the plan",
        "nodes": [{"id": id, "prompt": f"do {id}", "depends_on": list(needs)} for id, needs in nodes],
        **({"policy": policy} if policy else {}),
    }


def builtins(state: TeamState) -> Any:
    return msgspec.to_builtins(state)
