"""The private context of a session in the prompts of its own agents."""

from __future__ import annotations

import msgspec

from clew.access import Principal
from clew.agents.hooks.hook_points import PromptData
from clew.fences import fenced
from clew.llm.messages import Message
from clew.team.sessions.session import read_session
from clew.team.sessions.session_context import prompt_text
from clew.team.sessions.session_store import session_record_id
from clew.tools.hook_chain import Hook
from clew.trail.model.flow import read_flow
from clew.trail.store import Trail

PRIORITY = 55
"""The hook runs after those for history and skills, and before the hook for the rules of the folder."""


def session_hook(trail: Trail, by: Principal) -> Hook:
    """A hook that adds the private context of a session at the beginning of the first prompt of each run. A
    conversation of an agent of the session is named `<session>.<…>`. `by` owns the agents."""

    async def add(data: PromptData) -> PromptData:
        if not data.is_first or not data.session:
            return data
        text = await _read(trail, data.session, by)
        added = (Message(role="user", content=fenced(text, "session")),) if text else ()
        return msgspec.structs.replace(data, messages=(*added, *data.messages))

    return Hook(name="session_notes", point="pre_prompt", function=add, priority=PRIORITY)


async def _read(trail: Trail, conversation: str, by: Principal) -> str:
    session = conversation.partition(".")[0]
    ids = [session_record_id(each, by) for each in dict.fromkeys((conversation, session))]
    found = await trail.records.find_many(ids, by=by)
    records = [found[id] for id in ids if id in found]
    if not records:
        return ""
    schema = (await read_flow(trail, by=by)).session
    return next((prompt_text(read_session(each.context).context) for each in records if each.schema_name == schema), "")
