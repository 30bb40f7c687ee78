"""The next step after an error in terms of REST, for errors without a hint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from clew.errors import (
    AlreadyExists,
    ClewError,
    ConfigError,
    Conflict,
    CycleRefused,
    InvalidInput,
    LeaseLost,
    NotFound,
    StorageError,
    TemplateError,
    TooLarge,
)

_BY_CLASS: dict[type[ClewError], str] = {
    InvalidInput: "GET /docs describes every field and its limits",
    TooLarge: "Send less, or in several requests; nothing was written",
    TemplateError: "Correct the llm_hints; nothing was written",
    NotFound: "It is absent, has expired, or is hidden from this token; list what there is",
    AlreadyExists: "Read what is there, and change that instead",
    CycleRefused: "Leave this edge out, or remove one that leads back",
    LeaseLost: "Drop this work: another worker has it",
    ConfigError: "Correct the setting, and start the server again",
    StorageError: "Try again; when it stays, run `clew doctor`",
    ClewError: "The log of the server has more under the X-Request-Id of this answer",
}
_MISSING = {
    "breadcrumb": "GET /breadcrumbs lists what this token may see; what has expired or is hidden answers the same",
    "breadcrumb version": "GET /breadcrumbs/{id}/history lists the versions that are kept",
    "version": "GET /breadcrumbs/{id}/history lists the versions that are kept",
    "edge": "GET /breadcrumbs/{id}/edges lists the edges at a breadcrumb",
    "consumer": "GET /subscriptions lists the subscriptions",
    "dead letter": "GET /dlq lists the dead letters",
    "secret": "GET /secrets lists the names of secrets",
}
_TAKEN = {
    "breadcrumb": "Change it with PATCH, or leave `id` out for a new one",
    "edge": 'Send "replace": true to write over it',
    "idempotency key": "Use another Idempotency-Key for another breadcrumb",
    "consumer": "Choose another name",
}
_ID = re.compile(r"(?<=/)[0-9a-f]{8}-[0-9a-f-]{27}(?=/|$)")
_MORE = "GET /openapi.json lists the paths, GET /docs explains them"


def advise(error: ClewError) -> str:
    """The next step after an error; never empty."""
    if isinstance(error, Conflict):
        return f'GET /breadcrumbs/{error.id}/full, merge your change, and send it with If-Match: "{error.actual}"'
    if error.hint:
        return error.hint
    kinds = _MISSING if isinstance(error, NotFound) else _TAKEN if isinstance(error, AlreadyExists) else {}
    fallback = next(_BY_CLASS[each] for each in type(error).__mro__ if each in _BY_CLASS)
    return kinds.get(getattr(error, "kind", ""), fallback)


def advise_path(given: str, paths: Iterable[str]) -> str:
    """The next step for a path that does not exist: the nearest path that does."""
    near = difflib.get_close_matches(_ID.sub("{id}", given[:200]), list(paths), n=1)
    return f"Did you mean {near[0]}? {_MORE}" if near else _MORE
