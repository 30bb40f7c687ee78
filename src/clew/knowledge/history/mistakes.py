"""Mistakes that were made once: what was tried, what went wrong, how to avoid it. An owner's sessions share them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput
from clew.knowledge.history.keyed import put_keyed
from clew.knowledge.history.wording import coverage, stems
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.query import SearchRequest
from clew.trail.selector import Selector
from clew.trail.store import Trail

SCHEMA = "mistake.v1"
FIRST_CONFIDENCE, CONFIDENCE_STEP, MOST_CONFIDENCE = 0.7, 0.05, 0.95
_CANDIDATES = 50
_COVERED = 0.6
_SHORT, _SHARED_SHORT, _SHARED = 3, 2, 3
"""An approach is one of the known ones when it shares this part of the words, and so many at least: fewer of a pattern
that is short."""


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """A known mistake. `pattern` is what was tried; confidence is from 0 to 1 and grows with each report."""

    id: str
    pattern: str
    error: str
    fix: str
    context: str = ""
    tags: tuple[str, ...] = ()
    confidence: float = FIRST_CONFIDENCE
    occurrences: int = 1
    created_at: datetime
    last_seen_at: datetime


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an approach has known issues, and which, the most certain first."""

    known_issues: bool
    safe_to_proceed: bool
    warnings: tuple[Mistake, ...] = ()


class Mistakes:
    """The mistakes that one principal reports and is warned of. Calls raise what the trail raises."""

    def __init__(self, trail: Trail, by: Principal, clock: Clock) -> None:
        self._trail, self._by, self._clock = trail, by, clock

    async def report_mistake(
        self, pattern: str, error: str, fix: str, context: str = "", tags: Sequence[str] = ()
    ) -> Mistake:
        """Remember a mistake. One that is told with the same words again counts once more; the latest telling of what
        went wrong and how to avoid it stays, and all tags do. Raises InvalidInput for a part that is empty."""
        for field, text in (("pattern", pattern), ("error", error), ("fix", fix)):
            if not text.strip():
                raise InvalidInput(field, "is empty")
        now = self._clock.now().isoformat()
        told = {"pattern": pattern, "error": error, "fix": fix, "context": context}
        masked = {field: mask_keys(text.strip()) for field, text in told.items()}
        first = {"confidence": FIRST_CONFIDENCE, "occurrences": 1, "created_at": now, "last_seen_at": now}
        draft = Draft(
            title=masked["pattern"][:200],
            schema_name=SCHEMA,
            context={**masked, "tags": list(dict.fromkeys(tags)), **first},
        )

        def again(present: Breadcrumb) -> Change:
            return Change(context=_told_again(present.context, masked, tags, now))

        key = f"mistake:{' '.join(sorted(stems(pattern))) or pattern.strip()}"
        return _to_mistake(await put_keyed(self._trail, key, draft, again, by=self._by))

    async def check_mistakes(self, approach: str) -> Check:
        """Whether what is planned was a mistake before. It is safe to proceed when nothing like it is known."""
        if not approach.strip():
            raise InvalidInput("approach", "is empty")
        request = SearchRequest(text=approach[:4_000], selector=Selector(schema_name=SCHEMA), limit=_CANDIDATES)
        hits = (await self._trail.index.search(request, by=self._by)).hits
        found = [mistake for mistake in (_to_mistake(hit.breadcrumb) for hit in hits) if _is_like(approach, mistake)]
        found.sort(key=lambda mistake: (-mistake.confidence, -mistake.occurrences))
        return Check(known_issues=bool(found), safe_to_proceed=not found, warnings=tuple(found))


def confidence_after(occurrences: int) -> float:
    """How sure a mistake is after so many reports."""
    return round(min(MOST_CONFIDENCE, FIRST_CONFIDENCE + CONFIDENCE_STEP * (occurrences - 1)), 2)


def _told_again(was: dict[str, Any], told: dict[str, str], tags: Sequence[str], now: str) -> dict[str, Any]:
    count = was["occurrences"] + 1
    kept = {"context": told["context"] or was["context"], "tags": list(dict.fromkeys([*was["tags"], *tags]))}
    counted = {"occurrences": count, "confidence": confidence_after(count), "last_seen_at": now}
    return {**was, **told, **kept, **counted}


def _is_like(approach: str, mistake: Mistake) -> bool:
    planned, known = stems(approach), stems(mistake.pattern)
    needed = min(_SHARED_SHORT if len(known) <= _SHORT else _SHARED, len(known))
    return len(planned & known) >= needed > 0 and coverage(planned, known) >= _COVERED


def _to_mistake(breadcrumb: Breadcrumb) -> Mistake:
    return msgspec.convert({**breadcrumb.context, "id": breadcrumb.id}, Mistake)
