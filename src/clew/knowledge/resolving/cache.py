"""Answers kept by what was wanted and of what, so that the same question in other words is answered at once.

An answer is for those who may see the same, and holds for the state of what is known in which it was given: once code
or history are known otherwise, it is worked out anew. Beside that, how long it holds depends on the intent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from clew.clock import Clock
from clew.knowledge.resolving.aspects import are_at_odds, aspect_of
from clew.knowledge.resolving.intents import TRUSTED, Classified, asking_words
from clew.knowledge.resolving.kept import Kept, KeptByFinding, Kind, Place
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.rewording import reword
from clew.knowledge.resolving.subjects import EMPTY, MAX_WORDS, subject_key, subject_words
from clew.llm.semantic_cache import SemanticCache
from clew.trail.store import Embedder

BULK = 100
"""When more files change at once, all answers about code are forgotten."""
SIMILAR_ENOUGH, ALMOST_THE_SAME = 0.80, 0.95
MAX_ENTRIES = 2_000

LIFETIMES: dict[Kind, timedelta | None] = {
    (Target.LIBRARIAN, Intent.LOCATE): None,
    (Target.LIBRARIAN, Intent.PATTERN): timedelta(minutes=60),
    (Target.LIBRARIAN, Intent.EXPLAIN): timedelta(minutes=30),
    (Target.LIBRARIAN, Intent.GENERAL): timedelta(minutes=15),
    (Target.ARCHIVALIST, Intent.HISTORICAL): timedelta(minutes=60),
    (Target.ARCHIVALIST, Intent.ACTIVITY): timedelta(minutes=5),
    (Target.ARCHIVALIST, Intent.OUTCOME): timedelta(minutes=30),
    (Target.ARCHIVALIST, Intent.SIMILAR): timedelta(minutes=30),
    (Target.ARCHIVALIST, Intent.RESUME): timedelta(minutes=2),
    (Target.ARCHIVALIST, Intent.GENERAL): timedelta(minutes=15),
    (Target.ACADEMIC, Intent.GENERAL): timedelta(hours=24),
}
"""None holds for as long as nothing changes."""
BY_MEANING = frozenset(
    {
        (Target.LIBRARIAN, Intent.GENERAL),
        (Target.ARCHIVALIST, Intent.SIMILAR),
        (Target.ARCHIVALIST, Intent.GENERAL),
        (Target.ACADEMIC, Intent.GENERAL),
    }
)
"""Kept by the meaning of the whole question: it has no subject that would do."""
BY_FINDING = frozenset((Target.LIBRARIAN, intent) for intent in (Intent.PATTERN, Intent.EXPLAIN, Intent.GENERAL))
"""Kept by what was found for the question as well: a model may have put the answer into words."""
THRESHOLDS: dict[Kind, float] = {
    kind: SIMILAR_ENOUGH if kind in BY_MEANING else ALMOST_THE_SAME
    for kind in LIFETIMES
    if kind in BY_MEANING or kind[0] is Target.ARCHIVALIST
}
"""How near in meaning a question must be to a kept one. Of history, what has a subject is found by it or, failing that,
by being all but the same."""


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """How often an answer was there."""

    size: int
    hits: int
    misses: int
    invalidated: int

    @property
    def hit_rate(self) -> float:
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


Key = tuple[str, str, str, str]


class IntentCache:
    """Answers of one process, found by intent and subject, by meaning, or by what their questions find. For use from
    one thread."""

    def __init__(self, clock: Clock, embedder: Embedder | None = None) -> None:
        self._clock = clock
        self._kept: dict[Key, Kept] = {}
        self._by_finding = KeptByFinding(clock)
        self._similar: dict[Kind, SemanticCache] = {}
        if embedder is not None:
            self._similar = {
                kind: SemanticCache(embedder, clock, threshold=threshold, max_entries=MAX_ENTRIES)
                for kind, threshold in THRESHOLDS.items()
            }
        self._hits = self._misses = self._invalidated = 0

    def get(
        self, question: str, what: Classified, *, audience: str = "", session_id: str = "", version: str = ""
    ) -> Kept | None:
        """The answer, where one is kept for this audience and still holds. A question that was not understood for sure
        has none."""
        found = self._find(question, what, (audience, session_id, version))
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        found.hit_count += 1
        return found

    def get_found(
        self,
        question: str,
        what: Classified,
        *,
        found: Sequence[str],
        audience: str = "",
        session_id: str = "",
        version: str = "",
    ) -> Kept | None:
        """For a question that `get` has no answer to: that of one which found the same, where it is loosely the same
        and its answer is for this audience and still holds. `found` are the ids of what was found, the best first."""
        kind = (what.target, what.intent)
        if kind not in BY_FINDING or (kind not in BY_MEANING and what.confidence < TRUSTED):
            return None
        kept = self._by_finding.find(question, _place(kind, audience, session_id), found, version)
        if kept is not None:
            self._misses = max(0, self._misses - 1)  # that of `get`: a question counts once
            self._hits += 1
            kept.hit_count += 1
        return kept

    def put(
        self,
        question: str,
        what: Classified,
        value: Any,
        *,
        files: Mapping[str, str] | None = None,
        audience: str = "",
        session_id: str = "",
        version: str = "",
        found: Sequence[str] = (),
    ) -> None:
        """Keep an answer for those who may see the same: `audience` says who. `version` names the state that it tells
        of: another version is another answer. `found` are the ids of what was found for the question, the best first.
        One to a question that names nothing is not kept."""
        kind = (what.target, what.intent)
        if kind not in LIFETIMES or _names_nothing(question, what):
            return
        now, lifetime = self._clock.now(), LIFETIMES[kind]
        kept = Kept(
            question=question,
            value=value,
            created_at=now,
            expires_at=now + lifetime if lifetime is not None else None,
            files=dict(files or {}),
            audience=audience,
            session_id=session_id,
            version=version,
            found=tuple(found),
        )
        if kind in BY_FINDING:
            self._by_finding.put(_place(kind, audience, session_id), kept)
        if kind in self._similar:
            self._similar[kind].set(question, kept, ttl=lifetime)
        if kind not in BY_MEANING:
            self._keep(_key(question, what, audience, session_id), kept)

    def _keep(self, key: Key, kept: Kept) -> None:
        self._kept.pop(key, None)
        self._kept[key] = kept
        while len(self._kept) > MAX_ENTRIES:
            del self._kept[next(iter(self._kept))]

    def files_changed(self, changed: Iterable[str]) -> None:
        """Forget what rests on files that changed or are gone; after many changes at once, all that is about code."""
        paths = set(changed)
        is_bulk = len(paths) > BULK
        self._forget(
            [
                key
                for key, kept in self._kept.items()
                if key[0] == Target.LIBRARIAN and (is_bulk or _rests_on(kept, paths))
            ]
        )
        self._by_finding.forget(lambda kept: is_bulk or _rests_on(kept, paths))
        self._drop_similar(paths, everything=is_bulk)

    def history_grew(self) -> None:
        """Forget all that is about history: what was added may belong to any answer."""
        self._forget([key for key in self._kept if key[0] == Target.ARCHIVALIST])
        for (target, _), similar in self._similar.items():
            if target is Target.ARCHIVALIST:
                similar.clear()

    def report(self) -> CacheReport:
        similar = sum(self._similar[kind].size for kind in BY_MEANING if kind in self._similar)
        return CacheReport(
            size=len(self._kept) + similar, hits=self._hits, misses=self._misses, invalidated=self._invalidated
        )

    def _find(self, question: str, what: Classified, wanted: tuple[str, str, str]) -> Kept | None:
        """An answer to the question for an audience, in a session, at a version."""
        kind, (audience, session_id, version) = (what.target, what.intent), wanted
        if kind not in BY_MEANING:
            if what.confidence < TRUSTED:
                return None
            found = self._alive(_key(question, what, audience, session_id), version)
            if found is not None and not are_at_odds(reword(question), reword(found.question)):
                return found
        return self._find_similar(question, what, wanted)

    def _find_similar(self, question: str, what: Classified, wanted: tuple[str, str, str]) -> Kept | None:
        similar = self._similar.get((what.target, what.intent))
        hit = similar.get(question) if similar is not None else None
        if similar is None or hit is None or not are_about_the_same(question, hit.query, what.intent):
            return None
        kept: Kept = hit.value
        if (kept.audience, kept.session_id, kept.version) == wanted:
            return kept
        if (kept.audience, kept.session_id) == wanted[:2]:
            similar.delete(hit.query)
            self._invalidated += 1
        return None

    def _alive(self, key: Key, version: str) -> Kept | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        is_over = kept.expires_at is not None and kept.expires_at <= self._clock.now()
        if is_over or kept.version != version:
            self._forget([key])
            return None
        return kept

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._kept[key]
            self._invalidated += 1

    def _drop_similar(self, paths: set[str], *, everything: bool) -> None:
        similar = self._similar.get((Target.LIBRARIAN, Intent.GENERAL))
        for entry in similar.entries() if similar is not None else ():
            if everything or _rests_on(entry.value, paths):
                assert similar is not None
                similar.delete(entry.query)
                self._invalidated += 1


def _place(kind: Kind, audience: str, session_id: str) -> Place:
    """What is found by its subject is the same in every session."""
    return Place(kind=kind, audience=audience, session_id=session_id if kind in BY_MEANING else "")


def are_about_the_same(one: str, other: str, intent: Intent) -> bool:
    """Whether two questions that ask for one intent are about the same and want the same of it; near in meaning is not
    enough: the same sentence about another thing is near."""
    one, other = reword(one), reword(other)
    return _wanted(one, intent) == _wanted(other, intent) and not are_at_odds(one, other)


def _wanted(text: str, intent: Intent) -> tuple[str, str]:
    words = subject_words(text, asking_words(text, intent))
    return subject_key("_".join(words)), aspect_of(text)


def _names_nothing(question: str, what: Classified) -> bool:
    """Whether a question has no word that says what it is about, so that any other such question would be the same."""
    if what.intent is Intent.RESUME or what.time_scope or what.subject not in ("", EMPTY):
        return False
    question = reword(question)
    return not subject_words(question, asking_words(question, what.intent))


def _key(question: str, what: Classified, audience: str, session_id: str) -> Key:
    """The subject as it was understood; all else that tells the question from others is read off its words. What a
    session is asked to go on with is its own, however that is asked."""
    of_session = what.intent in (Intent.ACTIVITY, Intent.RESUME)
    question = reword(question)
    words = subject_words(question, asking_words(question, what.intent))
    is_read_off = what.by == "rules" and what.intent is not Intent.RESUME
    subject = "_".join(words[:MAX_WORDS]) if is_read_off and words else what.subject
    aspect = "" if what.intent is Intent.RESUME else f"{aspect_of(question)}|{subject_key('_'.join(words[MAX_WORDS:]))}"
    return (
        what.target,
        what.intent,
        subject_key(subject),
        f"{what.time_scope}:{aspect}:{session_id if of_session else ''}:{audience}",
    )


def _rests_on(kept: Kept, paths: set[str]) -> bool:
    return not paths.isdisjoint(kept.files)
