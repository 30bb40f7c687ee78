"""What the user likes: said outright, learned from what was accepted and rejected, or only for one session."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput
from clew.knowledge.history.keyed import put_keyed
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.bulk import each_record
from clew.trail.selector import Selector
from clew.trail.store import Trail

SCHEMA = "preference.v1"
FIRST, REINFORCED, DIMINISHED = 0.6, 0.1, 0.2
MAX_EVIDENCE = 50

Response = Literal["accepted", "rejected"]


class Inferred(msgspec.Struct, frozen=True, kw_only=True):
    """A preference learned from what the user did. `confidence` is from 0 to 1; `evidence` says why it is believed, the
    latest last."""

    value: str
    confidence: float
    evidence: tuple[str, ...]
    observed_at: datetime


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """Preferences by category. `session_overrides` are those of the session that asked."""

    explicit: dict[str, str] = {}
    implicit: dict[str, Inferred] = {}
    session_overrides: dict[str, str] = {}

    def effective(self, category: str) -> str | None:
        """What counts: the override of the session, then what was said, then what was learned and is still believed."""
        inferred = self.implicit.get(category)
        learned = inferred.value if inferred is not None and inferred.confidence > 0 else None
        return self.session_overrides.get(category, self.explicit.get(category, learned))


class UserPreferences:
    """The preferences of one owner, as one session sees them. Calls raise what the trail raises."""

    def __init__(self, trail: Trail, by: Principal, clock: Clock, session_id: str = "") -> None:
        self._trail, self._by, self._clock, self._session = trail, by, clock, session_id

    async def get_preferences(self, category: str = "all") -> Preferences:
        """All preferences, or those of one category."""
        explicit, implicit, overrides = {}, {}, {}
        for record in await self._records():
            name, context = record.context["category"], record.context
            if category not in ("", "all", name):
                continue
            if record.session is not None:
                overrides[name] = context["explicit"]
                continue
            if context.get("explicit") is not None:
                explicit[name] = context["explicit"]
            if context.get("implicit") is not None:
                implicit[name] = msgspec.convert(context["implicit"], Inferred)
        return Preferences(explicit=explicit, implicit=implicit, session_overrides=overrides)

    async def set_preference(self, category: str, preference: str, *, for_session: bool = False) -> None:
        """Keep what the user said, for good or only for this session. Raises InvalidInput for an empty text, or when
        there is no session."""
        name, value = _checked("category", category), _checked("preference", preference)
        if for_session and not self._session:
            raise InvalidInput("for_session", "there is no session")
        await self._put(name, lambda was: {**was, "category": name, "explicit": value}, in_session=for_session)

    async def learn(self, category: str, suggestion: str, response: Response) -> Preferences:
        """Learn from the answer to a suggestion: accepted at first is a confidence of 0.6, each time after that 0.1
        more up to 1; rejected is 0.2 less down to 0. Accepting something else begins anew; rejecting what was never
        accepted teaches nothing."""
        name, value = _checked("category", category), _checked("suggestion", suggestion)
        if response not in get_args(Response):
            raise InvalidInput("response", f"{response!r} is neither accepted nor rejected")
        now = self._clock.now()

        def learned(was: dict[str, Any]) -> dict[str, Any]:
            known = msgspec.convert(was["implicit"], Inferred) if was.get("implicit") else None
            after = judge(known, value, response, now)
            return {**was, "category": name, "implicit": msgspec.to_builtins(after) if after else None}

        await self._put(name, learned)
        return await self.get_preferences(name)

    async def _put(self, name: str, edit: Any, *, in_session: bool = False) -> None:
        session = self._session if in_session else ""
        draft = Draft(
            title=f"Preference {name}"[:200],
            schema_name=SCHEMA,
            context=edit({}),
            tags=(f"session:{session}",) if session else (),
            embed="never",
        )

        def change(present: Breadcrumb) -> Change | None:
            wanted = edit(present.context)
            return Change(context=wanted, embed="never") if wanted != present.context else None

        await put_keyed(self._trail, f"preference:{session}:{name}", draft, change, by=self._by)

    async def _records(self) -> list[Breadcrumb]:
        """Those for good, and those of this session."""
        wanted = each_record(self._trail, Selector(schema_name=SCHEMA), by=self._by)
        return [record async for record in wanted if record.session in (None, self._session)]


def judge(known: Inferred | None, suggestion: str, response: Response, now: datetime) -> Inferred | None:
    """What is believed after the answer to a suggestion."""
    is_known = known is not None and known.value == suggestion
    if response == "accepted":
        if known is None or not is_known:
            return Inferred(value=suggestion, confidence=FIRST, evidence=(f"accepted: {suggestion}",), observed_at=now)
        evidence = (*known.evidence, f"accepted: {suggestion}")[-MAX_EVIDENCE:]
        return msgspec.structs.replace(
            known, confidence=round(min(known.confidence + REINFORCED, 1.0), 6), evidence=evidence, observed_at=now
        )
    if known is None or not is_known:
        return known
    return msgspec.structs.replace(known, confidence=round(max(known.confidence - DIMINISHED, 0.0), 6), observed_at=now)


def _checked(field: str, text: str) -> str:
    if not text.strip():
        raise InvalidInput(field, "is empty")
    return mask_keys(text.strip())
