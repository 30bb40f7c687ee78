"""Load, unload, compact and restart in any order: the prompt always agrees with the records."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from clew.clock import ManualClock, SystemClock
from clew.skills.exposure import Exposures
from clew.skills.exposure_store import MemoryExposures, TrailExposures
from clew.skills.sessions.session import SKILL
from clew.trail import open_trail
from clew.trail.store import Trail
from tests.faults.processes import Child, open_at
from tests.skills.long_conversation import (
    INITIAL,
    MANIFEST,
    NUMBERS,
    WHO,
    Context,
    Operation,
    Recorded,
    after,
    at_the_start,
    check,
    open_skills,
    operations,
    perform,
    skills_of,
    work_until_killed,
)

CYCLES = 50
KILLS = 6


@pytest.mark.req("BEY-03")
async def test_fifty_cycles_of_load_unload_compact_and_restart_leave_nothing_behind(
    tmp_path: Path, clock: ManualClock
) -> None:
    moves, context, recorded = random.Random(4), Context(), at_the_start()
    trail = await open_at(tmp_path, clock=clock)
    skills = open_skills(TrailExposures(trail, clock), clock)
    baseline = await context.tokens(skills)
    more = [name for name in MANIFEST.skills if name not in INITIAL]
    try:
        for _ in range(CYCLES):
            chosen = moves.sample(more, moves.randint(1, 6))
            for name in chosen:
                await context.call(skills, "loadSkill", name)
                recorded = after(recorded, ("load", name))
            await check(skills, recorded)
            assert await context.tokens(skills) > baseline * 1.01
            if moves.random() < 0.6:
                await context.compact(skills)
                text = await context.text(skills)
                held = [name for name in MANIFEST.skills if MANIFEST.skills[name].content.strip() in text]
                assert set(held) == skills_of(recorded)
            if moves.random() < 0.4:
                await trail.close()
                trail = await open_at(tmp_path, clock=clock)
                skills = open_skills(TrailExposures(trail, clock), clock)
                await check(skills, recorded)
            for name in moves.sample(chosen, len(chosen)):
                await context.call(skills, "unloadSkill", name)
                recorded = after(recorded, ("unload", name))
                await check(skills, recorded)
            await context.compact(skills)
            assert await context.tokens(skills) == pytest.approx(baseline, rel=0.01)
            assert recorded == at_the_start()
    finally:
        await trail.close()


@pytest.mark.req("BEY-03")
@pytest.mark.parametrize("seed", range(2))
async def test_the_prompt_equals_the_record_after_any_operations(
    sets: Exposures, clock: ManualClock, seed: int
) -> None:
    skills, recorded = open_skills(sets, clock), at_the_start()
    await check(skills, recorded)
    for number, operation in enumerate(islice(operations(seed), CYCLES)):
        await perform(skills, operation)
        recorded = after(recorded, operation)
        if number % 7 == 0:
            skills = open_skills(sets, clock)
        await check(skills, recorded)


@pytest.mark.req("BEY-03")
async def test_loads_of_a_killed_process_are_there_for_the_next(tmp_path: Path) -> None:
    recorded, moments = at_the_start(), random.Random(2)
    for round in range(KILLS):
        with Child(work_until_killed, tmp_path, round) as child:
            assert child.hear() == ("began", "")
            done = [child.hear() for _ in range(moments.randint(1, 25))]
            child.kill()
            done += list(heard_since(child))
        for operation in done:
            recorded = after(recorded, operation)
        following = next(islice(operations(round), len(done), None))
        recorded = await settle(tmp_path, [recorded, after(recorded, following)])


def heard_since(child: Child) -> list[Operation]:
    """The output of the child before it was killed."""
    heard: list[Operation] = []
    while child._channel.poll(0):
        try:
            heard.append(child._channel.recv())
        except (EOFError, OSError):
            break
    return heard


async def settle(folder: Path, possible: list[Recorded]) -> Recorded:
    """The recorded state: the last, unreported operation may or may not be done."""
    trail, clock = await open_at(folder), SystemClock()
    try:
        skills = open_skills(TrailExposures(trail, clock), clock)
        kept = set((await skills.session(WHO).exposure()).items)
        recorded = next(each for each in possible if {*each, f"agent:{WHO}"} == kept)
        await check(skills, recorded)
        assert await trail.upkeep.check() == []
        return recorded
    finally:
        await trail.close()


class Sessions(RuleBasedStateMachine):
    """One agent, and a dictionary of its expected records."""

    open_sets: Callable[[Sessions], Coroutine[Any, Any, Exposures]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.trail: Trail | None = None
        self.recorded: Recorded = {}
        self.passing: dict[str, int] = {}

    @initialize()
    def begin(self) -> None:
        self.sets = self.do(self.open_sets())
        self.skills = open_skills(self.sets, self.clock)
        self.baseline = len(self.do(self.skills.get_prompt(WHO)).content)
        self.recorded = at_the_start()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @rule(seed=st.integers(0, 10_000))
    def operate(self, seed: int) -> None:
        operation = next(operations(seed))
        self.do(perform(self.skills, operation))
        self.recorded = after(self.recorded, operation)
        if operation[0] == "load":
            self.passing.pop(f"{SKILL}{operation[1]}", None)

    @rule(numbers=st.sets(st.sampled_from(NUMBERS), min_size=2), seed=st.integers(0, 10_000))
    def load_and_unload_at_once(self, numbers: set[int], seed: int) -> None:
        """Each name in one direction only, so that the order does not matter; some of it twice."""
        moves = random.Random(seed)
        operations = [(moves.choice(("load", "unload")), f"skill-{n}") for n in sorted(numbers)]
        twice = [*operations, *moves.sample(operations, len(operations) // 2)]

        async def together() -> None:
            await asyncio.gather(*(perform(self.skills, each) for each in twice))

        self.do(together())
        for each in operations:
            self.recorded = after(self.recorded, each)
            self.passing.pop(f"{SKILL}{each[1]}", None)

    @rule(number=st.sampled_from(NUMBERS), minutes=st.integers(1, 5))
    def load_for_a_time(self, number: int, minutes: int) -> None:
        item = f"{SKILL}skill-{number}"
        until = self.clock.now() + timedelta(minutes=minutes)
        self.do(self.skills.session(WHO).load_skill(f"skill-{number}", until=until))
        if item not in self.recorded:
            self.recorded = {**self.recorded, item: "load"}
            self.passing[item] = minutes

    @rule(minutes=st.integers(1, 5))
    def let_time_pass(self, minutes: int) -> None:
        self.clock.advance(minutes=minutes)
        self.passing = {item: left - minutes for item, left in self.passing.items()}
        over = {item for item, left in self.passing.items() if left <= 0}
        self.recorded = {item: via for item, via in self.recorded.items() if item not in over}
        self.passing = {item: left for item, left in self.passing.items() if left > 0}

    @rule()
    def reset(self) -> None:
        self.do(self.skills.session(WHO).reset())
        assert self.do(self.skills.get_session_state(WHO)) is None
        self.do(self.skills.get_tools(WHO))
        self.recorded, self.passing = at_the_start(), {}

    @rule()
    def restart(self) -> None:
        self.skills = open_skills(self.sets, self.clock)

    @rule()
    def unload_all(self) -> None:
        for item in self.recorded:
            kind, _, name = item.partition(":")
            if name not in INITIAL:
                self.do(perform(self.skills, ("unload" if kind == "skill" else "unload_toolset", name)))
        for name in INITIAL:
            self.do(perform(self.skills, ("load", name)))
        kept = {item: via for item, via in self.recorded.items() if item.removeprefix(SKILL) in INITIAL}
        self.recorded = {**kept, **{f"{SKILL}{name}": "load" for name in INITIAL if f"{SKILL}{name}" not in kept}}
        self.passing = {}
        assert len(self.do(self.skills.get_prompt(WHO)).content) == self.baseline

    @invariant()
    def what_is_recorded_is_told(self) -> None:
        self.passing = {item: left for item, left in self.passing.items() if item in self.recorded}
        self.do(check(self.skills, self.recorded))

    def teardown(self) -> None:
        if self.trail is not None:
            self.do(self.trail.close())
        self.runner.close()


class SessionsInMemory(Sessions):
    async def open_sets(self) -> Exposures:
        return MemoryExposures(self.clock)


class SessionsOnTheTrail(Sessions):
    async def open_sets(self) -> Exposures:
        self.trail = await open_trail("sqlite://:memory:", self.clock)
        return TrailExposures(self.trail, self.clock)


@pytest.mark.req("BEY-03")
@pytest.mark.req("CAR-06")
@pytest.mark.req("CAR-16")
@pytest.mark.parametrize(("machine", "examples"), [(SessionsInMemory, 25), (SessionsOnTheTrail, 12)])
def test_the_prompt_equals_the_record_in_every_state(machine: type[Sessions], examples: int) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=15))
