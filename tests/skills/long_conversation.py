"""A long conversation: the skills that an agent loads and unloads, and the content of its context."""

from __future__ import annotations

import random
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec.structs import replace

from clew.clock import SystemClock
from clew.llm.tokens import count_tokens
from clew.skills.exposure_store import TrailExposures
from clew.skills.library import Skills
from clew.skills.manifest import AgentSpec, Manifest, Triggers
from clew.skills.prompt import AgentPrompt
from clew.skills.registry import META_TOOLS
from clew.skills.sessions.session import AGENT, SKILL, TOOLSET
from clew.skills.triggers import Turn
from tests.faults.processes import open_at
from tests.skills.research_manifest import call, make_manifest, make_skill, make_tool, make_toolset, names_in

WHO = "worker"
INITIAL = ("skill-0", "skill-1")
NUMBERS = range(12)
WORDS = {f"skill-{n}": f"matter{n}" for n in (3, 5, 7)}
"""Skills that come by a word."""

Operation = tuple[str, str]
Recorded = dict[str, str]
"""The loaded skills and toolsets, each with its cause."""


def make_working_manifest() -> Manifest:
    """Twelve skills: neighbours share a toolset, every fourth brings another skill, some come by a word."""
    skills = [
        replace(
            make_skill(
                f"skill-{n}",
                toolsets=(f"set-{n // 2}", f"set-{n // 2 + 1}"),
                skills=(f"skill-{(n + 5) % 12}",) if n % 4 == 2 else (),
                content=f"# Matter {n}\n\n" + f"Look at matter {n} twice before you answer.\n" * 10,
            ),
            triggers=Triggers(words=(WORDS[f"skill-{n}"],) if f"skill-{n}" in WORDS else ()),
        )
        for n in NUMBERS
    ]
    toolsets = [make_toolset(f"set-{n}", f"tool-{n}-a", f"tool-{n}-b") for n in range(7)]
    agent = AgentSpec(name=WHO, prompt="You work.", initial_skills=INITIAL, skills=tuple(each.name for each in skills))
    return make_manifest([agent], skills, toolsets)


MANIFEST = make_working_manifest()
TOOLS = [make_tool(name) for name in MANIFEST.tools]


def open_skills(sets: object, clock: object) -> Skills:
    """A library as after the start of a program; only `sets` has data from before."""
    skills = Skills(MANIFEST, exposures=sets, clock=clock)  # type: ignore[arg-type]
    skills.register_tools("everything", TOOLS)
    return skills


def operations(seed: int) -> Iterator[Operation]:
    """Random ones without end, the same for the same seed."""
    moves = random.Random(seed)
    while True:
        kind = moves.choices(("load", "unload", "load_toolset", "unload_toolset", "turn"), (6, 4, 1, 1, 2))[0]
        toolset, skill = f"set-{moves.randrange(7)}", f"skill-{moves.choice(NUMBERS)}"
        yield (kind, toolset if "toolset" in kind else moves.choice(list(WORDS.values())) if kind == "turn" else skill)


def after(recorded: Recorded, operation: Operation) -> Recorded:
    """The expected records after an operation."""
    kind, name = operation
    match kind:
        case "load":
            via = recorded.get(f"{SKILL}{name}", "")
            return recorded if via in ("initial", "load") else {**recorded, f"{SKILL}{name}": "load"}
        case "load_toolset":
            return {**recorded, f"{TOOLSET}{name}": "load"}
        case "turn":
            (skill,) = (f"{SKILL}{each}" for each, word in WORDS.items() if word == name)
            kept = {item: via for item, via in recorded.items() if via != "trigger" or item == skill}
            return {skill: "trigger", **kept}
        case _:
            gone = f"{SKILL if kind == 'unload' else TOOLSET}{name}"
            return {item: via for item, via in recorded.items() if item != gone}


def at_the_start() -> Recorded:
    return {f"{SKILL}{name}": "initial" for name in INITIAL}


async def perform(skills: Skills, operation: Operation) -> int:
    """Run the operation, and return the estimated tokens of the new state."""
    kind, name = operation
    session = skills.session(WHO)
    match kind:
        case "load":
            return (await skills.load_skill(WHO, name)).tokens_after
        case "unload":
            return (await skills.unload_skill(WHO, name)).tokens_after
        case "load_toolset":
            return (await session.load_toolset(name)).tokens_after
        case "unload_toolset":
            return (await session.unload_toolset(name)).tokens_after
        case _:
            return (await skills.follow(WHO, Turn(text=f"about {name}"))).tokens_after


def skills_of(recorded: Recorded) -> set[str]:
    """All skills that follow from the records, computed again."""
    found, waiting = set[str](), [item.removeprefix(SKILL) for item in recorded if item.startswith(SKILL)]
    while waiting:
        name = waiting.pop()
        waiting += [each for each in MANIFEST.skills[name].skills if name not in found]
        found.add(name)
    return found


def tools_of(recorded: Recorded) -> set[str]:
    toolsets = {item.removeprefix(TOOLSET) for item in recorded if item.startswith(TOOLSET)}
    toolsets |= {toolset for name in skills_of(recorded) for toolset in MANIFEST.skills[name].toolsets}
    return {tool for name in toolsets for tool in MANIFEST.toolsets[name].tools}


async def check(skills: Skills, recorded: Recorded) -> None:
    """Check that the stored items, the prompt and the callable tools are as expected."""
    prompt = await skills.get_prompt(WHO)
    kept = (await skills.session(WHO).exposure()).items
    assert {item: each.via for item, each in kept.items() if not item.startswith(AGENT)} == recorded
    told = [*names_in(prompt.sections.get("initial_skills", "")), *loaded_names(prompt)]
    assert set(told) == skills_of(recorded)
    assert len(told) == len(set(told)), "each once"
    assert set(names_in(prompt.sections.get("catalogue", ""))) == MANIFEST.skills.keys() - set(told)
    assert set(names_in(prompt.sections.get("tools", ""))) == tools_of(recorded)
    assert set(await skills.get_tools(WHO)) == {*META_TOOLS, *tools_of(recorded)}


def loaded_names(prompt: AgentPrompt) -> list[str]:
    return names_in(prompt.sections.get("loaded_skills", ""))


class Context:
    """The input of a model: the current prompt, and the messages since the last compaction."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def call(self, skills: Skills, tool: str, skill: str) -> None:
        """The model calls a meta-tool itself, and reads the answer."""
        answer = await call((await skills.get_tools(WHO))[tool], skillName=skill)
        assert answer["success"]
        self.messages.append(str(answer.get("content", "")))

    async def compact(self, skills: Skills) -> None:
        """Everything is forgotten but what is loaded."""
        text = await skills.reinject(WHO)
        self.messages = [text] if text else []

    async def text(self, skills: Skills) -> str:
        return "\n\n".join([(await skills.get_prompt(WHO)).content, *self.messages])

    async def tokens(self, skills: Skills) -> int:
        return count_tokens(await self.text(skills))


async def work_until_killed(channel: Connection, folder: Path, seed: int) -> None:
    """Run operations on the trail of a folder, and report each when it is done."""
    trail, clock = await open_at(folder), SystemClock()
    skills = open_skills(TrailExposures(trail, clock), clock)
    await skills.session(WHO).state()
    channel.send(("began", ""))
    for operation in operations(seed):
        await perform(skills, operation)
        channel.send(operation)
