"""From folders of skills to something usable: cold, and once more when nothing has changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from clew.skills.definitions.manifest_builder import build
from clew.skills.definitions.own_format import BuildMemory
from speed.report import Finding, Promise, Row
from speed.skills_stage import SKILLS, Settings, Work, compare, make_skills, take_turns, write_skills

MEASURE = "building"
MOST_COLD, MOST_UNCHANGED = 2.0, 0.3
CLEW, AGAIN = "clew", "clew, unchanged"
VALIDATED, PROVIDED, LISTED = "skills-ref, validate and read", "FastMCP, provider and listing", "FastMCP, listing anew"
PAIRS = {VALIDATED: CLEW, PROVIDED: CLEW, LISTED: AGAIN}


async def measure(settings: Settings) -> list[Finding]:
    root = settings.scratch / "builds"
    folders = write_skills(root, make_skills(settings))
    contenders = {**ours(root), **(theirs(root, folders) if settings.peers else {})}
    counted = {name: counting(name, work, settings.skills) for name, work in contenders.items()}
    times = await take_turns(settings, counted, samples=1)
    seconds = {name: rounds.milliseconds(0.5) / 1000 for name, rounds in times.items()}
    rows = [Row(measure=MEASURE, records=settings.skills, contender=n, values={"s": s}) for n, s in seconds.items()]
    return [*rows, *promises(settings, seconds), *compare(MEASURE, settings.skills, times, PAIRS)]


def counting(name: str, work: Callable[[], Awaitable[int]], wanted: int) -> Work:
    """The work, which must find all skills."""

    async def checked(number: int) -> int:
        found = await work()
        if found != wanted:
            raise RuntimeError(f"{name} found {found} of {wanted} skills")
        return found

    return checked


def ours(root: Path) -> dict[str, Callable[[], Awaitable[int]]]:
    memory = BuildMemory()
    build(root, memory=memory)

    async def cold() -> int:
        return len(build(root).manifest.skills)

    async def unchanged() -> int:
        return len(build(root, memory=memory).manifest.skills)

    return {CLEW: cold, AGAIN: unchanged}


def theirs(root: Path, folders: list[Path]) -> dict[str, Callable[[], Awaitable[int]]]:
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
        VALIDATED: validated,
        PROVIDED: provided,
        LISTED: provided_again,
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
