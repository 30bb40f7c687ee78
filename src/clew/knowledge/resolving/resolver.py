"""From a question to an answer with its sources, by the cheapest way that will do: an answer that is kept, what the
three domains hold, and a model only for what has to be put into words.

Every answer leaves a breadcrumb: which of the three it was, how long it took, what it cost and what it rests on.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.errors import InvalidInput
from clew.knowledge.evidence.conflicts import Conflict, detect
from clew.knowledge.evidence.firewall import Ground, examine
from clew.knowledge.evidence.naming import citation_of
from clew.knowledge.evidence.prompt import build_trust_prompt, parse_response
from clew.knowledge.evidence.provenance import annotate
from clew.knowledge.evidence.quality import Evidence, evidence_of, select
from clew.knowledge.evidence.trust import level_of
from clew.knowledge.resolving.cache import IntentCache, Kept
from clew.knowledge.resolving.intents import Classified
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.routing import Router
from clew.knowledge.searching import Shelves
from clew.llm.messages import Message
from clew.llm.requests import Model, ModelRequest
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Draft
from clew.trail.kinds import NodeDomain, Trust
from clew.trail.nodes import UNVERIFIED, Node, ScoredNode
from clew.trail.store import Trail

Layer = Literal["cache", "graph", "model"]
Hashes = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""The present contents of files, by path; one that is gone is left out."""

SCHEMA = "system.answer.v1"
LOOKED_AT = 10
SHOWN = 6
EXCERPT = 160
MAX_QUESTION = 4_000
GOOD, ENOUGH = 0.8, 2
"""So many sources of more than this quality answer a question by themselves."""
NOTHING = "Nothing that is known here answers that."

_HOMES = {Target.ARCHIVALIST: NodeDomain.HISTORY, Target.ACADEMIC: NodeDomain.ACADEMIC}


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an answer rests on: where it is, what it is, how far it is believed, and what a reader should know."""

    number: int
    id: str
    place: str
    name: str
    trust: str
    warning: str = ""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `status` is no_matches where nothing is known; then there is no source. `is_verified` says whether the
    text is what the sources say; what a model put into words and no check bore out is marked in the text as well."""

    question: str
    status: Literal["ok", "no_matches"]
    text: str
    layer: Layer
    target: Target
    intent: Intent
    subject: str
    sources: tuple[Source, ...] = ()
    conflicts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_verified: bool = True
    tokens: int = 0
    saved_tokens: int = 0
    latency_ms: float = 0.0


class Resolver:
    """Answers questions from the shelves. `ground` is what the words of a model are held against, `hashes` tells
    whether a kept answer about code still holds."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        shelves: Shelves,
        router: Router,
        cache: IntentCache,
        *,
        model: Model | None = None,
        ground: Ground | None = None,
        hashes: Hashes | None = None,
    ) -> None:
        self._trail = trail
        self._clock = clock
        self._shelves = shelves
        self._router = router
        self.cache = cache
        self._model = model
        self._ground = ground
        self._hashes = hashes

    async def resolve(self, question: str, *, by: Principal, session_id: str = "") -> Resolved:
        """The answer, always with its sources. Raises InvalidInput for an empty or endless question."""
        by.require("read")
        _check(question)
        began = time.perf_counter()
        what = await self._router.route(question)
        kept = await self._recall(question, what, by, session_id)
        found = kept or await self._work_out(question, what, by, session_id)
        answer = msgspec.structs.replace(found, latency_ms=round(1_000 * (time.perf_counter() - began), 2))
        await self._leave_trace(answer, what, by, session_id)
        return answer

    async def _recall(self, question: str, what: Classified, by: Principal, session_id: str) -> Resolved | None:
        kept = self.cache.get(question, what, session_id=_of(by, session_id))
        if kept is None:
            return None
        if not await self._still_holds(kept):
            self.cache.files_changed(list(kept.files))
            return None
        answer: Resolved = kept.value
        return msgspec.structs.replace(
            answer, question=question, layer="cache", tokens=0, saved_tokens=answer.tokens + answer.saved_tokens
        )

    async def _still_holds(self, kept: Kept) -> bool:
        if not kept.files:
            return True
        return self._hashes is not None and await self._hashes(list(kept.files)) == kept.files

    async def _work_out(self, question: str, what: Classified, by: Principal, session_id: str) -> Resolved:
        found = await self._search(question, what, by)
        now = self._clock.now()
        nodes = {each.node.id: each.node for each in found}
        chosen = select([evidence_of(each, now) for each in found])
        home = _HOMES.get(what.target)
        if home is not None:  # what was asked for comes before what is merely surer
            chosen.sort(key=lambda each: nodes[each.id].domain is not home)
        chosen = chosen[:SHOWN]
        used = [nodes[each.id] for each in chosen]
        conflicts = detect(used, now)
        if not chosen:
            return _answer(question, what, NOTHING, "graph", status="no_matches")
        if self._model is None or suffices(what, chosen, conflicts):
            answer = _extract(question, what, chosen, used, conflicts)
        else:
            answer = await self._put_into_words(question, what, chosen, used, conflicts, self._model)
        if answer.is_verified and not conflicts:
            files = {node.path: node.content_hash for node in used if node.path and node.content_hash}
            self.cache.put(question, what, answer, files=files, session_id=_of(by, session_id))
        return answer

    async def _search(self, question: str, what: Classified, by: Principal) -> list[ScoredNode]:
        """What the domain that the question is for has, and the others where it has little."""
        home = _HOMES.get(what.target, NodeDomain.CODE)
        order = [home, *(domain for domain in NodeDomain if domain is not home)]
        found: list[ScoredNode] = []
        for shelf in (self._shelves[domain] for domain in order if domain in self._shelves):
            await shelf.catch_up()
            if shelf.contains(question, by=by):
                found += await shelf.search(question, by=by, limit=LOOKED_AT)
            if what.intent is Intent.LOCATE and found:
                break
        return found

    async def _put_into_words(
        self,
        question: str,
        what: Classified,
        chosen: Sequence[Evidence],
        used: Sequence[Node],
        conflicts: Sequence[Conflict],
        model: Model,
    ) -> Resolved:
        prompt = mask_keys(build_trust_prompt(question, chosen, conflicts))
        said = await model.answer(ModelRequest(messages=(Message(role="user", content=prompt),)))
        parsed = parse_response(said.content, chosen)
        annotated = annotate(said.content, used, self._clock.now())
        files = [node.path for node in used if node.path]
        verdict = await examine(said.content, files, self._ground) if self._ground is not None else None
        is_verified = verdict is not None and verdict.verified and not parsed.unknown and bool(parsed.sources)
        warnings = [
            *(verdict.warnings if verdict else ()),
            *(f"it cites [{n}], which is no source" for n in parsed.unknown),
        ]
        tokens = count_tokens(prompt) + count_tokens(said.content)
        text = annotated.text if is_verified else f"{UNVERIFIED} {annotated.text}"
        answer = _answer(question, what, text, "model", _sources(chosen, used), conflicts, is_verified=is_verified)
        return msgspec.structs.replace(answer, warnings=(*answer.warnings, *warnings), tokens=tokens)

    async def _leave_trace(self, answer: Resolved, what: Classified, by: Principal, session_id: str) -> None:
        if not by.may("create"):
            return
        context: dict[str, Any] = {
            "question": mask_keys(answer.question[:500]),
            "layer": answer.layer,
            "latency_ms": answer.latency_ms,
            "tokens": answer.tokens,
            "saved_tokens": answer.saved_tokens,
            "status": answer.status,
            "is_verified": answer.is_verified,
            "target": answer.target.value,
            "intent": answer.intent.value,
            "subject": answer.subject,
            "confidence": what.confidence,
            "classified_by": what.by,
            "sources": [{"id": each.id, "place": each.place, "trust": each.trust} for each in answer.sources],
        }
        tags = [f"layer:{answer.layer}", *([f"session:{session_id}"] if session_id else [])]
        title = inline(mask_keys(answer.question), 120)
        draft = Draft(title=title, schema_name=SCHEMA, context=context, tags=tags, embed="never")
        await self._trail.records.create(draft, by=by)


def suffices(what: Classified, chosen: Sequence[Evidence], conflicts: Sequence[Conflict]) -> bool:
    """Whether the sources answer a question by themselves: where something is, always; anything else if at least ENOUGH
    of them are good, trusted and agreed upon."""
    if what.intent is Intent.LOCATE and what.target is Target.LIBRARIAN:
        return bool(chosen)
    if what.intent in (Intent.EXPLAIN, Intent.PATTERN) or conflicts:
        return False
    good = [each for each in chosen if each.score > GOOD and each.parts.trust >= Trust.RECENT]
    return len(good) >= ENOUGH


def _check(question: str) -> None:
    if not question.strip():
        raise InvalidInput("question", "is empty", hint="Ask in a few words what you want to know")
    if len(question) > MAX_QUESTION:
        raise InvalidInput("question", f"has over {MAX_QUESTION:,} characters", hint="Ask for one thing at a time")


def _of(by: Principal, session_id: str) -> str:
    """Whose answer it is: what one may see, another may not."""
    return "\n".join((by.owner_id, session_id, *sorted(by.scopes)))


def _extract(
    question: str, what: Classified, chosen: Sequence[Evidence], used: Sequence[Node], conflicts: Sequence[Conflict]
) -> Resolved:
    """An answer in the words of its sources."""
    sources = _sources(chosen, used)
    lines = [f"[{source.number}] {source.place}: {_gist(node)}" for source, node in zip(sources, used, strict=True)]
    return _answer(question, what, "\n".join(lines), "graph", sources, conflicts)


def _gist(node: Node) -> str:
    """What a node says, on one line; the mark of what is unverified stays."""
    parts = (
        (node.signature or node.name, node.content) if node.domain is NodeDomain.CODE else (node.content or node.name,)
    )
    shown = inline(mask_keys(" · ".join(dict.fromkeys(filter(None, parts)))[: EXCERPT * 4]), EXCERPT)
    return shown if not node.content.startswith(UNVERIFIED) or UNVERIFIED in shown else f"{UNVERIFIED} {shown}"


def _sources(chosen: Sequence[Evidence], used: Sequence[Node]) -> tuple[Source, ...]:
    return tuple(
        Source(
            number=number,
            id=node.id,
            place=citation_of(node),
            name=inline(mask_keys(node.name), EXCERPT),
            trust=level_of(each.parts.trust)[0],
            warning=each.warning or level_of(each.parts.trust)[1],
        )
        for number, (each, node) in enumerate(zip(chosen, used, strict=True), 1)
    )


def _answer(
    question: str,
    what: Classified,
    text: str,
    layer: Layer,
    sources: tuple[Source, ...] = (),
    conflicts: Sequence[Conflict] = (),
    *,
    status: Literal["ok", "no_matches"] = "ok",
    is_verified: bool = True,
) -> Resolved:
    return Resolved(
        question=question,
        status=status,
        text=text,
        layer=layer,
        target=what.target,
        intent=what.intent,
        subject=what.subject,
        sources=sources,
        conflicts=tuple(f"{each.description}; believe {each.resolution}" for each in conflicts),
        warnings=tuple(dict.fromkeys(each.warning for each in sources if each.warning)),
        is_verified=is_verified,
    )
