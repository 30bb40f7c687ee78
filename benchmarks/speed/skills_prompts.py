"""The prompt of an agent with many loaded skills: built, built with all their texts, and from the cache."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from clew.skills.library import Skills
from clew.skills.manifest import Agent, Manifest, Skill
from clew.skills.prompt import Sections
from speed.report import Finding, Promise, Row
from speed.skills_stage import Settings, Written, make_skills, write_skills
from speed.timing import Rounds, paired_ratio, rotate

MEASURE = "prompt"
MOST_BUILT, MOST_KNOWN = 5.0, 0.1
BUILT, CHANGED, WHOLE, KNOWN = (
    "clew, built",
    "clew, load, build, unload",
    "clew, built with all texts",
    "clew, from the cache",
)
PEER = "skills-ref, to_prompt of as many"

Work = Callable[[int], Awaitable[str]]


async def measure(settings: Settings) -> list[Finding]:
    made = make_skills(settings)
    contenders = await ours(settings, made)
    if settings.peers:
        contenders |= theirs(write_skills(settings.scratch / "prompts", made[: settings.loaded]))
    times = {name: Rounds() for name in contenders}
    sizes: dict[str, int] = {}
    for turn in range(settings.rounds):
        for name in rotate(list(contenders), turn):
            times[name].begin()
            for at in range(settings.samples):
                number = turn * settings.samples + at
                began = time.perf_counter()
                text = await contenders[name](number)
                times[name].add(time.perf_counter() - began)
                sizes[name] = len(text)
    rows = [
        Row(
            measure=MEASURE,
            records=settings.loaded,
            contender=name,
            values={**rounds.spread(), "characters": sizes[name]},
        )
        for name, rounds in times.items()
    ]
    return [*rows, *judge(settings, times)]


def judge(settings: Settings, times: dict[str, Rounds]) -> list[Finding]:
    found: list[Finding] = [
        Promise(
            name=f"prompt with {settings.loaded} loaded skills, {name.removeprefix('clew, ')}, p95 ms",
            records=settings.skills,
            value=times[name].milliseconds(0.95),
            target=most,
            at_least=False,
        )
        for name, most in (
            (BUILT, MOST_BUILT),
            (WHOLE, MOST_BUILT),
            (KNOWN, MOST_KNOWN),
        )
    ]
    if PEER in times:
        ratio = paired_ratio(times[PEER].each_round(0.5), times[BUILT].each_round(0.5))
        measure = f"{MEASURE}: times as long as clew"
        found.append(Row(measure=measure, records=settings.loaded, contender=PEER, values={"× p50": ratio}))
    return found


async def ours(settings: Settings, made: list[Written]) -> dict[str, Work]:
    """An agent that may load all skills and has so many of them loaded. A variable makes each prompt another one."""
    skills = Skills(build_manifest(made))
    for each in made[: settings.loaded]:
        await skills.load_skill("agent", each.name)
    whole = Sections(skill_content=True, toolset_content=True)
    more = [each.name for each in made[settings.loaded :]] or [made[-1].name]

    async def built(number: int) -> str:
        return (await skills.get_prompt("agent", variables={"USER": f"user {number}"})).content

    async def changed(number: int) -> str:
        name = more[number % len(more)]
        await skills.load_skill("agent", name)
        prompt = await skills.get_prompt("agent", variables={"USER": f"guest {number}"})
        await skills.unload_skill("agent", name)
        return prompt.content

    async def with_texts(number: int) -> str:
        return (await skills.get_prompt("agent", include=whole, variables={"USER": f"user {number}"})).content

    async def known(number: int) -> str:
        return (await skills.get_prompt("agent", variables={"USER": "Ada"})).content

    return {BUILT: built, CHANGED: changed, WHOLE: with_texts, KNOWN: known}


def theirs(folders: list[Path]) -> dict[str, Work]:
    from skills_ref import to_prompt  # only where peers are measured

    async def listed(number: int) -> str:
        """Names, descriptions and places, read from the files each time."""
        return to_prompt(folders)

    return {PEER: listed}


def build_manifest(made: list[Written]) -> Manifest:
    skills = {each.name: Skill(name=each.name, description=each.description, content=each.text) for each in made}
    agent = Agent(name="agent", prompt="You help {{ USER }} with what they ask for.")
    return Manifest(agents={"agent": agent}, skills=skills)
