"""The steps of a team in LangGraph: a supervisor that hands over to architect, engineer, inspector and checks, with a
feedback loop and the SQLite saver.

`agents` are agents of LangChain with a scripted chat model and one tool, as subgraphs; so every call of a model and of
a tool is a durable step, as in Clew. Without them each such call is a bare node that does nothing: the least that
LangGraph can take for as many durable steps.
"""

from __future__ import annotations

import itertools
import operator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

SUPERVISOR = "supervisor"
CHECKS = ("open", "worktree", "commit", "lint", "diff", "covering", "merge")
AGENTS = ("architect", "engineer", "inspector")
NEXT = {
    "": "open",
    "open": "architect",
    "architect": "worktree",
    "worktree": "engineer",
    "engineer": "commit",
    "commit": "lint",
    "diff": "inspector",
    "inspector": "covering",
}
TEXT = "A short message of an agent or the output of a tool."
CALLS = 3
"""Steps of an agent: the model calls a tool, the tool answers, the model answers."""


class TeamGraphState(TypedDict):
    """`done` is the last step, `lints` and `tests` count the checks, `steps` all steps."""

    done: str
    lints: int
    tests: int
    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[int, operator.add]


class ScriptedChat(BaseChatModel):
    """Calls its tool once after each message of the user, and then answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedChat:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if isinstance(messages[-1], HumanMessage):
            call = {"name": "signal", "args": {"summary": "written"}, "id": f"call-{len(messages)}"}
            answer = AIMessage(content="", tool_calls=[call])
        else:
            answer = AIMessage(content="Done.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def signal(summary: str) -> str:
    """Claim that the task is done."""
    return "sent"


def supervise(state: TeamGraphState) -> str:
    """The next step, by the rules of Clew's pipeline: lint and tests fail once each."""
    match state["done"]:
        case "lint":
            return "diff" if state["lints"] > 1 else "engineer"
        case "covering":
            return "merge" if state["tests"] > 1 else "engineer"
    return NEXT.get(state["done"], END)


def check(name: str) -> Any:
    """A node that does nothing but say so."""

    def take(state: TeamGraphState) -> dict[str, Any]:
        return {
            "messages": [HumanMessage(content=TEXT, name=name)],
            "steps": 1,
            "done": name,
            "lints": state["lints"] + (name == "lint"),
            "tests": state["tests"] + (name == "covering"),
        }

    return take


def build_graph(*, agents: bool) -> StateGraph[TeamGraphState]:
    graph = StateGraph(TeamGraphState)
    graph.add_node(SUPERVISOR, lambda state: {"messages": []})
    graph.add_edge(START, SUPERVISOR)
    for name in CHECKS:
        graph.add_node(name, check(name))
        graph.add_edge(name, SUPERVISOR)
    for name in AGENTS:
        _add_agent(graph, name) if agents else _add_bare(graph, name)
    graph.add_conditional_edges(SUPERVISOR, supervise, [*CHECKS, *AGENTS, END])
    return graph


def _add_agent(graph: StateGraph[TeamGraphState], name: str) -> None:
    """An agent with its tool. The function around it says that it is done, and adds no step of its own."""
    agent = create_agent(ScriptedChat(), [signal], system_prompt=f"You are the {name}.", name=name)

    def take(state: TeamGraphState) -> dict[str, Any]:
        answered = agent.invoke({"messages": [*state["messages"], HumanMessage(content=TEXT)]})
        return {"messages": answered["messages"][-1:], "done": name, "steps": CALLS}

    graph.add_node(name, take)
    graph.add_edge(name, SUPERVISOR)


def _add_bare(graph: StateGraph[TeamGraphState], name: str) -> None:
    nodes = [f"{name}{part}" for part in ("", "-tool", "-answer")]
    for each, following in itertools.pairwise([*nodes, SUPERVISOR]):
        last = following == SUPERVISOR

        def take(state: TeamGraphState, last: bool = last) -> dict[str, Any]:
            return {"messages": [AIMessage(content=TEXT)], "steps": 1, **({"done": name} if last else {})}

        graph.add_node(each, take)
        graph.add_edge(each, following)


class TeamGraphStepper:
    """See `Stepper`. A session is one request; its number of steps follows from the work."""

    def __init__(self, folder: Path, *, agents: bool) -> None:
        self._saving = SqliteSaver.from_conn_string(str(folder / "graph.db"))
        self._graph = build_graph(agents=agents).compile(checkpointer=self._saving.__enter__())
        self.steps = 0

    def run(self, sessions: list[str], steps: int) -> None:
        with ThreadPoolExecutor(len(sessions)) as threads:
            self.steps = sum(threads.map(self._invoke, sessions))

    def _invoke(self, session: str) -> int:
        given = {"done": "", "lints": 0, "tests": 0, "messages": [], "steps": 0}
        config = {"configurable": {"thread_id": session}, "recursion_limit": 1_000}
        return int(self._graph.invoke(given, config, durability="sync")["steps"])

    def resume(self, session: str) -> None:
        raise NotImplementedError("only the steps are measured")

    def close(self) -> None:
        self._saving.__exit__(None, None, None)
