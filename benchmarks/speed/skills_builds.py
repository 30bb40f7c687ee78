"""From folders of skills to something usable: cold, and once more when nothing has changed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from clew.skills.building import build
from clew.skills.own_format import BuildMemory
from speed.report import Finding, Promise, Row
from speed.skills_stage import SKILLS, Settings, make_skills, write_skills
from speed.timing import Rounds, paired_ratio, rotate

MEASURE = "building"
MOST_COLD, MOST_UNCHANGED = 2.0, 0.3
CLEW, AGAIN = "clew", "clew, unchanged"

Work = Callable[[], Awaitable[int]]


async def measure(settings: Settings) -> list[Finding]:
    root = settings.scratch / "builds"
    folders = write_skills(root, make_skills(settings))
    contenders = {**ours(root), **(theirs(root, folders) if settings.peers else {})}
    times = {name: Rounds() for name in contenders}
    for turn in range(settings.rounds):
        for name in rotate(list(contenders), turn):
            times[name].begin()
            began = time.perf_counter()
            found = await contenders[name]()
            times[name].add(time.perf_counter() - began)
            if found != settings.skills:
                raise RuntimeError(f"{name} found {found} of {settings.skills} skills")
    seconds = {name: rounds.milliseconds(0.5) / 1000 for name, rounds in times.items()}
    rows = [Row(measure=MEASURE, records=settings.skills, contender=n, values={"s": s}) for n, s in seconds.items()]
    return [*rows, *promises(settings, seconds), *ratios(settings, times)]


def ours(root: Path) -> dict[str, Work]:
    memory = BuildMemory()
    build(root, memory=memory)

    async def cold() -> int:
        return len(build(root).manifest.skills)

    async def unchanged() -> int:
        return len(build(root, memory=memory).manifest.skills)

    return {CLEW: cold, AGAIN: unchanged}


def theirs(root: Path, folders: list[Path]) -> dict[str, Work]:
    from fastmcp.server.providers.skills import SkillsDirectoryProvider  # only where peers are measured
    from skills_ref import read_properties, validate

    watching = SkillsDirectoryProvider(root / SKILLS, reload=True)

    async def validated() -> int:
        return sum(1 for folder in folders if not validate(folder) and read_properties(folder).name)

    async def provided() -> int:
        return len({_skill_of(each.uri) for each in await SkillsDirectoryProvider(root / SKILLS).list_resources()})

    async def provided_again() -> int:
        return len({_skill_of(each.uri) for each in await watching.list_resources()})

    return {
        "skills-ref, validate and read": validated,
        "FastMCP, provider and listing": provided,
        "FastMCP, listing anew": provided_again,
    }


def _skill_of(uri: object) -> str:
    return str(uri).split("://", 1)[1].split("/", 1)[0]


def promises(settings: Settings, seconds: dict[str, float]) -> list[Finding]:
    return [
        Promise(
            name=f"build of {settings.skills} skills, {what}, s",
            records=settings.skills,
            value=seconds[name],
            target=most,
            at_least=False,
        )
        for what, name, most in (("cold", CLEW, MOST_COLD), ("unchanged", AGAIN, MOST_UNCHANGED))
    ]


def ratios(settings: Settings, times: dict[str, Rounds]) -> list[Finding]:
    """How many times as long a peer takes, within the rounds."""
    pairs = {
        "skills-ref, validate and read": CLEW,
        "FastMCP, provider and listing": CLEW,
        "FastMCP, listing anew": AGAIN,
    }
    return [
        Row(
            measure=f"{MEASURE}: times as long as clew",
            records=settings.skills,
            contender=peer,
            values={f"× {mine}": paired_ratio(times[peer].each_round(0.5), times[mine].each_round(0.5))},
        )
        for peer, mine in pairs.items()
        if peer in times
    ]
