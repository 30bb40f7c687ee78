"""Promotion: journal entries of one session become readable in all sessions, and the way back.

An entry is promoted if its session succeeds, if the Inspector approves its task, after several successful uses, or by
the user. The entry says by whom, when and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from clew.access import Principal
from clew.agents.conversations.sessions import SESSION_TAG
from clew.clock import Clock
from clew.errors import Conflict, InvalidInput, NotFound
from clew.knowledge.history.entries import PROMOTED, Category, list_all
from clew.knowledge.nodes.kinds import NodeDomain
from clew.knowledge.nodes.node_store import SCHEMA, Node, to_node
from clew.team.messages.message import SCHEMA as TEAM_MESSAGE
from clew.team.messages.message import TYPE_TAG
from clew.team.messages.message_types import MessageType
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_run

USES = 3
"""Successful uses after which an entry is promoted."""
_MOST = 1_000
_RETRIES = 5
_SHARED = frozenset((Category.DECISION, Category.PATTERN, Category.FAILURE))
"""Categories that are promoted if their session succeeds. Failures are promoted only with a resolution."""


class PromotionTrigger(StrEnum):
    """Why an entry was promoted."""

    SESSION = "session"
    USER = "user"
    INSPECTOR = "inspector"
    USES = "uses"


class Promotions:
    """Promotes the journal entries of sessions. Calls raise the errors of the trail."""

    def __init__(self, trail: Trail, flow: Flow, clock: Clock) -> None:
        self._trail = trail
        self._flow = flow
        self._clock = clock

    async def entries(self, session: str, *, by: Principal) -> Sequence[Node]:
        """The entries of a session and of the conversations of its agents, oldest first."""
        return [to_node(each) for each in await self._entries(session, by)]

    async def promote(self, id: str, *, by: Principal, trigger: PromotionTrigger = PromotionTrigger.USER) -> Node:
        """Share an entry with all sessions. Doing it again changes nothing. Raises NotFound."""
        mark = {"by": by.agent_id, "at": self._clock.now().isoformat(), "because": trigger.value}
        return await self._mark(id, {"promoted": mark, "taken_back": None}, by, is_promoted=True)

    async def take_back(self, id: str, *, by: Principal) -> Node:
        """Undo a promotion, so that only the entry's own session can read it. Afterwards only the user can promote the
        entry again. Raises NotFound, InvalidInput for an entry that is not promoted."""
        if PROMOTED not in (await self._get(id, by)).tags:
            raise InvalidInput("entry", f"{id} is not promoted", hint="`clew session show` lists the promoted ones")
        mark = {"by": by.agent_id, "at": self._clock.now().isoformat()}
        return await self._mark(id, {"promoted": None, "taken_back": mark}, by, is_promoted=False)

    async def settle(self, session: str, *, by: Principal, is_success: bool = False) -> Sequence[Node]:
        """Promote the entries of a session that now qualify: entries of tasks that the Inspector approved, entries that
        were used often enough, and, if the session succeeded, decisions, patterns and resolved failures."""
        entries = [each for each in await self._entries(session, by) if _is_open(each)]
        if not entries:
            return ()
        approved, used = await self._approved(session, by), await self._used(session, by)
        done = []
        for each in entries:
            trigger = _trigger_of(each, session, approved, used, is_success=is_success)
            if trigger is not None:
                done.append(await self.promote(each.id, by=by, trigger=trigger))
        return done

    async def _entries(self, session: str, by: Principal) -> Sequence[Breadcrumb]:
        found = await self._of_session(
            session, by, schema_name=SCHEMA, all_tags=(f"domain:{NodeDomain.HISTORY.label}",)
        )
        return [each for each in found if "category" in each.context]

    async def _approved(self, session: str, by: Principal) -> frozenset[str]:
        """The tasks of a session that the Inspector approved."""
        passed = Selector(
            schema_name=TEAM_MESSAGE,
            session=session,
            all_tags=(TYPE_TAG + MessageType.VALIDATION_RESULT,),
            context_match=(ContextMatch(path="payload.passed", value=True),),
        )
        found = await list_all(self._trail, passed, by, _MOST)
        return frozenset(str(each.context["payload"].get("pipeline") or "") for each in found) - {""}

    async def _used(self, session: str, by: Principal) -> Counter[str]:
        """For each record, the number of runs of a session that saw it and ended with an answer."""
        answers = await self._of_session(session, by, schema_name=self._flow.answer)
        done = {find_run(each) for each in answers if each.context.get("status", "done") == "done"}
        seen: dict[str, set[str]] = {}
        for each in await self._of_session(session, by, schema_name=self._flow.context):
            if (run := find_run(each)) in done and run is not None:
                seen.setdefault(run, set()).update(_shown_in(each))
        return Counter(id for ids in seen.values() for id in ids)

    async def _of_session(self, session: str, by: Principal, **wanted: Any) -> Sequence[Breadcrumb]:
        """The records of a session and of the conversations of its agents, oldest first."""
        tag = SESSION_TAG + session
        own = await list_all(self._trail, Selector(session=session, **wanted), by, _MOST)
        team = await list_all(self._trail, Selector(tag_prefix=f"{tag}.", **wanted), by, _MOST)
        return sorted((*own, *team), key=lambda each: each.created_at)

    async def _get(self, id: str, by: Principal) -> Breadcrumb:
        found = await self._trail.records.get(id, by=by)
        if found.schema_name != SCHEMA or "category" not in found.context:
            raise NotFound("entry", id)
        return found

    async def _mark(self, id: str, marks: dict[str, Any], by: Principal, *, is_promoted: bool) -> Node:
        for _ in range(_RETRIES):
            found = await self._get(id, by)
            if is_promoted == (PROMOTED in found.tags):
                return to_node(found)
            tags = tuple(tag for tag in found.tags if tag != PROMOTED) + ((PROMOTED,) if is_promoted else ())
            metadata = {**found.context["metadata"], **marks}
            change = Change(context={**found.context, "metadata": metadata}, tags=tags)
            try:
                return to_node(await self._trail.records.update(found.id, change, expect=found.version, by=by))
            except Conflict:
                continue
        return to_node(await self._get(id, by))


def _is_open(entry: Breadcrumb) -> bool:
    """Whether an entry may be promoted automatically: it is not shared, and its promotion was never undone."""
    return PROMOTED not in entry.tags and not entry.context["metadata"].get("taken_back")


def _trigger_of(
    entry: Breadcrumb, session: str, approved: Iterable[str], used: Counter[str], *, is_success: bool
) -> PromotionTrigger | None:
    if any(f"{SESSION_TAG}{session}.{task}." in f"{tag}." for task in approved for tag in entry.tags):
        return PromotionTrigger.INSPECTOR
    if used[entry.id] >= USES:
        return PromotionTrigger.USES
    return PromotionTrigger.SESSION if is_success and _is_worth_sharing(entry) else None


def _is_worth_sharing(entry: Breadcrumb) -> bool:
    category, metadata = entry.context["category"], entry.context["metadata"]
    return category in _SHARED and (category != Category.FAILURE or bool(metadata.get("resolved")))


def _shown_in(context: Breadcrumb) -> Iterable[str]:
    """The ids of the records in the context of an agent."""
    receipt = context.context.get("receipt")
    items = receipt.get("items", ()) if isinstance(receipt, dict) else ()
    return (str(each["id"]) for each in items if isinstance(each, dict) and "id" in each)
