"""Receipts: the items of a context and those left out, each with the reason, and the missing sources. Each context
carries its receipt, so a past prompt can be explained."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from clew.context.sources import MissingSource
from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb

BUILDER = 1
"""The version of the algorithm."""
MAX_DROPPED = 200


class ReceiptItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A breadcrumb that the model sees: its version, the source and the reason, its score and tokens, its position, and
    the path from a seed to it."""

    id: str
    version: int
    schema_name: str | None = None
    origin: str
    reason: str
    score: float
    tokens: int
    section: str
    hops: int = 0
    path: tuple[str, ...] = ()
    excerpt: bool = False


class DroppedItem(msgspec.Struct, frozen=True, kw_only=True):
    """A breadcrumb that a source found and the builder left out."""

    id: str
    version: int
    origin: str
    score: float
    tokens: int
    why: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The items of one context with their reasons, in the order of their numbers in the text. `more_dropped` counts
    dropped items that are not listed."""

    items: tuple[ReceiptItem, ...]
    dropped: tuple[DroppedItem, ...] = ()
    more_dropped: int = 0
    seeds: dict[str, int] = {}
    sections: dict[str, int] = {}
    missing: tuple[MissingSource, ...] = ()
    builder: int = BUILDER


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A context as `why` shows it."""

    id: str
    version: int
    consumer_id: str
    trigger_event_id: str
    model: str
    budget: int
    token_estimate: int
    receipt: Receipt


class ItemExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a breadcrumb is in a context, and why."""

    id: str
    verdict: Literal["in", "dropped", "not found"]
    why: str
    number: int | None = None
    item: ReceiptItem | None = None
    dropped: DroppedItem | None = None


class _Context(msgspec.Struct, frozen=True, kw_only=True):
    consumer_id: str
    receipt: Receipt
    trigger_event_id: str = ""
    model: str = ""
    budget: int = 0
    token_estimate: int = 0


def explain(breadcrumb: Breadcrumb) -> Explanation:
    """Return the receipt of a context. Raises InvalidInput for a record that is not a context or has no receipt."""
    try:
        found = msgspec.convert(breadcrumb.context, _Context)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, _Context, "context")
        raise InvalidInput(
            breadcrumb.id, f"is not a context with a receipt ({wrong.message})", hint="Pass the id of a context"
        ) from None
    return Explanation(
        id=breadcrumb.id,
        version=breadcrumb.version,
        **{name: getattr(found, name) for name in _Context.__struct_fields__},
    )


def explain_item(breadcrumb: Breadcrumb, id: str) -> ItemExplanation:
    """Explain why a breadcrumb is or is not in a context. `id` may be a prefix of an id in the receipt. Raises the
    errors of `explain`."""
    receipt = explain(breadcrumb).receipt
    for number, item in enumerate(receipt.items, 1):
        if item.id.startswith(id):
            cut = "; only the beginning, because it is long" if item.excerpt else ""
            way = f", {item.hops} hops from {item.path[0]}" if item.hops else ""
            why = (
                f"[{number}] in {item.section}: {item.reason}{way}; score {item.score:.2f}, {item.tokens:,} tokens{cut}"
            )
            return ItemExplanation(id=item.id, verdict="in", why=why, number=number, item=item)
    for dropped in receipt.dropped:
        if dropped.id.startswith(id):
            why = f"found by {dropped.origin} with a score of {dropped.score:.2f}, and left out: {dropped.why}"
            return ItemExplanation(id=dropped.id, verdict="dropped", why=why, dropped=dropped)
    others = f"; {receipt.more_dropped:,} more were left out and are not listed" if receipt.more_dropped else ""
    why = f"no source found it, and no edge led to it from {sum(receipt.seeds.values()):,} seeds{others}"
    return ItemExplanation(id=id, verdict="not found", why=why)


def as_record(receipt: Receipt) -> dict[str, Any]:
    """Convert the receipt to its stored form."""
    record: dict[str, Any] = msgspec.to_builtins(receipt)
    return record
