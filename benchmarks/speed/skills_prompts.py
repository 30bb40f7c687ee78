"""The prompt of an agent with many loaded skills: built, built with all their texts, and from the cache."""

from __future__ import annotations

from pathlib import Path

from clew.skills.library import Skills
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.skills.prompt import Sections
from speed.report import Finding, Promise, Row
from speed.skills_stage import Settings, Work, Written, compare, make_skills, take_turns, write_skills
from speed.timing import Rounds

MEASURE = "prompt"
MOST_BUILT, MOST_KNOWN = 5.0, 0.1
BUILT, CHANGED, WHOLE, KNOWN = (
    "clew, built",
    "clew, load, build, unload",
    "clew, built with all texts",
    "clew, from the cache",
)
PEER = "skills-ref, to_prompt of as many"


async def measure(settings: Settings) -> list[Finding]:
    made = make_skills(settings)
    mine = await ours(settings, made)
    peers = theirs(write_skills(settings.scratch / "prompts", made[: settings.loaded])) if settings.peers else {}
    sizes = {name: await work(-1) for name, work in (mine | peers).items()}
    times = await take_turns(settings, mine, settings.samples)
    if peers:  # which take a hundred times as long
        times |= await take_turns(settings, peers, max(2, settings.samples // 40))
    rows = [
        Row(
            measure=MEASURE,
            records=settings.loaded,
            contender=name,
            values={**rounds.spread(), "characters": sizes[name]},
        )
        for name, rounds in times.items()
    ]
    return [*rows, *promises(settings, times), *compare(MEASURE, settings.loaded, times, {PEER: BUILT})]


def promises(settings: Settings, times: dict[str, Rounds]) -> list[Finding]:
    return [
        Promise(
            name=f"prompt with {settings.loaded} loaded skills, {name.removeprefix('clew, ')}, p95 ms",
            records=settings.skills,
            value=times[name].milliseconds(0.95),
            target=most,
            at_least=False,
        )
        for name, most in ((BUILT, MOST_BUILT), (WHOLE, MOST_BUILT), (KNOWN, MOST_KNOWN))
    ]


async def ours(settings: Settings, made: list[Written]) -> dict[str, Work]:
    """An agent that may load all skills and has so many of them loaded. A variable makes each prompt another one."""
    skills = Skills(build_manifest(made))
    for each in made[: settings.loaded]:
        await skills.load_skill("agent", each.name)
    whole = Sections(skill_content=True, toolset_content=True)
    more = [each.name for each in made[settings.loaded :]] or [made[-1].name]

    async def built(number: int) -> int:
        return len((await skills.get_prompt("agent", variables={"USER": f"user {number}"})).content)

    async def changed(number: int) -> int:
        name = more[number % len(more)]
        await skills.load_skill("agent", name)
        prompt = await skills.get_prompt("agent", variables={"USER": f"guest {number}"})
        await skills.unload_skill("agent", name)
        return len(prompt.content)

    async def with_texts(number: int) -> int:
        return len((await skills.get_prompt("agent", include=whole, variables={"USER": f"user {number}"})).content)

    async def known(number: int) -> int:
        return len((await skills.get_prompt("agent", variables={"USER": "Ada"})).content)

    return {BUILT: built, CHANGED: changed, WHOLE: with_texts, KNOWN: known}


def theirs(folders: list[Path]) -> dict[str, Work]:
    from skills_ref import to_prompt  # only where peers are measured

    async def listed(number: int) -> int:
        """Names, descriptions and places, read from the files each time."""
        return len(to_prompt(folders))

    return {PEER: listed}


def build_manifest(made: list[Written]) -> Manifest:
    skills = {each.name: Skill(name=each.name, description=each.description, content=each.text) for each in made}
    agent = AgentSpec(name="agent", prompt="You help {{ USER }} with what they ask for.")
    return Manifest(agents={"agent": agent}, skills=skills)
