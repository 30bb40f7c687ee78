"""Names of workers, which show whether their process is alive."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clew.access import Principal
from clew.agents.workers.worker_names import is_dead, release_dead_workers, worker_name
from clew.trail.model.event import Consumer
from clew.trail.store import Trail
from tests.conformance.records import make


def ended_worker() -> str:
    """The name of a process that has ended."""
    code = "from clew.agents.workers.worker_names import worker_name; print(worker_name())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_this_process_lives_and_one_that_has_ended_does_not() -> None:
    assert not is_dead(worker_name())
    assert is_dead(ended_worker())


def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it() -> None:
    host, pid, _ = worker_name().rsplit(":", 2)
    assert is_dead(f"{host}:{pid}:1")


@pytest.mark.parametrize("name", ["elsewhere:1:1", "worker", "", "a:b:c"])
def test_nothing_is_said_of_workers_elsewhere(name: str) -> None:
    assert not is_dead(name)


@pytest.mark.req("BEY-07")
async def test_only_the_claims_of_the_dead_are_freed(trail: Trail, me: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me, "a")
    await make(trail, me, "b")
    await trail.deliveries.claim("c", by=me, worker=ended_worker())
    await trail.deliveries.claim("c", by=me, worker=worker_name())
    assert await release_dead_workers(trail, by=me) == 1
    assert await trail.deliveries.workers(by=me) == [worker_name()]
