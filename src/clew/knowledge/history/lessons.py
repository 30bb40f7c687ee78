"""Lessons: mistakes with their fixes, and preferences of the user. All sessions of an owner share them. A preference is
explicit, learned from accepted and rejected suggestions, or set for one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput
from clew.knowledge.text import coverage, stems
from clew.knowledge.upsert import put_keyed
from clew.secrecy import mask_keys
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MISTAKE, PREFERENCE = "mistake.v1", "preference.v1"
FIRST_CONFIDENCE, CONFIDENCE_STEP, MOST_CONFIDENCE = 0.7, 0.05, 0.95
ACCEPTED_FIRST, ACCEPTED_AGAIN, REJECTED = 0.6, 0.1, 0.2
MAX_EVIDENCE = 50
_CANDIDATES = 50
_COVERED = 0.6
_SHORT, _SHARED_SHORT, _SHARED = 3, 2, 3
"""A plan repeats a mistake when it shares this part of the words, and this number: fewer for a short pattern."""

Response = Literal["accepted", "rejected"]
PreferenceKind = Annotated[str, msgspec.Meta(description="of what kind, for example indentation")]
_Edit = Callable[[dict[str, Any]], dict[str, Any]]


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake. `pattern` describes the attempt; `confidence` is from 0 to 1 and grows with each report."""

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


class Mistakes:
    """The mistakes that one principal reports and is warned of. Calls raise the errors of the trail."""

    def __init__(self, trail: Trail, by: Principal, clock: Clock) -> None:
        self._trail, self._by, self._clock = trail, by, clock

    async def report_mistake(
        self,
        pattern: Annotated[str, msgspec.Meta(description="the attempt")],
        error: Annotated[str, msgspec.Meta(description="the failure")],
        fix: Annotated[str, msgspec.Meta(description="what to do instead")],
        context: str = "",
        tags: Sequence[str] = (),
    ) -> Mistake:
        """Record a mistake for all sessions. Reporting it again raises its confidence.

        The latest error and fix replace the earlier ones, tags add up. Raises InvalidInput for an empty part.
        """
        for field, text in (("pattern", pattern), ("error", error), ("fix", fix)):
            if not text.strip():
                raise InvalidInput(field, "is empty")
        now = self._clock.now().isoformat()
        given = {"pattern": pattern, "error": error, "fix": fix, "context": context}
        report = {field: mask_keys(text.strip()) for field, text in given.items()}
        unseen = {"context": "", "tags": [], "occurrences": 0, "created_at": now}

        def edit(was: dict[str, Any]) -> dict[str, Any]:
            count = was["occurrences"] + 1
            confidence = round(min(MOST_CONFIDENCE, FIRST_CONFIDENCE + CONFIDENCE_STEP * (count - 1)), 2)
            kept = {"context": report["context"] or was["context"], "tags": list(dict.fromkeys([*was["tags"], *tags]))}
            return {**was, **report, **kept, "occurrences": count, "confidence": confidence, "last_seen_at": now}

        draft = Draft(title=report["pattern"][:200], schema_name=MISTAKE, context=edit(unseen))
        key = f"mistake:{' '.join(sorted(stems(pattern))) or pattern.strip()}"
        found = await put_keyed(self._trail, key, draft, lambda was: Change(context=edit(was.context)), by=self._by)
        return _to_mistake(found)

    async def check_mistakes(
        self, approach: Annotated[str, msgspec.Meta(description="the plan, in a sentence")]
    ) -> list[Mistake]:
        """Check whether a plan was a mistake before, and show what to do instead.

        The most certain mistakes come first. Raises InvalidInput for an empty plan.
        """
        if not approach.strip():
            raise InvalidInput("approach", "is empty")
        request = SearchRequest(text=approach[:4_000], selector=Selector(schema_name=MISTAKE), limit=_CANDIDATES)
        hits = (await self._trail.index.search(request, by=self._by)).hits
        found = [mistake for mistake in (_to_mistake(hit.breadcrumb) for hit in hits) if _is_like(approach, mistake)]
        return sorted(found, key=lambda mistake: (-mistake.confidence, -mistake.occurrences))


def _is_like(approach: str, mistake: Mistake) -> bool:
    planned, known = stems(approach), stems(mistake.pattern)
    needed = min(_SHARED_SHORT if len(known) <= _SHORT else _SHARED, len(known))
    return len(planned & known) >= needed > 0 and coverage(planned, known) >= _COVERED


def _to_mistake(breadcrumb: Breadcrumb) -> Mistake:
    return msgspec.convert({**breadcrumb.context, "id": breadcrumb.id}, Mistake)


class Inferred(msgspec.Struct, frozen=True, kw_only=True):
    """A preference learned from responses. `confidence` is from 0 to 1; the latest `evidence` comes last."""

    value: str
    confidence: float
    evidence: tuple[str, ...]
    observed_at: datetime


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """Preferences by category. `session_overrides` are those of the session that asked."""

    explicit: dict[str, str]
    implicit: dict[str, Inferred]
    session_overrides: dict[str, str]

    def effective(self, category: str) -> str | None:
        """The override of the session, else the explicit value, else the learned one if its confidence is above 0."""
        inferred = self.implicit.get(category)
        learned = inferred.value if inferred is not None and inferred.confidence > 0 else None
        return self.session_overrides.get(category, self.explicit.get(category, learned))


class UserPreferences:
    """The preferences of one owner, as one session sees them. Calls raise the errors of the trail."""

    def __init__(self, trail: Trail, by: Principal, clock: Clock, session_id: str = "") -> None:
        self._trail, self._by, self._clock, self._session = trail, by, clock, session_id

    async def get_preferences(
        self, category: Annotated[str, msgspec.Meta(description="only of this kind")] = "all"
    ) -> Preferences:
        """List the user's preferences: explicit, learned, and of this session."""
        found = Preferences(explicit={}, implicit={}, session_overrides={})
        async for record in each_record(self._trail, Selector(schema_name=PREFERENCE), by=self._by):
            name, context = record.context["category"], record.context
            if category not in ("", "all", name) or record.session not in (None, self._session):
                continue
            if context.get("explicit") is not None:
                values = found.explicit if record.session is None else found.session_overrides
                values[name] = context["explicit"]
            if context.get("implicit") is not None:
                found.implicit[name] = msgspec.convert(context["implicit"], Inferred)
        return found

    async def set_preference(
        self,
        category: PreferenceKind,
        preference: Annotated[str, msgspec.Meta(description="what the user wants")],
        *,
        for_session: Annotated[bool, msgspec.Meta(description="only until this session ends")] = False,
    ) -> str:
        """Remember what the user prefers. Only what the user said: do not guess.

        Returns the category and how long it holds. Raises InvalidInput for an empty text, or without a session.
        """
        name, value = _checked("category", category), _checked("preference", preference)
        if for_session and not self._session:
            raise InvalidInput("for_session", "needs a session")
        await self._put(name, lambda was: {**was, "category": name, "explicit": value}, in_session=for_session)
        return f"{name}, for this session" if for_session else f"{name}, for all sessions"

    async def learn(
        self,
        category: PreferenceKind,
        suggestion: Annotated[str, msgspec.Meta(description="the value that was suggested")],
        response: Annotated[Response, msgspec.Meta(description="the user's response")],
    ) -> Preferences:
        """Learn from the user's response to a suggestion: the first acceptance counts 0.6, each further one 0.1 more, a
        rejection 0.2 less.

        Accepting another value starts anew; rejecting an unknown one changes nothing.
        """
        name, value = _checked("category", category), _checked("suggestion", suggestion)
        now = self._clock.now()

        def learned(was: dict[str, Any]) -> dict[str, Any]:
            known = msgspec.convert(was["implicit"], Inferred) if was.get("implicit") else None
            after = _learn(known, value, response, now)
            return {**was, "category": name, "implicit": msgspec.to_builtins(after) if after else None}

        await self._put(name, learned)
        return await self.get_preferences(name)

    async def _put(self, name: str, edit: _Edit, *, in_session: bool = False) -> None:
        session = self._session if in_session else ""
        draft = Draft(
            title=f"Preference {name}"[:200],
            schema_name=PREFERENCE,
            context=edit({}),
            tags=(f"session:{session}",) if session else (),
            embed="never",
        )

        def change(present: Breadcrumb) -> Change | None:
            wanted = edit(present.context)
            return Change(context=wanted, embed="never") if wanted != present.context else None

        await put_keyed(self._trail, f"preference:{session}:{name}", draft, change, by=self._by)


def _learn(known: Inferred | None, suggestion: str, response: Response, now: datetime) -> Inferred | None:
    """The learned preference after a response."""
    is_known = known is not None and known.value == suggestion
    if response == "rejected":
        if known is None or not is_known:
            return known
        return msgspec.structs.replace(
            known, confidence=round(max(known.confidence - REJECTED, 0.0), 6), observed_at=now
        )
    before = known if is_known and known is not None else None
    confidence = round(min(before.confidence + ACCEPTED_AGAIN, 1.0), 6) if before else ACCEPTED_FIRST
    evidence = (*(before.evidence if before else ()), f"accepted: {suggestion}")[-MAX_EVIDENCE:]
    return Inferred(value=suggestion, confidence=confidence, evidence=evidence, observed_at=now)


def _checked(field: str, text: str) -> str:
    if not text.strip():
        raise InvalidInput(field, "is empty")
    return mask_keys(text.strip())
