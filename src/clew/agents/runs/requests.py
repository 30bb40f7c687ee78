"""Tool requests and responses: the drafts that runners write and the records that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.work.correlation import CONSUMER_TAG, REQUEST_TAG, find_request_id, find_requester, is_tag, reply_tags

Status = Literal["success", "error", "cancelled", "interrupted"]
"""`interrupted`: the process died during a call that must not be repeated."""

TOOLS = "workspace:tools"
"""Tag of the requests that the tools runner handles."""
TURN_TAG = "turn:"
"""Tag that groups the requests of one answer of a model."""
CALLED_TAG = "called:"
"""Tag on the task of a called agent: the run of its caller."""


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool."""

    id: str
    tool: str
    request_id: str
    requested_by: str = ""
    config_id: str | None = None
    input: dict[str, Any] = {}


class ToolResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call: `output` on success, else `error`."""

    id: str
    version: int
    request_id: str
    tool: str
    status: str
    output: Any = None
    error: str = ""


def read_request(breadcrumb: Breadcrumb) -> ToolRequest:
    """Raises InvalidInput that names the field. A request without an id has the id of its record. The id and the
    requester must be valid tags, because the response is addressed with them."""
    context = breadcrumb.context
    given = {name: context[name] for name in ("tool", "config_id", "input") if context.get(name) is not None}
    requester = find_requester(breadcrumb) or ""
    ids = {"id": breadcrumb.id, "request_id": find_request_id(breadcrumb) or breadcrumb.id}
    for field, tag in (("request_id", REQUEST_TAG + ids["request_id"]), ("requested_by", CONSUMER_TAG + requester)):
        if not is_tag(tag):
            raise InvalidInput(f"context.{field}", "is too long, or not plain text", hint="Choose a shorter one")
    try:
        return msgspec.convert({**given, **ids, "requested_by": requester}, ToolRequest)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, ToolRequest, "context") from None


def read_response(breadcrumb: Breadcrumb) -> ToolResponse:
    """Raises InvalidInput for a record without a request id."""
    context = breadcrumb.context
    request_id = find_request_id(breadcrumb)
    if request_id is None:
        raise InvalidInput("context.request_id", "is missing")
    error = context.get("error")
    return ToolResponse(
        id=breadcrumb.id,
        version=breadcrumb.version,
        request_id=request_id,
        tool=str(context.get("tool") or ""),
        status=str(context.get("status") or ""),
        output=context.get("output"),
        error=error if isinstance(error, str) else "" if error is None else str(error),
    )


def request_draft(
    flow: Flow,
    tool: str,
    input: dict[str, Any],
    *,
    request_id: str,
    requested_by: str,
    config_id: str | None = None,
    tags: tuple[str, ...] = (),
) -> Draft:
    """A request for the tools runner."""
    context: dict[str, Any] = {"tool": tool, "input": input, "requestId": request_id, "requestedBy": requested_by}
    if config_id is not None:
        context["config_id"] = config_id
    return Draft(
        title=f"Request for {tool}"[:200],
        schema_name=flow.request,
        tags=("tool:request", TOOLS, f"request:{request_id}", *tags),
        context=context,
        embed="never",
    )


def response_draft(
    flow: Flow,
    request: Breadcrumb,
    tool: str,
    status: Status,
    *,
    output: Any = None,
    error: str = "",
    milliseconds: float = 0.0,
    extra: dict[str, Any] | None = None,
) -> Draft:
    """A response that is addressed to the requester. It has the id of the request's record if the request id is not a
    valid tag."""
    own = find_request_id(request)
    result = {"output": output} if status == "success" else {"error": error}
    turn = tuple(tag for tag in request.tags if tag.startswith(TURN_TAG))
    return Draft(
        title=f"Response of {_in_line(tool)}: {status}",
        schema_name=flow.response,
        tags=("tool:response", TOOLS, *reply_tags(request), *turn),
        context={
            "request_id": own if own is not None and is_tag(REQUEST_TAG + own) else request.id,
            "tool": tool,
            "status": status,
            **result,
            "execution_time_ms": round(milliseconds, 3),
            **(extra or {}),
        },
        embed="never",
    )


def find_author(answer: Breadcrumb) -> str:
    """The agent that wrote an answer; empty if the answer names none."""
    return author_of(answer.context)


def author_of(answer: Mapping[str, Any]) -> str:
    """Like `find_author`, for the context of an answer."""
    creator = answer.get("creator")
    name = creator.get("agent_id") if isinstance(creator, dict) else None
    return name if isinstance(name, str) else ""


def with_own_id(request: Breadcrumb) -> Breadcrumb:
    """The request with its record id as request id, because another request already uses the original id."""
    tags = tuple(tag for tag in request.tags if not tag.startswith(REQUEST_TAG))
    context = {name: value for name, value in request.context.items() if name != "requestId"}
    return msgspec.structs.replace(request, tags=tags, context={**context, "request_id": request.id})


def _in_line(name: str) -> str:
    """A name without line breaks, for a title."""
    return "".join(each if each.isprintable() else " " for each in name[:150])
