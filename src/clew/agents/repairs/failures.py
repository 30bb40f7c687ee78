"""Records of failed calls: the response to the caller, and an error record for the repair.

Each error belongs to one of five classes, which are used to look up guides to it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from clew.agents.runs.requests import TOOLS, read_request, response_draft
from clew.errors import (
    Abort,
    AccessDenied,
    Busy,
    ConfigError,
    EmbedderMismatch,
    FormatError,
    HandleRefused,
    InvalidInput,
    ManifestError,
    ModelError,
    NotAuthenticated,
    NotFound,
    SandboxUnavailable,
    ToolFailure,
    Unreachable,
)
from clew.secrecy import MASK, mask_secrets
from clew.trail.model.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.model.flow import Flow
from clew.trail.work.claims import describe
from clew.trail.work.correlation import inherited_tags

ErrorClass = Literal["timeout", "permission", "runtime", "config", "validation"]
CLASSES: tuple[ErrorClass, ...] = ("timeout", "permission", "runtime", "config", "validation")

MAX_STACK = 4_000
MAX_INPUT = 8_000
"""The maximum size of a recorded input in bytes of JSON. A longer input is truncated; the request has the complete
input."""
MAX_MESSAGE = 1_000
_MARGIN = 4_000
"""Masking reads this much beyond a cut, so that it finds a secret that the cut would split."""

_BY_TYPE: tuple[tuple[type[BaseException], ErrorClass], ...] = (
    (TimeoutError, "timeout"),
    (PermissionError, "permission"),
    (AccessDenied, "permission"),
    (NotAuthenticated, "permission"),
    (HandleRefused, "permission"),
    (Abort, "permission"),
    (ConfigError, "config"),
    (SandboxUnavailable, "config"),
    (EmbedderMismatch, "config"),
    (InvalidInput, "validation"),
    (NotFound, "validation"),
    (FormatError, "validation"),
    (ManifestError, "validation"),
    (msgspec.ValidationError, "validation"),
)
_BY_KIND: Mapping[str, ErrorClass] = {
    **{name: name for name in CLASSES},
    "auth": "config",
    "too_long": "validation",
}
"""Maps the error kinds of models and tools to error classes. Other kinds are runtime errors."""
_SEVERITY: Mapping[ErrorClass, str] = {
    "timeout": "error",
    "permission": "warning",
    "runtime": "error",
    "config": "critical",
    "validation": "warning",
}
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_|-)(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|passphrase|authorization|cookie)$"
)


class FailedTool(msgspec.Struct, frozen=True, kw_only=True):
    """The tool that failed. A built-in tool has no `id`."""

    name: str
    id: str | None = None
    version: int | None = None
    limits: Mapping[str, Any] = {}


class CallFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed call: the error, the attempt, the time and the duration in seconds."""

    error: BaseException
    failed_at: datetime
    attempt: int = 1
    seconds: float = 0.0


def classify(error: BaseException) -> ErrorClass:
    """The class of an error. Every error has one."""
    if isinstance(error, ModelError | ToolFailure):
        return _BY_KIND.get(error.kind, "runtime")
    return next((known for kind, known in _BY_TYPE if isinstance(error, kind)), "runtime")


def is_retryable(error: BaseException) -> bool:
    """Whether a retry of the same call may succeed."""
    return (
        error.retryable
        if isinstance(error, ModelError)
        else isinstance(error, TimeoutError | Busy | Unreachable | ConnectionError)
    )


def error_drafts(
    flow: Flow, request: Breadcrumb, failure: CallFailure, tool: FailedTool, *, tags: tuple[str, ...] = ()
) -> tuple[Draft, Draft]:
    """Return the error response for the requester, and the record of the error, which gets `tags`. Secrets are masked
    in both; stack and input are cut. Raises InvalidInput if `request` is not a request."""
    asked = read_request(request)
    message = _message(failure.error)
    kind = classify(failure.error)
    milliseconds = failure.seconds * 1000
    response = response_draft(
        flow,
        request,
        tool.name,
        "error",
        error=message,
        milliseconds=milliseconds,
        extra={"error_type": kind},
    )
    context = {
        "tool_name": tool.name,
        "tool_breadcrumb_id": tool.id,
        "tool_version": tool.version,
        "request_id": asked.request_id,
        "request_breadcrumb_id": request.id,
        "requestedBy": asked.requested_by,
        "error_type": kind,
        "error_message": message,
        "error_stack": _stack(failure.error),
        "tool_input": bounded_input(asked.input),
        "tool_limits": dict(tool.limits),
        "execution_time_ms": round(milliseconds, 3),
        "severity": _SEVERITY[kind],
        "retryable": is_retryable(failure.error),
        "failed_at": failure.failed_at.isoformat(),
        "attempt_number": failure.attempt,
    }
    record = Draft(
        title=f"{tool.name} failed: {message}"[:200],
        schema_name=flow.error,
        tags=("tool:error", f"tool:{tool.name}"[:300], f"error:{kind}", TOOLS, *inherited_tags(request), *tags),
        context=context,
    )
    return response, record


def bounded_input(value: Any) -> Any:
    """A JSON value with secrets masked. A value over 8,000 bytes becomes the beginning of its text."""
    encoded = encode_canonical(value, "input")
    if len(encoded) <= MAX_INPUT:
        return mask_values(value)
    masked = mask_secrets(encoded[: MAX_INPUT + _MARGIN].decode(errors="ignore"))
    return {"cut": masked.encode()[:MAX_INPUT].decode(errors="ignore"), "bytes": len(encoded)}


def mask_values(value: Any, name: str = "") -> Any:
    """The value with secrets masked, by their form or their name."""
    if isinstance(value, Mapping):
        return {key: mask_values(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask_values(each, name) for each in value]
    if isinstance(value, str):
        return MASK if value and _SECRET_NAME.search(name) else mask_secrets(value)
    return value


def _message(error: BaseException) -> str:
    return mask_secrets(describe(error))[:MAX_MESSAGE]


def _stack(error: BaseException) -> str:
    """The end of the stack trace, or the trace that the tool itself reported."""
    told = error.stack if isinstance(error, ToolFailure) else ""
    text = told or "".join(traceback.format_exception(error))
    return mask_secrets(text[-MAX_STACK - _MARGIN :])[-MAX_STACK:].encode(errors="replace").decode()
