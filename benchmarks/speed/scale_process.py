"""A worker process of one contender on a PostgreSQL server.

Usage: scale_process.py CONTENDER URL PAUSE CONCURRENCY. It reports when it is ready, starts the sessions of each order
that it reads, and reports the end of each session. A step waits for PAUSE milliseconds, as for a model.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from speed.step_payload import Payload, Step, first_payload

Begin = Callable[[list[str], int], None]
MOST_SESSIONS = 64


def say(**answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def read_orders(begin: Begin) -> None:
    say(ready=True)
    for line in sys.stdin:
        order = json.loads(line)
        begin(order["sessions"], order["steps"])


# -- Clew -----------------------------------------------------------------------------------------------------


async def run_clew(url: str, pause: float, concurrency: int) -> None:
    """A handler whose output is its next trigger. The worker that handles the last step reports it."""
    from clew.trail import open_trail
    from clew.trail.model.event import Event
    from clew.trail.model.selector import Selector
    from clew.trail.work.handlers import Handler, Worker
    from speed.step_clew import DEFINITION, ME, SCHEMA, draft_of

    step = Step()

    async def handle(event: Event, deps: None) -> list[Any]:
        found = event.breadcrumb
        assert found is not None
        payload = found.context
        if payload["n"] >= payload["last"]:
            say(done=found.session)
            return []
        if pause:
            await asyncio.sleep(pause)
        return [draft_of({**step.take(payload), "last": payload["last"]}, found.tags)]

    trail = await open_trail(url, embedder=None)
    await trail.records.create(DEFINITION, by=ME)
    handler = Handler(name="step", selector=Selector(schema_name=SCHEMA), function=handle)
    worker = Worker(trail, [handler], by=ME, worker_id=f"bench-{time.time_ns()}", concurrency=concurrency)
    await worker.register()
    running = asyncio.create_task(worker.run())
    loop = asyncio.get_running_loop()

    async def begin(sessions: list[str], steps: int) -> None:
        drafts = [draft_of({**first_payload(), "last": steps}, (f"session:{name}",)) for name in sessions]
        await asyncio.gather(*(trail.records.create(draft, by=ME) for draft in drafts))

    def order(sessions: list[str], steps: int) -> None:
        asyncio.run_coroutine_threadsafe(begin(sessions, steps), loop).result()

    await asyncio.to_thread(read_orders, order)
    worker.stop()
    await running
    await trail.close()


# -- DBOS -----------------------------------------------------------------------------------------------------


def run_dbos(url: str, pause: float) -> None:
    """A workflow a session, which calls a step again and again. Blocking functions: the others are slower."""
    from dbos import DBOS, SetWorkflowID

    step = Step()

    @DBOS.step()  # type: ignore[untyped-decorator]  # of a package without types here
    def take(payload: Payload) -> Payload:
        if pause:
            time.sleep(pause)
        return step.take(payload)

    @DBOS.workflow()  # type: ignore[untyped-decorator]  # of a package without types here
    def chain(last: int) -> None:
        payload = first_payload()
        while payload["n"] < last:
            payload = take(payload)

    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "application_version": "1"})
    DBOS.launch()

    def begin(sessions: list[str], steps: int) -> None:
        for name in sessions:
            with SetWorkflowID(name):
                handle = DBOS.start_workflow(chain, steps)
            threading.Thread(target=wait, args=(handle, name)).start()

    def wait(handle: Any, name: str) -> None:
        handle.get_result()
        say(done=name)

    read_orders(begin)
    DBOS.destroy()


# -- LangGraph ------------------------------------------------------------------------------------------------


def run_langgraph(url: str, pause: float) -> None:
    """A graph of one node that goes round, a thread a session, and the blocking saver with durability `sync`."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.graph import END, START, StateGraph
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    from speed.step_langgraph import State

    step = Step()

    def take(state: State) -> dict[str, Payload]:
        if pause:
            time.sleep(pause)
        return {"payload": step.take(state["payload"])}

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, min_size=4, max_size=16, kwargs=options) as pool:
        saver = PostgresSaver(pool)  # type: ignore[arg-type]  # rows are dictionaries
        saver.setup()
        graph = StateGraph(State)
        graph.add_node("step", take)
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda state: END if state["payload"]["n"] >= state["last"] else "step")
        compiled = graph.compile(checkpointer=saver)
        threads = ThreadPoolExecutor(MOST_SESSIONS)

        def run(name: str, steps: int) -> None:
            config: Any = {"configurable": {"thread_id": name}, "recursion_limit": 1_000_000}
            compiled.invoke({"payload": first_payload(), "last": steps}, config, durability="sync")
            say(done=name)

        def begin(sessions: list[str], steps: int) -> None:
            for name in sessions:
                threads.submit(run, name, steps)

        read_orders(begin)


def main() -> None:
    name, url, pause, concurrency = sys.argv[1:]
    seconds = int(pause) / 1000
    if name == "clew":
        asyncio.run(run_clew(url, seconds, int(concurrency)))
    elif name == "dbos":
        run_dbos(url, seconds)
    else:
        run_langgraph(url, seconds)


if __name__ == "__main__":
    main()
