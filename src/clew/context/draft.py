"""The result of the builder, and its breadcrumb."""

from __future__ import annotations

import msgspec

from clew.context.receipts import Receipt, as_record
from clew.trail.model.breadcrumb import Breadcrumb, Draft


class ContextDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A context before it is written."""

    schema_name: str
    consumer_id: str
    trigger: Breadcrumb
    formatted_context: str
    token_estimate: int
    breadcrumb_count: int
    sources_assembled: int
    budget: int
    model: str
    receipt: Receipt
    tags: tuple[str, ...]
    request_id: str | None = None
    read: tuple[Breadcrumb, ...] = ()

    def as_draft(self) -> Draft:
        """Return the breadcrumb to write."""
        context = {
            "consumer_id": self.consumer_id,
            "trigger_event_id": self.trigger.id,
            "trigger": {"id": self.trigger.id, "version": self.trigger.version},
            "formatted_context": self.formatted_context,
            "token_estimate": self.token_estimate,
            "breadcrumb_count": self.breadcrumb_count,
            "sources_assembled": self.sources_assembled,
            "budget": self.budget,
            "model": self.model,
            "receipt": as_record(self.receipt),
            **({"request_id": self.request_id} if self.request_id is not None else {}),
        }
        title = f"Context for {self.consumer_id}"[:200]
        return Draft(title=title, schema_name=self.schema_name, context=context, tags=self.tags, embed="never")
