"""Steps of LangGraph with its SQLite saver: a graph of one node that goes round, a thread a session.

The blocking saver is used: the asynchronous one is about half as fast. SQLite flushes every commit of it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from speed.step_payload import Payload, Step, first_payload


class State(TypedDict):
    payload: Payload
    last: int


class LangGraphStepper:
    """See `Stepper`. With `async`, its default, a checkpoint is written while the next step runs, and a crash may lose
    it; with `sync` it is written before the next step."""

    def __init__(self, folder: Path, step: Step, durability: Literal["sync", "async"]) -> None:
        self._durability = durability
        self._saving = SqliteSaver.from_conn_string(str(folder / "graph.db"))
        graph = StateGraph(State)
        graph.add_node("step", lambda state: {"payload": step.take(state["payload"])})
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda state: END if state["payload"]["n"] >= state["last"] else "step")
        self._graph = graph.compile(checkpointer=self._saving.__enter__())

    def run(self, sessions: list[str], steps: int) -> None:
        given = {"payload": first_payload(), "last": steps}
        with ThreadPoolExecutor(len(sessions)) as threads:
            list(threads.map(lambda name: self._invoke(given, name), sessions))

    def resume(self, session: str) -> None:
        self._invoke(None, session)

    def _invoke(self, given: Any, session: str) -> None:
        config = {"configurable": {"thread_id": session}, "recursion_limit": 1_000_000}
        self._graph.invoke(given, config, durability=self._durability)

    def close(self) -> None:
        self._saving.__exit__(None, None, None)
