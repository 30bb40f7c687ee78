"""Makes spans from records: the claimed record and the outputs. It does no I/O and uses no text of the records. Ids are
derived from the records, so that every process gives the same span the same id. A run that another worker takes over
stays in its trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from clew.agents.runs.requests import CALLED_TAG
from clew.clock import to_micros
from clew.context.handlers import REQUESTS
from clew.secrecy import mask_secrets
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Claim
from clew.trail.model.flow import Flow
from clew.trail.work.claims import printable
from clew.trail.work.correlation import find_requester, find_run
from clew.trail.work.trace_context import derive_span_id, derive_trace_id, find_trace

AttributeValue = str | int | float | bool
MAX_NAME = 100
_CALLER_TAG = "caller:"
_NUMBER = re.compile(r"/\d+$")
_OWN = ("agent/", "context/", "workflow/")
_ENDED_WELL = ("", "done", "success")


class SpanKind(IntEnum):
    """The kinds of spans, with the numbers of OpenTelemetry."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSpan:
    """Something that has ended. Ids are hexadecimal, times nanoseconds since 1970. `error` is a short fixed word."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str
    kind: SpanKind = SpanKind.INTERNAL
    start: int
    end: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledClaim:
    """A claim that was worked on from `start` to `end`, with its outputs, and its error if it failed."""

    claim: Claim
    record: Breadcrumb
    outputs: Sequence[Draft]
    start: datetime
    end: datetime
    error: str = ""

    @property
    def run(self) -> str:
        return find_run(self.record) or self.record.id

    @property
    def actor(self) -> str:
        """The agent or workflow to whose run this step belongs. Empty if there is none."""
        kind, _, name = self.claim.consumer.partition("/")
        if not self.is_own_step:
            return find_requester(self.record) or ""
        name = name if kind == "context" else _NUMBER.sub("", name)
        return f"workflow:{name}" if kind == "workflow" else name

    @property
    def is_own_step(self) -> bool:
        """Whether the consumer belongs to one agent or workflow, and is not shared by all of them."""
        return self.claim.consumer.startswith(_OWN) and self.claim.consumer != REQUESTS


def trace_id_of(record: Breadcrumb) -> str:
    """The trace that a record belongs to."""
    given = find_trace(record)
    return derive_trace_id(record) if given is None else given.trace_id


def claim_span(flow: Flow, settled: SettledClaim) -> FinishedSpan:
    """The span of one step: an agent's, or a call of a model or of a tool. It is a part of its run."""
    record, claim = settled.record, settled.claim
    name, kind, own = _describe(flow, settled)
    attempt = (
        (str(claim.attempt),) if settled.error else ()
    )  # a failed attempt has its own span beside that of the successful one
    return FinishedSpan(
        trace_id=trace_id_of(record),
        span_id=derive_span_id(claim.consumer, record.id, str(claim.event.version), *attempt),
        parent_id=_parent_of_step(settled),
        name=name,
        kind=kind,
        start=_nanos(settled.start),
        end=_nanos(settled.end),
        attributes=_about(settled) | own,
        error=settled.error or _status_of(flow, settled.outputs),
    )


def run_end(flow: Flow, settled: SettledClaim) -> str | None:
    """How the run ended with this step: an empty text if it succeeded, else a short error. None if the run did not
    end."""
    if settled.error or not settled.claim.consumer.startswith(("agent/", "workflow/")):
        return None
    for draft in settled.outputs:
        if draft.schema_name in (flow.answer, flow.workflow_result):
            status = str(draft.context.get("status") or "")
            return "" if status in _ENDED_WELL else _short(status)
    return None


def run_span(settled: SettledClaim, trigger: Breadcrumb, error: str) -> FinishedSpan:
    """The span of a whole run, from the record that began it to its end. It is the parent of all its steps."""
    agent = _short(settled.actor)
    return FinishedSpan(
        trace_id=trace_id_of(settled.record),
        span_id=_run_id(settled.run, settled.actor),
        parent_id=_parent_of_run(trigger),
        name=f"invoke_agent {agent}",
        start=min(_nanos(trigger.created_at), _nanos(settled.start)),
        end=_nanos(settled.end),
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            **_conversation(settled.record),
            "clew.run": settled.run,
        },
        error=error,
    )


def _describe(flow: Flow, settled: SettledClaim) -> tuple[str, SpanKind, dict[str, AttributeValue]]:
    """The name, the kind and the specific attributes of a step."""
    record = settled.record
    if record.schema_name == flow.request and record.context.get("tool") == flow.model_tool:
        used = _usage(flow, settled.outputs)
        return f"chat {used.get('gen_ai.request.model', '')}".strip(), SpanKind.CLIENT, used
    if record.schema_name == flow.request:
        tool = _short(str(record.context.get("tool") or "unknown"))
        return (
            f"execute_tool {tool}",
            SpanKind.INTERNAL,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
            },
        )
    kind = settled.claim.consumer.partition("/")[0]
    step = {"agent": "step", "workflow": "step", "context": "build_context"}.get(kind)
    name = f"{step} {_short(settled.actor)}".strip() if step else _short(settled.claim.consumer)
    return name, SpanKind.INTERNAL, {}


def _usage(flow: Flow, outputs: Sequence[Draft]) -> dict[str, AttributeValue]:
    """Model and tokens of a call, as its record of usage has them."""
    found: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat"}
    used = next((each.context for each in outputs if each.schema_name == flow.usage), None)
    if used is None:
        return found
    provider, _, model = str(used.get("model") or "").rpartition(":")
    found |= {"gen_ai.request.model": _short(model)}
    found |= {"gen_ai.provider.name": _short(provider)} if provider else {}
    for name, field_name in (("input_tokens", "input_tokens"), ("output_tokens", "output_tokens")):
        found[f"gen_ai.usage.{name}"] = _number(used, field_name)
    return found | {"clew.usage.cached_tokens": _number(used, "cached_tokens")}


def _number(used: Mapping[str, Any], name: str) -> int:
    value = used.get(name)
    return value if isinstance(value, int) else 0


def _status_of(flow: Flow, outputs: Sequence[Draft]) -> str:
    """The error or status in the response of a call that failed. Empty if it succeeded."""
    for draft in outputs:
        if draft.schema_name == flow.response:
            status = str(draft.context.get("status") or "")
            return "" if status in _ENDED_WELL else _short(str(draft.context.get("error_type") or status))
    return ""


def _about(settled: SettledClaim) -> dict[str, AttributeValue]:
    actor = settled.actor
    return {
        **({"gen_ai.agent.name": _short(actor)} if actor else {}),
        **_conversation(settled.record),
        "clew.run": settled.run,
        "clew.record": settled.record.id,
        "clew.consumer": _short(settled.claim.consumer),
        "clew.attempt": settled.claim.attempt,
    }


def _conversation(record: Breadcrumb) -> dict[str, AttributeValue]:
    return {"gen_ai.conversation.id": _short(record.session)} if record.session else {}


def _run_id(run: str, actor: str) -> str:
    return derive_span_id("run", run, actor)


def _parent_of_step(settled: SettledClaim) -> str:
    """The parent span of a step: its run, or for a call outside a run the span of the request."""
    if settled.actor and (settled.is_own_step or find_run(settled.record)):
        return _run_id(settled.run, settled.actor)
    return _outside(settled.record)


def _parent_of_run(trigger: Breadcrumb) -> str:
    """The parent span of a run: the run that called it, or else the external span of the message."""
    caller, by = _tagged(trigger, CALLED_TAG), _tagged(trigger, _CALLER_TAG)
    return _run_id(caller, by) if caller and by else _outside(trigger)


def _outside(record: Breadcrumb) -> str:
    given = find_trace(record)
    return "" if given is None else given.span_id


def _tagged(record: Breadcrumb, prefix: str) -> str:
    return next((tag.removeprefix(prefix) for tag in record.tags if tag.startswith(prefix)), "")


def _short(name: str) -> str:
    """A foreign name made safe to show: secrets masked, printable and short."""
    return printable(mask_secrets(name), MAX_NAME)


def _nanos(moment: datetime) -> int:
    return to_micros(moment) * 1_000
