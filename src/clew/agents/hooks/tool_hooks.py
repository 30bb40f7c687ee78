"""The hooks around every tool call: permission, validation, session, logging and tags of the response."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from clew.access import Principal
from clew.agents.conversations.steps import CHOICES
from clew.agents.hooks.hook_points import ToolData
from clew.agents.permissions.lasting_permissions import is_allowed
from clew.agents.permissions.questions import CHANGED as OTHER_THAN_ASKED
from clew.agents.permissions.questions import is_id_taken, is_too_long, question_draft
from clew.context.definition import AgentDefinition
from clew.errors import Abort
from clew.tools.hook_chain import HookFunction
from clew.trail.model.breadcrumb import MAX_TAG, Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, find_request_id

CHANGED = "state:changed"
"""Tag on the response of a tool that may have changed something."""
FILE_TAG = "file:"
"""Tag with a path that a tool worked on."""

_PATHS = ("path", "paths", "file_path", "file")
_SESSIONS = ("session", "session_id")
_LOOK_BACK = 200

_log = logging.getLogger(__name__)


class PolicyDecision(Protocol):
    """The decision of a policy on one call: `allow`, `ask` or `deny`. A lasting permission covers the `pattern`."""

    @property
    def verdict(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def pattern(self) -> str: ...


Decide = Callable[[AgentDefinition | None, str, Mapping[str, Any], Breadcrumb | None], Awaitable[PolicyDecision]]
"""Decides whether an agent may call a tool. The last argument is the record that the tool was built from."""


def permission_check(trail: Trail, flow: Flow, by: Principal, decide: Decide) -> HookFunction:
    """Allows a call, asks the user, or refuses it. The user is not asked again about a call that a lasting permission
    covers. Raises Abort."""

    async def check(data: ToolData) -> ToolData:
        name = data.tool.name
        decision = await decide(data.agent, name, data.arguments, data.record)
        if decision.verdict == "deny":
            hint = "The permissions of the agent say so; its owner can change them"
            raise Abort(f"{name} is not allowed: {decision.reason}", hint=hint)
        if decision.verdict == "allow":
            return data
        if data.permitted is not None:
            await _require_consent(trail, flow, by, data, decision.pattern)
            return data
        if await is_allowed(trail, flow, data.request, name, decision.pattern, by=by):
            return msgspec.structs.replace(data, permitted=CHOICES[1])
        await _require_askable(trail, flow, by, data)
        asked = question_draft(flow, data.request, name, decision.reason, decision.pattern)
        return msgspec.structs.replace(data, is_waiting=True, drafts=(*data.drafts, asked))

    return check


def parameter_validation() -> HookFunction:
    """Validates and converts the arguments. Raises InvalidInput."""

    async def validate(data: ToolData) -> ToolData:
        return msgspec.structs.replace(data, arguments=data.tool.check(data.arguments))

    return validate


def session_scoping() -> HookFunction:
    """Binds a call to the session of its request. The session is set on the principal, and it overwrites session
    arguments that the model wrote."""

    async def scope(data: ToolData) -> ToolData:
        session = data.request.session
        taken = [name for name in _SESSIONS if name in data.tool.schema.get("properties", {})]
        arguments = {**data.arguments, **dict.fromkeys(taken, session)} if session else data.arguments
        return msgspec.structs.replace(
            data, arguments=arguments, by=msgspec.structs.replace(data.by, session=session or data.by.session)
        )

    return scope


def result_logging() -> HookFunction:
    """Logs a tool call: the agent, the time and the size of the result, but not the result."""

    async def log(data: ToolData) -> ToolData:
        size = len(data.result) if isinstance(data.result, str | list | dict) else 1
        who = data.agent.agent_id if data.agent is not None else data.by.agent_id
        _log.info("%s: %s ran for %.3f s, %d long", who, data.tool.name, data.seconds, size)
        return data

    return log


def file_tracking() -> HookFunction:
    """Tags the response with the files of the call, so that all calls on a file can be found."""

    async def track(data: ToolData) -> ToolData:
        named = [data.arguments.get(name) for name in _PATHS]
        paths = [path for each in named for path in (each if isinstance(each, list | tuple) else [each])]
        tags = [f"{FILE_TAG}{path}" for path in dict.fromkeys(paths) if isinstance(path, str)]
        fit = [tag for tag in tags if len(FILE_TAG) < len(tag) <= MAX_TAG and tag.isprintable() and tag == tag.strip()]
        return msgspec.structs.replace(data, tags=(*data.tags, *fit[:50]))

    return track


def state_update() -> HookFunction:
    """Tags the response of a tool that does more than read. The next run of the session sees it."""

    async def update(data: ToolData) -> ToolData:
        return data if data.tool.effects.reads_only else msgspec.structs.replace(data, tags=(*data.tags, CHANGED))

    return update


async def _require_consent(trail: Trail, flow: Flow, by: Principal, data: ToolData, pattern: str) -> None:
    """Raises Abort if the user denied the call, or it differs from the one that the user allowed."""
    name = data.tool.name
    if data.permitted not in CHOICES[:-1]:
        raise Abort(f"the user did not allow {name}", hint="Do without it, or ask why")
    request_id = find_request_id(data.request) or data.request.id
    asked = Selector(schema_name=flow.permission_request, all_tags=(f"{REQUEST_TAG}{request_id}",))
    for question in (await trail.records.list(asked, by=by, limit=_LOOK_BACK)).items:
        if question.context.get("pattern") != pattern:
            raise Abort(f"{name} was not run: {OTHER_THAN_ASKED}", hint="Call it again, and the user is asked anew")


async def _require_askable(trail: Trail, flow: Flow, by: Principal, data: ToolData) -> None:
    """Raises Abort for a call that cannot be asked about: it is too long to read, or another request has its id."""
    name = data.tool.name
    if is_too_long(data.arguments):
        hint = "Write it in parts" if name == "write-file" else "Write it to a file first, then name that file"
        raise Abort(f"the input of {name} is too long for the user to read", hint=hint)
    if await is_id_taken(trail, flow, data.request, by=by):
        raise Abort(f"{name} was not run: another request has the same id", hint="Use a new id for each request")
