"""An answer that is kept, and the kept answers by what was found for their questions: a question that finds the same,
and says it in words that are loosely the same, wants the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from clew.clock import Clock
from clew.knowledge.resolving.loosely import are_alike, are_loosely_the_same
from clew.knowledge.resolving.phrases import Intent, Target

MAX_FOUND = 2_000
MAX_TOGETHER = 20
"""So many answers are looked at for each thing that a question finds."""

Kind = tuple[Target, Intent]


class Kept(msgspec.Struct, kw_only=True):
    """An answer with the question that it was given to, who may see it, and what it rests on: `files` by their hashes,
    a `version` of all that is known. `found` are the ids of what was found for it, the best first."""

    question: str
    value: Any
    created_at: datetime
    expires_at: datetime | None
    files: Mapping[str, str] = {}
    audience: str = ""
    session_id: str = ""
    version: str = ""
    found: tuple[str, ...] = ()
    hit_count: int = 0


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an answer belongs: only a question of the same kind, audience and session gets it."""

    kind: Kind
    audience: str = ""
    session_id: str = ""


Key = tuple[Place, str]


class KeptByFinding:
    """At most MAX_FOUND answers, the oldest giving way; of those whose questions found one and the same thing, the
    newest MAX_TOGETHER are looked at. For use from one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[Key, Kept] = {}
        self._finders: dict[tuple[Place, str], dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def put(self, place: Place, kept: Kept) -> None:
        """Keep an answer; one to a question for which nothing was found is not kept."""
        if not kept.found:
            return
        key = (place, kept.question)
        self._remove(key)
        self._answers[key] = kept
        for found in kept.found:
            self._finders.setdefault((place, found), {})[key] = None
        while len(self._answers) > MAX_FOUND:
            self._remove(next(iter(self._answers)))

    def find(self, question: str, place: Place, found: Sequence[str], version: str) -> Kept | None:
        """The answer to a question that found the same and is loosely the same. What holds no longer is forgotten on
        the way."""
        for key in self._candidates(place, found):
            kept = self._answers[key]
            if not self._holds(kept, version):
                self._remove(key)
            elif are_alike(found, kept.found) and are_loosely_the_same(question, kept.question, place.kind[1]):
                return kept
        return None

    def forget(self, is_gone: Callable[[Kept], bool]) -> None:
        """Remove the answers of which this is true."""
        for key in [key for key, kept in self._answers.items() if is_gone(kept)]:
            self._remove(key)

    def _candidates(self, place: Place, found: Sequence[str]) -> list[Key]:
        """Those that found one of the same, the newest first for each."""
        newest = [islice(reversed(self._finders.get((place, each), {})), MAX_TOGETHER) for each in found]
        return list(dict.fromkeys(key for keys in newest for key in keys))

    def _holds(self, kept: Kept, version: str) -> bool:
        return kept.version == version and (kept.expires_at is None or kept.expires_at > self._clock.now())

    def _remove(self, key: Key) -> None:
        kept = self._answers.pop(key, None)
        for found in dict.fromkeys(kept.found) if kept is not None else ():
            finders = self._finders[key[0], found]
            del finders[key]
            if not finders:
                del self._finders[key[0], found]
