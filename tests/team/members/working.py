"""Members of the team at work on a real trail, with a scripted model, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from clew.access import Principal
from clew.agents.conversations.sessions import message_draft, sent_message
from clew.agents.conversations.steps import Answered
from clew.clock import Clock
from clew.skills.manifest import Manifest
from clew.team.members.member_definitions import mirror_members
from clew.team.members.member_skills import MemberSkills
from clew.team.members.roster import shipped_manifest
from clew.tools.tool import Tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.flow import read_flow
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running

SESSION = "s1"


class Team:
    """Conversations with members."""

    def __init__(self, run: Running, skills: MemberSkills) -> None:
        self.run, self.skills = run, skills

    async def tell(self, role: str, text: str, pipeline: str = "main", session: str = SESSION) -> str:
        """Say something to a member; its answer."""
        conversation, run = f"{session}.{pipeline}.{role}", self.run
        id, after = run.runtime.parts.clock.new_id(), await run.trail.log.head()
        draft = message_draft(run.flow, text, id=id, session=conversation, agent=role, source="team")
        sent = sent_message(await run.trail.records.create(draft, by=run.me), after)
        [answer] = [step for step in await run.rest_of(sent) if isinstance(step, Answered)]
        return answer.text

    def shown(self) -> str:
        """The complete prompt of the last request."""
        return "\n".join(str(each.content) for each in self.run.model.requests[-1].messages)

    def tools(self) -> set[str]:
        """The tools of the last request."""
        return {each.name for each in self.run.model.requests[-1].tools}

    async def results(self, tool: str) -> list[Any]:
        """The outputs of all calls of a tool, or their errors."""
        found = await self.run.written(None, self.run.flow.response)
        mine = [each.context for each in found if each.context.get("tool") == tool]
        return [each.get("output") if each["status"] == "success" else each.get("error") for each in mine]


@asynccontextmanager
async def working(
    trail: Trail,
    clock: Clock,
    me: Principal,
    script: Sequence[Any] = (),
    *,
    tools: Sequence[Tool] = (),
    manifest: Manifest | None = None,
    **parts: Any,
) -> AsyncIterator[Team]:
    """The ten members, ready for conversations."""
    await bootstrap(trail, me)
    flow = await read_flow(trail, by=me)
    await mirror_members(trail, flow, None, by=me, start=True)

    async def manifest_of() -> Manifest:
        return manifest or shipped_manifest()

    skills = MemberSkills(trail, clock, manifest_of, me)
    hooks = (*skills.hooks(), *parts.pop("hooks", ()))
    said = list(script) or [{"say": "Yes."} for _ in range(8)]
    own = (*tools, skills.load_tool())
    async with running(trail, clock, me, said, tools=own, skills=skills, hooks=hooks, **parts) as run:
        yield Team(run, skills)
