"""The trace that a run belongs to, in the sense of W3C Trace Context.

A trace that came with a request is a tag on the message, which all records of the run inherit. Without such a tag, the
id of the trace is derived from the id of the first run. Either way, all processes that work on the run use the same
trace.
"""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from typing import NamedTuple

from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.work.correlation import TRACE_TAG, find_root

_TRACEPARENT = lazy_pattern(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?"
)
_CURRENT_VERSION = "00"


class TraceContext(NamedTuple):
    """The ids of a trace and of the parent span for new spans, both in hexadecimal. The span is empty if the trace has
    no span outside its run."""

    trace_id: str
    span_id: str = ""
    is_sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"


current_trace: ContextVar[TraceContext | None] = ContextVar("current_trace", default=None)
"""The trace of the current request. None if the request has none and requests are not traced."""


def parse_traceparent(text: str) -> TraceContext | None:
    """The trace that a `traceparent` names, or None if it is malformed."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None or (found[1] == _CURRENT_VERSION and found[5] is not None):
        return None
    return TraceContext(found[2], found[3], bool(int(found[4], 16) & 1))


def trace_tags() -> tuple[str, ...]:
    """The trace tag for a message that is written during the current request. Empty if the request has no trace."""
    trace = current_trace.get()
    return () if trace is None else (TRACE_TAG + trace.traceparent,)


def find_trace(breadcrumb: Breadcrumb) -> TraceContext | None:
    """The trace that a breadcrumb is tagged with."""
    tags = (tag.removeprefix(TRACE_TAG) for tag in breadcrumb.tags if tag.startswith(TRACE_TAG))
    return next(filter(None, map(parse_traceparent, tags)), None)


def derive_trace_id(breadcrumb: Breadcrumb) -> str:
    """The trace id of a breadcrumb without a trace tag. All records of a chain of runs have the same id."""
    return hashlib.blake2b(find_root(breadcrumb).encode(), digest_size=16, person=b"clew-trace").hexdigest()


def derive_span_id(*parts: str) -> str:
    """The id of the span that some names identify."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8, person=b"clew-span").hexdigest()
