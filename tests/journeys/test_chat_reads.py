"""How much of the trail a conversation reads, counted at the trail while a message goes through the REST door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.test_chat_journey import serving

TURNS, TOOLS = 12, 3
MOST = 400


class CountedRecords:
    """The records of a trail, and how many of them were read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.count = 0

    async def get(self, *arguments: Any, **named: Any) -> Any:
        self.count += 1
        return await self._inner.get(*arguments, **named)

    async def list(self, *arguments: Any, **named: Any) -> Any:
        page = await self._inner.list(*arguments, **named)
        self.count += len(page.items)
        return page

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def script() -> str:
    """Twelve answers of a model that call three tools each, and a last one that calls none."""
    calls = [[f"{{read-file: {{file_path: n{turn}-{tool}.txt}}}}" for tool in range(TOOLS)] for turn in range(TURNS)]
    turns = [f"- call: [{', '.join(each)}]" for each in calls]
    turns[0] = turns[0].replace("- call", "- user: go\n  call")
    return "\n".join([*turns, "- say: done"])


@pytest.mark.req("RCR-40")
async def test_a_chat_of_twelve_turns_with_tools_reads_each_record_of_its_run_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    for turn in range(TURNS):
        for tool in range(TOOLS):
            (tmp_path / f"n{turn}-{tool}.txt").write_text(f"kettle {turn} {tool}\n")
    async with serving(tmp_path / ".clew", script=script()) as place:
        place.app.trail.records = counted = CountedRecords(place.app.trail.records)
        answer = await place.say("go")
        assert (answer["status"], answer["text"]) == ("done", "done")
        assert TURNS * TOOLS < counted.count <= MOST, counted.count
