"""Steps on a trail: a handler whose output is its next trigger."""

from __future__ import annotations

import asyncio
from pathlib import Path

from clew.access import Principal
from clew.agents.workers.worker_names import release_dead_workers, worker_name
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag
from clew.trail.work.handlers import Handler, Worker
from speed.step_payload import Payload, Step, first_payload

ME = Principal(owner_id="bench", agent_id="bench")
SCHEMA = "step.v1"
DEFINITION = Draft(
    title="A step",
    schema_name="schema.def.v1",
    context={"schema_name": SCHEMA, "embed": "never"},
    idempotency_key="definition",
)
"""Steps are not found by meaning, as the records that the runtime writes for itself."""


class ClewStepper:
    """See `Stepper`. The payload is the context of a breadcrumb that has the tags of its session and run."""

    def __init__(self, folder: Path, step: Step, steps: int = 0) -> None:
        self._step = step
        self._steps = steps
        self._done: dict[str, asyncio.Future[None]] = {}
        self._runner = asyncio.Runner()
        self._runner.run(self._open(folder))

    async def _open(self, folder: Path) -> None:
        self._trail: Trail = await open_trail(f"sqlite://{folder / 'trail.db'}", embedder=None)
        await release_dead_workers(self._trail, by=ME)
        await self._trail.records.create(DEFINITION, by=ME)
        handler = Handler(name="step", selector=Selector(schema_name=SCHEMA), function=self._handle)
        self._worker = Worker(self._trail, [handler], by=ME, worker_id=worker_name(), concurrency=32)
        await self._worker.register()
        self._task = asyncio.create_task(self._worker.run())

    async def _handle(self, event: Event, deps: None) -> list[Draft]:
        found = event.breadcrumb
        assert found is not None
        if found.context["n"] < self._steps:
            return [draft_of(self._step.take(found.context), found.tags)]
        self._future(str(found.session)).set_result(None)
        return []

    def run(self, sessions: list[str], steps: int) -> None:
        self._steps = steps
        self._runner.run(self._run(sessions))

    async def _run(self, sessions: list[str]) -> None:
        for name in sessions:
            tags = (f"session:{name}", run_tag(f"0190f3a0-0000-7000-8000-{abs(hash(name)) % 10**12:012}"))
            await self._trail.records.create(draft_of(first_payload(), tags), by=ME)
        await asyncio.gather(*map(self._future, sessions))

    def resume(self, session: str) -> None:
        self._runner.run(self._wait(session))

    async def _wait(self, session: str) -> None:
        await self._future(session)

    def _future(self, session: str) -> asyncio.Future[None]:
        """Done when the session is."""
        return self._done.setdefault(session, asyncio.get_running_loop().create_future())

    def close(self) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        await self._acknowledged()
        self._worker.stop()
        await self._task
        await self._trail.close()

    async def _acknowledged(self) -> None:
        """Wait for the acknowledgement of every last step. The next process would repeat such a step, and go on from
        there where its sessions have more steps."""
        while any(  # noqa: ASYNC110 - an acknowledgement writes no event to wait for
            each.pending or each.claimed for each in await self._trail.deliveries.consumers(by=ME)
        ):
            await asyncio.sleep(0.01)


def draft_of(payload: Payload, tags: tuple[str, ...]) -> Draft:
    return Draft(title="step", context=payload, tags=tags, schema_name=SCHEMA)
