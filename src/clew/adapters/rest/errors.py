"""The table from errors to status and code, and the format of all error responses.

Codes are the snake_case names of the error classes, so that the client can raise the same class again.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from clew.adapters.rest.advice import advise
from clew.errors import (
    Abort,
    AccessDenied,
    AlreadyExists,
    BudgetExceeded,
    BuildError,
    Busy,
    CircuitOpen,
    ClewError,
    ConfigError,
    Conflict,
    Corrupted,
    CycleRefused,
    DeliveryRefused,
    EmbedderMismatch,
    FormatError,
    HandleRefused,
    IllegalState,
    InvalidInput,
    LeaseLost,
    ManifestError,
    ModelError,
    NotAuthenticated,
    NotFound,
    ParseError,
    ReadOnly,
    SandboxUnavailable,
    SchemaViolation,
    ServerError,
    SourceError,
    StorageError,
    StorageFull,
    TemplateError,
    TooLarge,
    ToolFailure,
    Unreachable,
    ValidationError,
)

STATUS: dict[type[ClewError], tuple[int, str]] = {
    InvalidInput: (422, "invalid_input"),
    TooLarge: (413, "too_large"),
    SchemaViolation: (422, "schema_violation"),
    TemplateError: (422, "template_error"),
    NotAuthenticated: (401, "not_authenticated"),
    AccessDenied: (403, "access_denied"),
    NotFound: (404, "not_found"),
    Conflict: (412, "conflict"),
    AlreadyExists: (409, "already_exists"),
    CycleRefused: (409, "cycle_refused"),
    IllegalState: (409, "illegal_state"),
    LeaseLost: (409, "lease_lost"),
    EmbedderMismatch: (422, "embedder_mismatch"),
    DeliveryRefused: (422, "delivery_refused"),
    HandleRefused: (403, "handle_refused"),
    ManifestError: (422, "manifest_error"),
    ParseError: (422, "parse_error"),
    ValidationError: (422, "validation_error"),
    BuildError: (422, "build_error"),
    SourceError: (502, "source_error"),
    FormatError: (422, "format_error"),
    ServerError: (502, "server_error"),
    ModelError: (502, "model_error"),
    ToolFailure: (502, "tool_failure"),
    SandboxUnavailable: (503, "sandbox_unavailable"),
    CircuitOpen: (503, "circuit_open"),
    BudgetExceeded: (429, "budget_exceeded"),
    Abort: (422, "abort"),
    ConfigError: (500, "config_error"),
    StorageError: (500, "storage_error"),
    Corrupted: (500, "corrupted"),
    StorageFull: (507, "storage_full"),
    ReadOnly: (503, "read_only"),
    Busy: (503, "busy"),
    Unreachable: (503, "unreachable"),
    ClewError: (500, "clew_error"),
}

PROTOCOL: dict[int, tuple[str, str]] = {
    400: ("malformed", "Send well-formed UTF-8: JSON in the body, percent-encoding in the address"),
    404: ("no_such_path", ""),
    405: ("method_not_allowed", ""),
    415: ("unsupported_media_type", "Send the body as Content-Type: application/json"),
    428: ("if_match_required", 'Send If-Match: "<version>" with the version that you read'),
}
"""Status → code and hint for errors of the HTTP request itself, before any rule of Clew applies. The hints for
404 and 405 depend on the path."""

EXTRA_HEADERS = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": "1"}}

_log = logging.getLogger("clew.rest")
_NOT_DATA = frozenset({"message", "hint", "field"})


class RestProblem(msgspec.Struct, frozen=True, kw_only=True):
    """An error and the next step. `field` names the wrong value, `data` has the details."""

    code: str
    message: str
    hint: str
    field: str | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET


class NoSuchPath(HTTPException):
    """404 for an unknown path, with the path that was probably meant."""

    def __init__(self, hint: str) -> None:
        super().__init__(404, "there is no such path")
        self.hint = hint


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 or more."""

    error: RestProblem


def status_of(kind: type[ClewError]) -> tuple[int, str]:
    """Status and code of an error class: its own, or that of its nearest ancestor in the table."""
    return next(STATUS[each] for each in kind.__mro__ if each in STATUS)


def answer_error(error: Exception, scope: Scope, *, is_started: bool) -> Response:
    """The answer to an error that leaves an endpoint. After the start of an answer it can only be logged."""
    if isinstance(error, ClewError) and not is_started:
        return _answer_clew_error(error, scope)
    if isinstance(error, HTTPException) and not is_started:
        return _answer_protocol_error(error)
    return _answer_unknown_failure(error, scope["clew.request_id"])


def _answer_clew_error(error: ClewError, scope: Scope) -> Response:
    status, code = status_of(type(error))
    if status >= 500:
        _log.error("%s %s", scope["clew.request_id"], error)
    data = {name: value for name, value in vars(error).items() if name not in _NOT_DATA}
    problem = RestProblem(
        code=code,
        message=error.message,
        hint=advise(error),
        field=getattr(error, "field", UNSET),
        data=data or UNSET,
    )
    return error_response(status, problem, EXTRA_HEADERS.get(status))


def _answer_protocol_error(error: HTTPException) -> Response:
    """A request that is wrong as HTTP: path, method, encoding, missing precondition."""
    code, hint = PROTOCOL[error.status_code]
    if isinstance(error, NoSuchPath):
        hint = error.hint
    if error.status_code == 405 and error.headers:
        hint = f"This path takes {error.headers['allow']}"
    problem = RestProblem(code=code, message=error.detail, hint=hint)
    return error_response(error.status_code, problem, error.headers)


def _answer_unknown_failure(error: Exception, request_id: str) -> Response:
    """Any other exception is a defect. The log gets the place but not the message, which may quote content."""
    places = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s failed with %s\n%s", request_id, type(error).__name__, places)
    problem = RestProblem(
        code="internal",
        message="this should not have happened",
        hint=f"The log of the server has more under {request_id}",
    )
    return error_response(500, problem)


def error_response(status: int, problem: RestProblem, headers: Any = None) -> Response:
    body = msgspec.json.encode(ErrorBody(error=problem), enc_hook=str)
    return Response(body, status, headers, "application/json")
