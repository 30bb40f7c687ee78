"""The checks of a write before its transaction begins: rights, definitions, limits, vectors. No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from clew.access import GuardedSchemas, Principal
from clew.clock import Clock, from_micros
from clew.errors import InvalidInput, TooLarge
from clew.trail.model.breadcrumb import MAX_BATCH, Breadcrumb, Change, Draft, Update
from clew.trail.model.definitions import DEFINITIONS, Definitions, check_definition
from clew.trail.model.prepare import Prepared, as_breadcrumb, embed_all, prepare_change, prepare_draft
from clew.trail.store import Embedder

INLINE_TEXTS = 4
TOO_FAST = "the definitions change faster than breadcrumbs can be checked"
PATIENCE = 10
"""Attempts to check breadcrumbs while definitions keep changing."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode

Present = tuple[Breadcrumb, bytes | None]
"""A breadcrumb and its vector."""


class Outdated(Exception):
    """The definitions have changed since the breadcrumbs were checked."""


def check_batch(drafts: Sequence[Draft]) -> None:
    if len(drafts) > MAX_BATCH:
        raise TooLarge("batch", len(drafts), MAX_BATCH, "breadcrumbs")


def check_updates(updates: Sequence[Update]) -> None:
    """Refuse too many updates, and two of one breadcrumb."""
    if len(updates) > MAX_BATCH:
        raise TooLarge("batch", len(updates), MAX_BATCH, "updates")
    seen: set[str] = set()
    for at, each in enumerate(updates):
        if each.id in seen:
            raise InvalidInput(f"[{at}].id", "is in the batch twice", hint="Combine the two changes")
        seen.add(each.id)


def check_schemas(names: Iterable[str | None], guarded: GuardedSchemas | None, by: Principal) -> None:
    """Raise AccessDenied for a schema name that is guarded from the caller. None guards nothing."""
    if guarded is not None:
        for name in names:
            by.require_schema(name, guarded)


class WriteChecks:
    """Turns drafts and changes into checked records."""

    def __init__(self, embedder: Embedder | None, clock: Clock) -> None:
        self._embedder = embedder
        self._clock = clock

    def prepare_drafts(
        self, definitions: Definitions, drafts: Sequence[Draft], by: Principal, wall: int
    ) -> list[Prepared]:
        """Check drafts against the rights of the caller and the definitions of its owner."""
        now = from_micros(wall)
        prepared = []
        for at, draft in enumerate(drafts):
            try:
                if draft.schema_name in DEFINITIONS:
                    by.require("administer")
                check_definition(draft.schema_name, draft.context)
                rules = definitions.rules(draft.schema_name)
                prepared.append(prepare_draft(draft, rules, self._embedder, now, self._clock.new_id()))
                by.require_scopes(prepared[-1].scopes)
                by.require_tags(draft.tags)
            except InvalidInput as error:
                if len(drafts) > 1:
                    error.put_below(f"[{at}]")
                raise
        for each in prepared:
            each.as_of = definitions.as_of
        return prepared

    def prepare_changes(
        self,
        definitions: Definitions,
        updates: Sequence[Update],
        present: Sequence[Present],
        guarded: GuardedSchemas | None,
        by: Principal,
    ) -> list[Prepared]:
        """The next versions of breadcrumbs, checked."""
        prepared = []
        for at, (update, (before, vector)) in enumerate(zip(updates, present, strict=True)):
            try:
                prepared.append(self._prepare_change(definitions, before, update.change, vector, guarded, by))
            except InvalidInput as error:
                if len(updates) > 1:
                    error.put_below(f"[{at}]")
                raise
        return prepared

    def _prepare_change(
        self,
        definitions: Definitions,
        before: Breadcrumb,
        change: Change,
        vector: bytes | None,
        guarded: GuardedSchemas | None,
        by: Principal,
    ) -> Prepared:
        schema_name = before.schema_name if change.schema_name is msgspec.UNSET else change.schema_name
        context = before.context if change.context is msgspec.UNSET else change.context
        check_schemas((before.schema_name, schema_name), guarded, by)
        check_definition(schema_name, context)
        if schema_name != before.schema_name and {schema_name, before.schema_name} & DEFINITIONS:
            raise InvalidInput("schema_name", "of a definition cannot be changed", hint="Delete it and create another")
        prepared = prepare_change(before, change, definitions.rules(schema_name), self._embedder, vector)
        prepared.as_of = definitions.as_of
        return prepared

    async def embed(self, prepared: Sequence[Prepared]) -> None:
        """Embed the texts. A few are embedded in this thread, which is faster than waking another one; more are
        embedded in another thread."""
        if sum(each.text is not None for each in prepared) <= INLINE_TEXTS:
            embed_all(prepared, self._embedder)
        else:
            await asyncio.get_running_loop().run_in_executor(None, embed_all, prepared, self._embedder)


def fresh_copy(prepared: Prepared, written: Breadcrumb) -> Breadcrumb:
    """A fresh copy of a record that was just written, so that one reader's changes do not affect the others."""
    own = as_breadcrumb(prepared, owner_id=written.owner_id, agent_id=written.created_by, now=written.created_at)
    return msgspec.structs.replace(own, context=_decode(prepared.context))
