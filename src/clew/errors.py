"""All errors that Clew raises deliberately, in one class tree. Errors carry data and the next step.

ClewError
├── InvalidInput            a value that cannot be accepted: field, reason
│   ├── TooLarge            over a stated limit
│   ├── SchemaViolation     the context breaks the JSON Schema of its schema.def.v1
│   └── TemplateError       an llm_hints transform that is malformed or over its budget
├── NotAuthenticated        no valid token or credential
├── AccessDenied            a valid principal without the role
├── NotFound                absent, expired, or not visible to the caller: the same answer for all three
├── Conflict                the version is not the expected one
├── AlreadyExists           the uniqueness rule of an edge, or an id that is taken
├── IllegalState            an action that the present state does not allow: state, allowed
├── CycleRefused            the edge would close a cycle in a type that stays acyclic
├── LeaseLost               another worker holds the claim now; nothing was written
├── EmbedderMismatch        a vector of another dimension or model than the trail's
├── ConfigError             a setting that cannot be used
├── DeliveryRefused         an address that the configuration does not allow
├── SourceError             a place that documents come from did not give them
├── FormatError             a document that its format cannot read
├── HandleRefused           a handle that has ended, or was given to somebody else
├── ManifestError           agents, skills, toolsets or tools in markdown that cannot be used: path, line, context
│   ├── ParseError          a file that cannot be read: its front matter is missing or malformed
│   ├── ValidationError     a value that is not allowed, or a name that there is not
│   └── BuildError          definitions that do not fit together
├── ServerError             a foreign MCP server that cannot be reached, or answers nonsense
├── ModelError              a model that was not reached, refused, or answered nonsense: kind, retryable
├── SandboxUnavailable      nothing on this machine can confine the code that was to run
├── ToolFailure             a tool that did not give a result: kind, stack, retryable
├── BudgetExceeded          a budget of tokens, money, time, calls or children is used up
├── Abort                   a hook ended a prompt or a call before it was made
├── CircuitOpen             a call that failed too often is not tried for a while
└── StorageError            the engine failed
    ├── Corrupted           a checksum or the file itself is wrong
    ├── StorageFull         no space left; the write did not happen
    ├── ReadOnly            the file cannot be written; the write did not happen
    ├── Busy                the queue of writes is full; try again
    └── Unreachable         the database server does not answer; try again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

ModelFailure = Literal["config", "auth", "rate", "timeout", "server", "refused", "malformed", "unreachable", "too_long"]

ToolFailureKind = Literal["timeout", "permission", "runtime", "config", "validation"]


MAX_MESSAGE = 4_000
"""The maximum number of characters of an error message, which may quote input of any length."""


def _cut(text: str) -> str:
    """Remove the middle of a text that is too long. The end stays, because the reason is often there."""
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE * 3 // 4]}…{text[-MAX_MESSAGE // 5 :]}"


class ClewError(Exception):
    """Root of the tree. `message` is one line for people; `hint` is the next step."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        message = _cut(message)
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = _cut(hint)

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class InvalidInput(ClewError):
    """`field` names the wrong value as the caller knows it, e.g. `tags[3]`."""

    def __init__(self, field: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{field}: {reason}", hint=hint)
        self.field = field
        self.reason = reason

    def put_below(self, place: str) -> None:
        """Prefix the field with `place`, the value that contains it."""
        self.field = f"{place}.{self.field}"
        self.message = _cut(f"{self.field}: {self.reason}")


class TooLarge(InvalidInput):
    def __init__(self, field: str, size: int, limit: int, unit: str = "bytes") -> None:
        super().__init__(field, f"{size:,} {unit} is over the limit of {limit:,}")
        self.size = size
        self.limit = limit


class SchemaViolation(InvalidInput):
    def __init__(self, schema_name: str, path: str, reason: str) -> None:
        super().__init__(f"context{path}", reason, hint=f"The JSON Schema is in the schema.def.v1 of {schema_name}")
        self.schema_name = schema_name


class TemplateError(InvalidInput):
    def __init__(self, reason: str, *, field: str = "llm_hints") -> None:
        super().__init__(field, reason)


class NotAuthenticated(ClewError):
    hint = "Get a token with `clew token` or POST /auth/token, and send it as `Authorization: Bearer`"


class AccessDenied(ClewError):
    def __init__(self, verb: str, needed: Sequence[str]) -> None:
        super().__init__(f"may not {verb}", hint=f"Needed: {' or '.join(needed)}")
        self.verb = verb
        self.needed = tuple(needed)


class NotFound(ClewError):
    def __init__(self, kind: str, id: str, *, hint: str = "") -> None:
        super().__init__(f"no {kind} {id!r}" if id else f"no {kind}", hint=hint)
        self.kind = kind
        self.id = id


class Conflict(ClewError):
    def __init__(self, id: str, *, expected: int, actual: int) -> None:
        super().__init__(f"{id} is at version {actual}, not {expected}", hint="Read it again, merge, and retry")
        self.id = id
        self.expected = expected
        self.actual = actual


class AlreadyExists(ClewError):
    def __init__(self, kind: str, id: str, *, hint: str = "") -> None:
        super().__init__(f"{kind} {id} exists already", hint=hint)
        self.kind = kind
        self.id = id


class IllegalState(ClewError):
    """`state` is the present one; `allowed` are the actions that it does allow."""

    def __init__(
        self, verb: str, subject: str, state: str, allowed: Sequence[str], *, reason: str = "", hint: str = ""
    ) -> None:
        because = f" because {reason}" if reason else ""
        hint = hint or f"Possible now: {', '.join(allowed)}"
        super().__init__(f"cannot {verb} {subject}: it is {state}{because}", hint=hint)
        self.state = str(state)
        self.allowed = tuple(map(str, allowed))


class CycleRefused(ClewError):
    def __init__(self, edge_type: str, source: str, target: str) -> None:
        super().__init__(f"an edge {edge_type} from {source} to {target} would close a cycle")
        self.edge_type = edge_type


class LeaseLost(ClewError):
    def __init__(self, consumer: str, seq: int) -> None:
        super().__init__(f"the claim of {consumer} on event {seq} has passed to another worker")
        self.consumer = consumer
        self.seq = seq


class EmbedderMismatch(ClewError):
    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(
            f"this trail holds vectors of {expected}, not of {actual}",
            hint="Use that embedder, or change over with `clew trail reembed`",
        )
        self.expected = expected
        self.actual = actual


class ConfigError(ClewError):
    def __init__(self, message: str, *, choices: Sequence[str] = ()) -> None:
        super().__init__(message, hint=f"Choose one of: {', '.join(choices)}" if choices else "")
        self.choices = tuple(choices)


class DeliveryRefused(ClewError):
    hint = "Allow the network in [webhooks] allow of config.toml"

    def __init__(self, url: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"no delivery to {url}: {reason}", hint=hint)
        self.url = url


class SourceError(ClewError):
    def __init__(self, source: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{source}: {reason}", hint=hint)
        self.source = source
        self.reason = reason


class FormatError(ClewError):
    def __init__(self, document: str, reason: str) -> None:
        super().__init__(f"{document}: {reason}")
        self.document = document
        self.reason = reason


class HandleRefused(ClewError):
    hint = "Call `ask` without a handle to get a new one"

    def __init__(self) -> None:
        super().__init__("this handle has ended, or is not yours")


class ManifestError(ClewError):
    """`line` is 1-based, 0 if unknown. `allowed` are the valid values. `context` is for programs."""

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        line: int = 0,
        allowed: Sequence[str] = (),
        hint: str = "",
        **context: Any,
    ) -> None:
        place = f"{path}:{line}" if path and line else path
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.path = path
        self.line = line
        self.allowed = tuple(allowed)
        self.context = context


class ParseError(ManifestError):
    pass


class ValidationError(ManifestError):
    pass


class BuildError(ManifestError):
    pass


class ServerError(ClewError):
    def __init__(self, server: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{server}: {reason}", hint=hint)
        self.server = server
        self.reason = reason


class ModelError(ClewError):
    """`kind` says what went wrong; `retry_after` is how many seconds the provider asked to wait."""

    def __init__(
        self,
        kind: ModelFailure,
        reason: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(reason, hint=hint)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after


class SandboxUnavailable(ClewError):
    hint = "Run `clew doctor` for what is missing"


class ToolFailure(ClewError):
    """`kind` is one of the five classes of tool errors; `stack` is the location in the tool's own code, for its
    author."""

    def __init__(
        self, kind: ToolFailureKind, message: str, *, stack: str = "", retryable: bool = False, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.stack = stack
        self.retryable = retryable


class BudgetExceeded(ClewError):
    """`limit` is the kind that is used up: tokens, money, seconds, calls or children. Empty for a closed budget."""

    def __init__(self, budget: str, limit: str, *, hint: str = "") -> None:
        super().__init__(f"the budget {budget} " + (f"has no {limit} left" if limit else "is closed"), hint=hint)
        self.budget = budget
        self.limit = limit


class Abort(ClewError):
    """Raised by a hook: the reason is for the user."""


class CircuitOpen(ClewError):
    """`retry_after` is in how many seconds it may be tried again."""

    def __init__(self, name: str, retry_after: float) -> None:
        super().__init__(f"{name} failed too often, and is not called now", hint=f"Try again in {retry_after:.0f} s")
        self.name = name
        self.retry_after = retry_after


class StorageError(ClewError):
    pass


class Corrupted(StorageError):
    hint = "Run `clew doctor` for what is damaged; then restore a copy or import an export"


class StorageFull(StorageError):
    hint = "Free some space on that disk; nothing was written"


class ReadOnly(StorageError):
    hint = "Check the permissions of the file and its folder; nothing was written"


class Busy(StorageError):
    hint = "Too many writes are waiting; try again in a moment"


class Unreachable(StorageError):
    hint = "Is the database server running?"
