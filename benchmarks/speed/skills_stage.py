"""The measured skills: real descriptions and texts if the data is installed, else generated ones."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from discovery_peers.data import GROUPS, read
from speed.report import Row
from speed.timing import Rounds, paired_ratio, rotate

SKILLS = "skills"
"""The folder below a root that holds a folder for each skill."""
Work = Callable[[int], Awaitable[int]]
"""One sample of a contender, by its number; returns a value that can be checked."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 55, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is measured, and on what."""

    data: Path
    scratch: Path
    skills: int = 500
    loaded: int = 50
    tools: int = 10_000
    exposed: int = 10
    rounds: int = 5
    samples: int = 200
    peers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One skill as it is written down."""

    name: str
    description: str
    text: str


async def take_turns(settings: Settings, contenders: Mapping[str, Work], samples: int) -> dict[str, Rounds]:
    """The times of all contenders, each with so many samples a round."""
    times = {name: Rounds() for name in contenders}
    for turn in range(settings.rounds):
        for name in rotate(list(contenders), turn):
            times[name].begin()
            for at in range(samples):
                began = time.perf_counter()
                await contenders[name](turn * samples + at)
                times[name].add(time.perf_counter() - began)
    return times


def compare(measure: str, records: int, times: Mapping[str, Rounds], pairs: Mapping[str, str]) -> list[Row]:
    """The ratio of each peer's time to that of its Clew counterpart, within the rounds."""
    return [
        Row(
            measure=f"{measure}: times as long as clew",
            records=records,
            contender=peer,
            values={f"× {mine}": paired_ratio(times[peer].each_round(0.5), times[mine].each_round(0.5))},
        )
        for peer, mine in pairs.items()
        if peer in times
    ]


def make_skills(settings: Settings) -> list[Written]:
    """This number of skills with distinct names; the real ones are repeated until there are enough."""
    texts = list(_real(settings.data)) or list(_made(60))
    return [_named(texts[at % len(texts)], at) for at in range(settings.skills)]


def write_skills(root: Path, skills: Sequence[Written]) -> list[Path]:
    """The folders of skills, in the format that every contender reads."""
    folders = [root / SKILLS / each.name for each in skills]
    for folder, each in zip(folders, skills, strict=True):
        folder.mkdir(parents=True)
        head = f"---\nname: {each.name}\ndescription: {json.dumps(each.description)}\n---\n\n"
        (folder / "SKILL.md").write_text(head + each.text, encoding="utf-8")
    return folders


def _real(data: Path) -> Iterator[tuple[str, str, str]]:
    corpus, _, distractors = GROUPS["skills"]
    for path in (data / f"{corpus}.jsonl", data / f"{distractors}.jsonl"):
        for row in read(path) if path.is_file() else ():
            yield row["name"], row.get("description") or row["name"], row.get("content") or ""


def _made(number: int) -> Iterator[tuple[str, str, str]]:
    for at in range(number):
        about = f"Handles matter {at}, such as invoices, reminders and refunds. Use it when a customer asks for {at}."
        yield f"matter {at}", about, f"# Matter {at}\n\n" + f"Look it up, then answer {{{{ USER }}}} about {at}.\n" * 80


def _named(source: tuple[str, str, str], at: int) -> Written:
    name, description, text = source
    plain = _NOT_IN_NAMES.sub("-", name.lower()).strip("-")[:_LONGEST_NAME].strip("-") or "skill"
    about = " ".join(description.split())[:_LONGEST_DESCRIPTION].strip() or plain
    return Written(name=f"{plain}-{at}", description=about, text=text)
