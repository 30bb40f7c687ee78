"""From a question to an answer with its sources: cache, typed handlers, hybrid search, and a model for wording only.

Every answer leaves a breadcrumb with the layer that gave it, its latency, its cost and its sources. If the model fails,
is late or cites nothing, the answer consists of the sources alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal, TypeVar

import msgspec

from clew.access import Principal
from clew.catalog.operations.answers import Cited
from clew.catalog.operations.text import inline
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, ModelError
from clew.knowledge.answering.finder import FoundSources, SourceFinder
from clew.knowledge.answering.question import ParsedQuestion, QuestionKind, parse_question
from clew.knowledge.answering.sources import cite
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.evidence.conflicts import SourceConflict, detect, record_conflicts
from clew.knowledge.evidence.firewall import Ground, examine
from clew.knowledge.evidence.prompt import ask_model, parse_response
from clew.knowledge.evidence.provenance import annotate
from clew.knowledge.evidence.trust import Evidence, evidence_of, fitting
from clew.knowledge.nodes.kinds import NodeDomain, TrustLevel
from clew.knowledge.nodes.node_store import SCHEMA as NODE_SCHEMA
from clew.knowledge.nodes.node_store import UNVERIFIED, Node
from clew.llm.requests import Model
from clew.secrecy import mask_keys
from clew.trail.model.breadcrumb import Draft, Ttl
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

Layer = Literal["cache", "graph", "model"]
SCHEMA = "system.answer.v1"
SCOPE = "clew:answer"
"""The scope of the breadcrumbs of answers. Callers do not have this scope unless they request it. So answers appear in
no search, and a question does not change the ranking of later ones."""
MAX_QUESTION = 4_000
MAX_CONFLICTS = 3
MODEL_SECONDS = 30.0
"""The longest that a model may take."""
GOOD, ENOUGH = 0.8, 2
"""The quality and number of sources that answer a question without a model."""
KEPT = timedelta(days=90)
"""The lifetime of the breadcrumbs of answers."""
TRACE_SECONDS = 0.5
"""The time for which breadcrumbs of answers are collected, so that no answer waits for their transactions."""
MAX_ENTRIES = 500
"""Answers in the cache."""
UNREADABLE = "(a question without readable characters)"
"""The title of the breadcrumb of such a question."""
_NODES = Selector(schema_name=NODE_SCHEMA)
T = TypeVar("T")
_log = logging.getLogger(__name__)
STILL_READING = "Not all files have been read yet: ask again in a moment."


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `items` are its citations, `notes` sentences about them; `text` is the answer in the words of a model,
    if a model was used. `is_verified` says whether the sources support the text, and `problem` why a model that was
    called did not answer. `more` counts sources beyond the citations."""

    question: str
    kind: QuestionKind
    layer: Layer
    items: tuple[Cited, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = ""
    more: int = 0
    is_verified: bool = True
    problem: str = ""
    tokens: int = 0
    saved_tokens: int = 0
    latency_ms: float = 0.0

    @property
    def status(self) -> Literal["ok", "no_matches"]:
        return "ok" if self.items or self.text else "no_matches"


class Resolver:
    """Answers questions about one folder. `ground_of` returns the facts that the claims of a model are checked against
    for a caller."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        code: CodeGraph,
        finder: SourceFinder,
        ground_of: Callable[[Principal], Ground],
        model: Model | None = None,
    ) -> None:
        self._trail, self._clock = trail, clock
        self._code, self._finder = code, finder
        self._model, self._ground_of = model, ground_of
        self.cache = AnswerCache[Resolved](trail)
        self._traces: list[tuple[Resolved, Principal, str]] = []
        """Answers whose traces are not written yet, each with its caller and the session."""
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    async def resolve(self, text: str, *, by: Principal, session_id: str = "") -> Resolved:
        """The answer with its sources. Raises InvalidInput for an empty or too long question."""
        by.require("read")
        _check(text)
        began = time.perf_counter()
        question = parse_question(text, self._clock.now())
        if question.asks_history:
            await self._finder.history.catch_up()
        state = await self._code.state()
        key = await self.cache.key(text, state, by, session_id)
        answer = self.cache.get(key)
        if answer is not None:
            known, state = state, await self._code.state({item.path for item in answer.items if item.path})
            if state != known:
                key, answer = await self.cache.key(text, state, by, session_id), None
        if answer is not None:
            answer = msgspec.structs.replace(
                answer, layer="cache", question=text, tokens=0, saved_tokens=answer.tokens + answer.saved_tokens
            )
        else:
            is_whole = self._code.is_whole
            answer = await self._work_out(question, text, state, is_whole, by)
            if is_whole and _is_lasting(answer, question):
                self.cache.put(key, answer)
        answer = msgspec.structs.replace(answer, latency_ms=round(1_000 * (time.perf_counter() - began), 2))
        if by.may("create"):
            self._traces.append((answer, by, session_id))
            self._writing = self._writing or asyncio.create_task(self._write_traces())
        return answer

    async def flush(self) -> None:
        """Wait until the traces of all answers are written."""
        if self._writing is not None:
            self._hurry.set()
            await asyncio.wait((self._writing,))
            self._hurry.clear()

    async def _work_out(
        self, question: ParsedQuestion, text: str, state: str, is_whole: bool, by: Principal
    ) -> Resolved:
        found = await self._finder.find(question, state, by=by)
        now = self._clock.now()
        nodes = {each.node.id: each.node for each in found.sources}
        chosen = fitting([evidence_of(each, now) for each in found.sources])
        used = [nodes[each.id] for each in chosen]
        conflicts = await self._conflicts(used, by)
        notes = [
            *found.notes,
            *(f"Sources disagree: {each.description}; believe {each.resolution}" for each in conflicts),
        ]
        if not found.sources and not is_whole:
            notes.append(STILL_READING)
        plain = Resolved(
            question=text,
            kind=question.kind,
            layer="graph",
            items=_with_uses(cite(chosen, used, question.text), found),
            notes=tuple(notes),
            more=found.more,
            is_verified=bool(found.sources) or is_whole,
        )
        if self._model is None or not chosen or suffices(question, chosen, conflicts, found):
            return plain
        return await self._with_words(plain, self._model, chosen, used, conflicts, by)

    async def _with_words(
        self,
        plain: Resolved,
        model: Model,
        chosen: Sequence[Evidence],
        used: Sequence[Node],
        conflicts: Sequence[SourceConflict],
        by: Principal,
    ) -> Resolved:
        """The answer in the words of a model, which the sources check; the plain answer if it fails or cites no
        source."""
        try:
            async with asyncio.timeout(MODEL_SECONDS):
                said, tokens = await ask_model(model, plain.question, chosen, conflicts)
        except (ModelError, TimeoutError) as error:
            return _unworded(plain, f"the model did not answer: {inline(str(error)) or 'it took too long'}")
        parsed = parse_response(said, chosen)
        if not parsed.sources:
            return _unworded(plain, "the model cited no source", tokens)
        verdict = await examine(said, [node.path for node in used if node.path], self._ground_of(by))
        is_verified = verdict.verified and not parsed.unknown
        unknown = (f"it cites [{number}], which is not a source" for number in parsed.unknown)
        return msgspec.structs.replace(
            plain,
            text=annotate(said, used) if is_verified else f"{UNVERIFIED} {annotate(said, used)}",
            layer="model",
            tokens=tokens,
            is_verified=is_verified,
            notes=(*plain.notes, *verdict.warnings, *unknown),
        )

    async def _conflicts(self, used: Sequence[Node], by: Principal) -> list[SourceConflict]:
        """Conflicts between sources, which are recorded. Code alone does not disagree."""
        if all(node.domain is NodeDomain.CODE for node in used):
            return []
        found = detect(used, self._clock.now(), in_code=self._code.contains)[:MAX_CONFLICTS]
        try:
            await record_conflicts(self._trail, found, by=by)
        except ClewError as error:
            _log.warning("conflicts between sources were not recorded: %s", error)
        return found

    async def _write_traces(self) -> None:
        """Write the traces of the next moment in one transaction for each caller, until there are none."""
        try:
            while self._traces:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TRACE_SECONDS):
                        await self._hurry.wait()
                traces, self._traces = self._traces, []
                await self._write(traces)
        finally:
            self._writing = None

    async def _write(self, traces: Sequence[tuple[Resolved, Principal, str]]) -> None:
        drafts: dict[Principal, list[Draft]] = {}
        for answer, by, session_id in traces:
            writer = msgspec.structs.replace(by, scopes=by.scopes | {SCOPE})
            drafts.setdefault(writer, []).append(self._trace(answer, session_id))
        for by, own in drafts.items():
            await self._create(own, by)

    async def _create(self, traces: Sequence[Draft], by: Principal) -> None:
        try:
            await self._trail.records.create_many(traces, by=by)
        except ClewError as error:  # such as a full or read-only disk
            if isinstance(error, InvalidInput) and len(traces) > 1:
                for each in traces:
                    await self._create([each], by)
            else:
                _log.warning("the traces of %d answers were not written: %s", len(traces), error)

    def _trace(self, answer: Resolved, session_id: str) -> Draft:
        context: dict[str, Any] = {
            "question": mask_keys(answer.question[:500]),
            "kind": answer.kind.value,
            "layer": answer.layer,
            "latency_ms": answer.latency_ms,
            "tokens": answer.tokens,
            "saved_tokens": answer.saved_tokens,
            "status": answer.status,
            "is_verified": answer.is_verified,
            "sources": [{"id": each.id, "place": each.place, "trust": each.trust} for each in answer.items],
        }
        tags = [f"layer:{answer.layer}", *([f"session:{session_id}"] if session_id else [])]
        title = inline(mask_keys(answer.question), 120) or UNREADABLE
        ttl = Ttl(kind="datetime", expires_at=self._clock.now() + KEPT)
        return Draft(
            title=title, schema_name=SCHEMA, context=context, tags=tags, scopes=(SCOPE,), ttl=ttl, embed="never"
        )


def suffices(
    question: ParsedQuestion,
    chosen: Sequence[Evidence],
    conflicts: Sequence[SourceConflict],
    found: FoundSources | None = None,
) -> bool:
    """Whether the sources answer a question without a model: always if it asks for a place, a use or a change;
    otherwise if at least ENOUGH of them are good, trusted and agree."""
    if question.kind is QuestionKind.CODE or (found is not None and found.is_listing):
        return bool(chosen)
    if question.kind is QuestionKind.EXPLAIN or conflicts:
        return False
    good = [each for each in chosen if each.score > GOOD and each.parts.trust >= TrustLevel.RECENT]
    return len(good) >= ENOUGH


def _unworded(plain: Resolved, problem: str, tokens: int = 0) -> Resolved:
    return msgspec.structs.replace(plain, problem=problem, tokens=tokens, notes=(*plain.notes, problem))


def _is_lasting(answer: Resolved, question: ParsedQuestion) -> bool:
    """Whether an answer holds until a file or a note changes. An answer that a new commit may change is looked up
    again, unless the question asks for history: then new commits clear the cache first."""
    is_of_log = not answer.items or any(item.commit for item in answer.items)
    return answer.is_verified and not answer.problem and (question.asks_history or not is_of_log)


def _with_uses(items: tuple[Cited, ...], found: FoundSources) -> tuple[Cited, ...]:
    """Citations with the texts of their uses."""
    return tuple(
        msgspec.structs.replace(item, text=found.texts[item.id]) if item.id in found.texts else item for item in items
    )


def _check(text: str) -> None:
    if not text.strip():
        raise InvalidInput("question", "is empty", hint="Ask in a few words what you want to know")
    if len(text) > MAX_QUESTION:
        raise InvalidInput("question", f"has over {MAX_QUESTION:,} characters", hint="Ask for one thing at a time")


# -- cache ---------------------------------------------------------------------------------------------------------


class AnswerCache(Generic[T]):
    """An LRU cache. A key is valid until a file changes or a node that the caller may see is written."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._answers: OrderedDict[str, T] = OrderedDict()
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()

    async def key(self, question: str, state: str, by: Principal, session_id: str) -> str:
        """The key of a question, asked now by a caller, in a state of the files."""
        words = " ".join(question.casefold().split()).strip(" ?.!")
        audience = "\n".join((by.owner_id, *sorted(by.scopes)))  # callers with the same owner and scopes see the same
        return "\0".join((words, audience, session_id, state, str(await self._newest(audience, by))))

    def get(self, key: str) -> T | None:
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def put(self, key: str, answer: T) -> None:
        self._answers[key] = answer
        while len(self._answers) > MAX_ENTRIES:
            self._answers.popitem(last=False)

    def clear(self) -> None:
        self._answers.clear()

    async def _newest(self, audience: str, by: Principal) -> int:
        """A position in the log after which no node that the caller may see was written, changed or removed."""
        head = await self._trail.log.head()
        looked, newest = self._seen.pop(audience, (head, head))
        if looked < head:
            events, _ = await self._trail.log.read(looked, by=by, selector=_NODES, limit=1)
            newest = head if events else newest
        self._seen[audience] = (head, newest)
        while len(self._seen) > MAX_ENTRIES:
            self._seen.popitem(last=False)
        return newest
