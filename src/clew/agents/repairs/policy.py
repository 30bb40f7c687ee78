"""Decides whether a failing tool is repaired. The attempts are read from the trail, so the limit holds over restarts.

A chain is the sequence of repairs of one version that the owner wrote. The settings limit the runs of the debugger in
one chain. At the limit the owner's version is restored, and no repair starts until the owner edits the tool.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.repairs.failures import CallFailure, FailedTool, error_drafts
from clew.agents.repairs.reliability_settings import Repairs
from clew.errors import ClewError, Conflict, ToolFailure
from clew.trail.bootstrap import own_ids
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag

WANTED = "repair:wanted"
"""Tag on error records that the debugger handles."""
GAVE_UP, TRIED = "gave_up", "tried"
_REPAIRS_TAG = "repairs:"
_LOOK_BACK = 100


class RepairChain(msgspec.Struct, frozen=True, kw_only=True):
    """The repairs of a tool since its owner last wrote it, as version `start`."""

    start: int
    is_given_up: bool = False


class RepairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to repair an error, the number of the attempt, and the reason if it is not repaired."""

    wanted: bool
    attempt: int = 0
    reason: str = ""
    is_last: bool = False


def repair_tag(tool_id: str) -> str:
    return _REPAIRS_TAG + tool_id


class RepairPolicy:
    """Decides on repairs, and writes the records of errors accordingly."""

    def __init__(self, trail: Trail, flow: Flow, repairs: Repairs, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._repairs = repairs
        self._by = by

    async def drafts(
        self, request: Breadcrumb, failure: CallFailure, tool: FailedTool, record: Breadcrumb | None
    ) -> tuple[Draft, ...]:
        """Return the records of a failed call: the response and the error; `record` is the tool's breadcrumb if it has
        one. An error that starts a repair is tagged so. At the limit the owner's version is restored, and a third
        record says that repairs have ended."""
        verdict = await self.judge(record, failure.error)
        tags = (WANTED,) if verdict.wanted else ()
        drafts = error_drafts(self._flow, request, failure, tool, tags=tags)
        if record is not None and verdict.is_last:
            await self._give_up(record)
        return drafts

    async def judge(self, tool: Breadcrumb | None, error: BaseException) -> RepairVerdict:
        """Decide whether a failure starts a repair. Only tools written by the owner are repaired, not the tools of
        Clew, and only if their code failed."""
        if self._repairs.attempts == 0:
            return RepairVerdict(wanted=False, reason="repairs are switched off")
        if not is_of_code(error):
            return RepairVerdict(wanted=False, reason="its code did not fail")
        if tool is None or tool.schema_name != self._flow.tool or tool.id in own_ids(self._by):
            return RepairVerdict(wanted=False, reason="it comes with the program")
        chain = await self._chain(tool)
        if chain.is_given_up:
            return RepairVerdict(wanted=False, reason="it was given up")
        errors = await self._wanted(tool, chain)
        if len(errors) >= self._repairs.attempts:
            is_under_way = await self._is_under_way(errors, tool.version)
            return RepairVerdict(
                wanted=False, attempt=len(errors), reason="the limit is reached", is_last=not is_under_way
            )
        if await self._is_under_way(errors, tool.version):
            return RepairVerdict(wanted=False, attempt=len(errors), reason="it is being repaired")
        return RepairVerdict(wanted=True, attempt=len(errors) + 1)

    async def _chain(self, tool: Breadcrumb) -> RepairChain:
        """The chain of repairs that led to the current version, found by walking back to the version that the owner
        wrote."""
        selector = Selector(schema_name=self._repairs.fix, all_tags=(repair_tag(tool.id),))
        fixes = (await self._trail.records.list(selector, by=self._by, limit=_LOOK_BACK)).items
        version, is_given_up = tool.version, False
        for fix in fixes:
            if fix.context.get("to_version") != version:
                continue
            is_given_up = is_given_up or fix.context.get("status") == GAVE_UP
            version = int(fix.context["from_version"])
        return RepairChain(start=version, is_given_up=is_given_up)

    async def _wanted(self, tool: Breadcrumb, chain: RepairChain) -> Sequence[Breadcrumb]:
        """The errors of a chain that were sent to the debugger."""
        matches = (
            ContextMatch(path="tool_breadcrumb_id", value=tool.id),
            ContextMatch(path="tool_version", op="gte", value=chain.start),
        )
        selector = Selector(schema_name=self._flow.error, all_tags=(WANTED,), context_match=matches)
        return (await self._trail.records.list(selector, by=self._by, limit=_LOOK_BACK)).items

    async def _is_under_way(self, errors: Sequence[Breadcrumb], version: int) -> bool:
        """Whether the debugger still works on an error of this version."""
        same = [each for each in errors if each.context.get("tool_version") == version]
        for error in same:
            selector = Selector(schema_name=self._flow.answer, all_tags=(run_tag(error.id),))
            if not (await self._trail.records.list(selector, by=self._by, limit=1)).items:
                return True
        return False

    async def _give_up(self, tool: Breadcrumb) -> None:
        """End the repairs of a tool and restore the owner's version. The record is written first, so that a crash in
        between loses neither."""
        start = (await self._chain(tool)).start
        restores = start != tool.version
        await self._trail.records.create(self._gave_up(tool, start, restores), by=self._by)
        if not restores:
            return
        original = await self._trail.records.get(tool.id, by=self._by, version=start)
        change = Change(context=with_code(tool, str(original.context.get("code") or "")))
        with contextlib.suppress(Conflict):  # its owner was quicker: theirs counts
            await self._trail.records.update(tool.id, change, expect=tool.version, by=self._by)

    def _gave_up(self, tool: Breadcrumb, start: int, restores: bool) -> Draft:
        name = str(tool.context.get("name") or tool.title)
        put_back = f" Version {start}, which its owner wrote, was put back." if restores else ""
        return Draft(
            title=f"{name} could not be repaired"[:200],
            schema_name=self._repairs.fix,
            tags=(repair_tag(tool.id), f"tool:{name}"[:300], f"repair:{GAVE_UP}"),
            context={
                "tool_name": name,
                "tool_breadcrumb_id": tool.id,
                "status": GAVE_UP,
                "from_version": start,
                "to_version": tool.version + 1 if restores else tool.version,
                "attempts": self._repairs.attempts,
                "explanation": f"{self._repairs.attempts} attempts did not help.{put_back}",
                "how_to_go_on": "Edit the tool: repairs start again if the edited tool fails",
            },
            idempotency_key=f"repair:{GAVE_UP}:{tool.id}:{tool.version}",
        )


def is_of_code(error: BaseException) -> bool:
    """Whether the code of a tool caused an error. Denials of the sandbox and wrong settings are not errors of code."""
    if isinstance(error, ToolFailure):
        return error.kind not in ("config", "permission")
    return isinstance(error, TimeoutError) or not isinstance(error, ClewError)


def with_code(tool: Breadcrumb, code: str) -> dict[str, Any]:
    """The context of the tool with its code replaced; permissions and limits stay unchanged."""
    return {**tool.context, "code": code}
