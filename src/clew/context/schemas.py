"""Display settings of schema definitions: hints, section, and whether semantic search covers them. They are read again
after an event that changed one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.definitions import SCHEMA
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.templates.hints import apply_hints, resolve_hints

MAX_DEFINITIONS = 1_000
MAX_OWNERS = 100
_DEFINITIONS = Selector(schema_name=SCHEMA)


class SchemaView(msgspec.Struct, frozen=True, kw_only=True):
    """The display settings of one schema."""

    hints: dict[str, Any] | None = None
    section: str = ""
    is_found: bool = True


_PLAIN = SchemaView()


class Schemas(msgspec.Struct, frozen=True):
    """The definitions of one owner as of the event `seq`. `changed` is the newest event that changed one."""

    shown: Mapping[str, SchemaView]
    seq: int
    changed: int

    def of(self, schema_name: str | None) -> SchemaView:
        return self.shown.get(schema_name or "", _PLAIN)

    def view(self, breadcrumb: Breadcrumb) -> dict[str, Any]:
        """Return the content for a model, after applying the breadcrumb's own hints, else those of its schema. If the
        hints fail, the result is an error message, because they may hide content."""
        hints = resolve_hints(breadcrumb.llm_hints, self.of(breadcrumb.schema_name).hints)
        try:
            return apply_hints(breadcrumb.context, hints, title=breadcrumb.title)
        except InvalidInput as error:
            return {"problem": f"its content cannot be shown: {error.message}"}

    @property
    def machinery(self) -> tuple[str, ...]:
        """The schemas that semantic search does not cover, sorted by name."""
        return tuple(sorted(name for name, shown in self.shown.items() if not shown.is_found))


class SchemaCache:
    """A cache of the definitions of each owner, valid until an event changes one."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._known: dict[str, Schemas] = {}

    async def read(self, *, by: Principal) -> Schemas:
        """Return the current definitions. Only those without scopes count, as for the trail itself."""
        known = self._known.get(by.owner_id)
        if known is not None and known.seq == await self._trail.log.head():
            return known
        events, seq = await self._trail.log.read(
            known.seq if known is not None else await self._trail.log.head(), by=by, selector=_DEFINITIONS, limit=1
        )
        if known is not None and not events:
            found = msgspec.structs.replace(known, seq=seq)
        else:
            found = await self._read_anew(by)
        if len(self._known) >= MAX_OWNERS:
            self._known.clear()
        self._known[by.owner_id] = found
        return found

    async def _read_anew(self, by: Principal) -> Schemas:
        seq = await self._trail.log.head()
        page = await self._trail.records.list(_DEFINITIONS, by=by, limit=MAX_DEFINITIONS, oldest_first=True)
        shown = dict(_shown_by(each.context) for each in page.items if not each.scopes)
        return Schemas(shown, seq, seq)


def _shown_by(context: Mapping[str, Any]) -> tuple[str, SchemaView]:
    section = context.get("section")
    return str(context.get("schema_name")), SchemaView(
        hints=context.get("llm_hints"),
        section=section if isinstance(section, str) else "",
        is_found=context.get("embed", "auto") == "auto",
    )
