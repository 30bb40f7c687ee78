"""Requests to Clew's team as steps: each request has one task, whose first version fails the linter, whose second
fails a test, and whose third passes. For a crash the request has many tasks, and the process dies in one of the last
merges."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from clew.team.messages.message import SCHEMA
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from speed.step_payload import Step, first_payload
from speed.team_crew import ANSWERS, ME, Crew, open_crew, plan_of, script

ISSUE = {"file": "part.py", "line": 1, "category": "lint", "severity": "error", "message": "an unused import"}
FAILURE = {"file": "test_part.py", "test_name": "test_part", "message": "wrong"}
TASK = {"id": "part", "prompt": "Write the part.", "files": ["part.py"], "criteria": ["It is short."]}


class TeamStepper:
    """See `Stepper`. With `tasks` a request has so many small tasks instead, and a step is the merge of one."""

    def __init__(self, folder: Path, step: Step, tasks: int = 0) -> None:
        self._step = step
        self._merged = 0
        self._checks: Counter[tuple[str, str]] = Counter()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._tasks = tasks
        self.steps = 0
        self._crew = self._runner.run(self._open(folder))

    async def _open(self, folder: Path) -> Crew:
        nodes = [_small(at) for at in range(self._tasks)] if self._tasks else [TASK]
        answers = {"team-merge": self._merge, **({} if self._tasks else {"team-check": self._check})}
        return await open_crew(folder, script(plan_of(nodes)), self._stack, answers=answers)

    async def _merge(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self._step.take({**first_payload(), "n": self._merged})
        self._merged += 1
        return ANSWERS["team-merge"]

    async def _check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The first lint and the first test of a task fail."""
        kind = str(given["kind"])
        self._checks[given["session"], kind] += 1
        if self._checks[given["session"], kind] > 1:
            return ANSWERS["team-check"]
        found = {"issues": [ISSUE], "failures": []} if kind == "lint" else {"issues": [], "failures": [FAILURE]}
        return {"passed": False, "receipts": [], **found}

    def run(self, sessions: list[str], steps: int) -> None:
        self._runner.run(self._run(len(sessions)))

    async def _run(self, count: int) -> None:
        head = await self._crew.trail.log.head()
        sessions = [await self._crew.start() for _ in range(count)]
        await asyncio.gather(*map(self._crew.end, sessions))
        self.steps = await count_steps(self._crew.trail, head)

    def resume(self, session: str) -> None:
        self._runner.run(self._resume())

    async def _resume(self) -> None:
        newest = await self._crew.trail.records.list(Selector(schema_name=SCHEMA), by=ME, limit=1)
        await self._crew.end(str(newest.items[0].session))

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


async def count_steps(trail: Trail, after: int) -> int:
    """The calls of models and tools since an event."""
    flow, head, count = await read_flow(trail, by=ME), await trail.log.head(), 0
    while after < head:
        events, after = await trail.log.read(after, by=ME, selector=Selector(schema_name=flow.request), limit=1_000)
        count += sum(each.type == "breadcrumb.created" for each in events)
    return count


def _small(at: int) -> dict[str, Any]:
    return {"id": f"part{at}", "prompt": "Write the part.", "files": [f"part{at}.py"]}
