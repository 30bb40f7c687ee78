"""Repairing a tool: the two tools of the debugger. A repair is new code and nothing else: permissions, limits and
schema stay as the owner wrote them. The failed input runs again at once if that can do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.repairs.failures import mask_values
from clew.agents.repairs.policy import TRIED, WANTED, repair_tag, with_code
from clew.agents.repairs.reliability_settings import Repairs
from clew.agents.runs.requests import read_request, request_draft
from clew.errors import Conflict, InvalidInput, NotFound, TooLarge
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.bootstrap import own_ids
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.flow import Flow
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag

MAX_CODE = 200_000
MAX_EXPLANATION = 2_000
_SHOWN = ("name", "description", "language", "code", "input_schema", "output_schema", "permissions", "limits")


class FixedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A written repair. `request` is the id of the request that runs the failed input again; None if that could do
    harm."""

    tool: str
    version: int
    request: str | None


class ToolRepairs:
    """Writes repairs. The same error is repaired once."""

    def __init__(self, trail: Trail, flow: Flow, repairs: Repairs) -> None:
        self._trail = trail
        self._flow = flow
        self._repairs = repairs

    async def describe(self, error_id: str, *, by: Principal) -> dict[str, Any]:
        """The error, and the tool with its code. Raises InvalidInput, NotFound."""
        error = await self._error(error_id, by)
        failed = await self._tool(error, by)
        shown = {name: failed.context[name] for name in _SHOWN if name in failed.context}
        return {"error": mask_values(error.context), "tool": shown, "version": failed.version}

    async def apply_fix(self, error_id: str, code: str, explanation: str, *, by: Principal) -> FixedTool:
        """Write the next version of the failed tool, a record that explains the repair, and a request that tries the
        new version.

        Raises InvalidInput if the error does not wait for a repair, the code is unchanged, or the tool has changed
        since the error.
        """
        error = await self._error(error_id, by)
        failed = await self._tool(error, by)
        before = int(error.context["tool_version"])
        fix = await self._find_fix(error, by)
        if fix is None:
            _check_code(code, failed)
            _check_version(failed, before)
            fix = await self._trail.records.create(self._fix_draft(error, failed, code, explanation), by=by)
        if failed.version == before:
            failed = await self._replace(failed, str(fix.context["code"]), by)
        request = await self._try_again(error, failed, by)
        return FixedTool(tool=str(failed.context["name"]), version=int(fix.context["to_version"]), request=request)

    async def _replace(self, failed: Breadcrumb, code: str, by: Principal) -> Breadcrumb:
        try:
            change = Change(context=with_code(failed, code))
            return await self._trail.records.update(failed.id, change, expect=failed.version, by=by)
        except Conflict:
            raise _changed(failed) from None

    async def _error(self, id: str, by: Principal) -> Breadcrumb:
        hint = "Only the debugger repairs tools, in a run that an error started"
        try:
            found = await self._trail.records.get(id, by=by)
        except NotFound:
            raise InvalidInput("error", f"there is no {id}", hint=hint) from None
        if found.schema_name != self._flow.error or WANTED not in found.tags:
            raise InvalidInput("error", f"{id} is not an error that waits for a repair", hint=hint)
        return found

    async def _tool(self, error: Breadcrumb, by: Principal) -> Breadcrumb:
        found = await self._trail.records.get(str(error.context.get("tool_breadcrumb_id")), by=by)
        if found.schema_name != self._flow.tool or found.id in own_ids(by):
            raise InvalidInput("error", "the tool that failed is not one of the owner's")
        return found

    async def _find_fix(self, error: Breadcrumb, by: Principal) -> Breadcrumb | None:
        """The repair of this error, if there is one."""
        try:
            return await self._trail.records.get(fix_id(error), by=by)
        except NotFound:
            return None

    def _fix_draft(self, error: Breadcrumb, failed: Breadcrumb, code: str, explanation: str) -> Draft:
        name = str(failed.context["name"])
        kind = str(error.context.get("error_type"))
        return Draft(
            id=fix_id(error),
            title=f"Repair of {name}: {explanation}"[:200],
            schema_name=self._repairs.fix,
            tags=(repair_tag(failed.id), f"tool:{name}"[:300], f"error:{kind}", f"repair:{TRIED}"),
            scopes=error.scopes,
            context={
                "tool_name": name,
                "tool_breadcrumb_id": failed.id,
                "status": TRIED,
                "error_id": error.id,
                "error_type": kind,
                "error_message": error.context.get("error_message"),
                "explanation": explanation[:MAX_EXPLANATION],
                "code": code,
                "from_version": failed.version,
                "to_version": failed.version + 1,
            },
        )

    async def _try_again(self, error: Breadcrumb, failed: Breadcrumb, by: Principal) -> str | None:
        """Write a request that runs the failed input again, with the rights of the original requester, and return its
        id. None if that could do harm."""
        if not is_harmless(failed.context):
            return None
        request_id = f"try.{error.id}"
        asked = read_request(await self._trail.records.get(str(error.context["request_breadcrumb_id"]), by=by))
        again = request_draft(
            self._flow,
            asked.tool,
            asked.input,
            request_id=request_id,
            requested_by=asked.requested_by,
            config_id=asked.config_id,
            tags=("repair:try", f"repair:{error.id}", *error.session_tags, run_tag(request_id)),
        )
        await self._trail.records.create(msgspec.structs.replace(again, idempotency_key=request_id), by=by)
        return request_id


def fix_id(error: Breadcrumb) -> str:
    """The id of the repair of an error. There is at most one."""
    return str(uuid5(UUID(error.id), "repair"))


def is_harmless(tool: Mapping[str, Any]) -> bool:
    """Whether a tool may run again with a failed input: it is declared repeatable, or fully confined."""
    effects, permissions = tool.get("effects"), tool.get("permissions")
    if isinstance(effects, dict) and (effects.get("reads_only") or effects.get("repeats_safely")):
        return True
    reaches = permissions if isinstance(permissions, dict) else {}
    return not (reaches.get("net") or reaches.get("write"))


def repair_tools(healing: ToolRepairs) -> tuple[Tool, ...]:
    """The tools of the debugger. They work only on the error that started the debugger's run."""

    @tool(searchable=False, effects=Effects(reads_only=True, repeats_safely=True, reaches_out=False))
    async def read_failed_tool(context: ToolContext) -> dict[str, Any]:
        """Return the error that waits for a repair, and the tool that failed with its code, schema and limits."""
        return await healing.describe(context.run, by=context.by)

    @tool(searchable=False, effects=Effects(repeats_safely=True, reaches_out=False, keyed=True))
    async def fix_tool(code: str, explanation: str, context: ToolContext) -> str:
        """Replace the code of the tool that failed, once. The input that failed is then run again.

        code: the whole new code of the tool; its name, schema, permissions and limits stay.
        explanation: what was wrong and what was changed, in a sentence.
        """
        fixed = await healing.apply_fix(context.run, code, explanation, by=context.by)
        tried = f"the input that failed runs again as {fixed.request}" if fixed.request else "it was not run again"
        return f"{fixed.tool} is now at version {fixed.version}; {tried}. Nothing more is to be done."

    return read_failed_tool, fix_tool


def _check_code(code: str, failed: Breadcrumb) -> None:
    if not code.strip():
        raise InvalidInput("code", "is empty", hint="Give the whole code of the tool")
    if len(code) > MAX_CODE:
        raise TooLarge("code", len(code), MAX_CODE, "characters")
    if code == failed.context.get("code"):
        raise InvalidInput("code", "is the same as the code that failed", hint="Change what is wrong with it")


def _check_version(failed: Breadcrumb, before: int) -> None:
    if failed.version != before:
        raise _changed(failed)


def _changed(failed: Breadcrumb) -> InvalidInput:
    hint = "Do nothing: if it fails again, there will be another error"
    return InvalidInput("error", f"{failed.context.get('name')} has changed since it failed", hint=hint)
