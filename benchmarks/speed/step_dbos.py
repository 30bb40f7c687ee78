"""Steps of DBOS on SQLite: a workflow that calls a step again and again, one workflow a session.

Blocking functions are used: the asynchronous ones are slower. SQLite has a rollback journal, and flushes every commit.
"""

from __future__ import annotations

from pathlib import Path

from dbos import DBOS, SetWorkflowID

from speed.step_payload import Payload, Step, first_payload

_step = Step()


@DBOS.step()  # type: ignore[untyped-decorator]  # of a package without types here
def take(payload: Payload) -> Payload:
    return _step.take(payload)


@DBOS.workflow()  # type: ignore[untyped-decorator]  # of a package without types here
def chain(last: int) -> None:
    payload = first_payload()
    while payload["n"] < last:
        payload = take(payload)


class DbosStepper:
    """See `Stepper`. Pending workflows go on by themselves when it is launched."""

    def __init__(self, folder: Path, step: Step) -> None:
        global _step
        _step = step
        url = f"sqlite:///{folder / 'dbos.sqlite'}"
        DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "application_version": "1"})
        DBOS.launch()

    def run(self, sessions: list[str], steps: int) -> None:
        handles = []
        for name in sessions:
            with SetWorkflowID(name):
                handles.append(DBOS.start_workflow(chain, steps))
        for handle in handles:
            handle.get_result()

    def resume(self, session: str) -> None:
        DBOS.retrieve_workflow(session).get_result()

    def close(self) -> None:
        DBOS.destroy()
