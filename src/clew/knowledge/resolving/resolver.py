"""From a question to an answer with its sources, by the cheapest way that will do: an answer that is kept, what the
three domains hold, and a model only for what has to be put into words.

Every answer leaves a breadcrumb: which of the three it was, how long it took, what it cost and what it rests on. Where
a model fails, is late or cites nothing, the sources speak for themselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.errors import InvalidInput, ModelError
from clew.knowledge.evidence.conflicts import Conflict, detect
from clew.knowledge.evidence.firewall import Ground, examine
from clew.knowledge.evidence.prompt import build_trust_prompt, parse_response
from clew.knowledge.evidence.provenance import annotate
from clew.knowledge.evidence.trust import Evidence, evidence_of, fitting
from clew.knowledge.resolving.answers import (
    NOTHING,
    Resolved,
    build_answer,
    cited_sources,
    extracted,
    for_now,
    told_no_use,
    told_uses,
    with_warnings,
)
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.finding import Code, Finder
from clew.knowledge.resolving.intents import Classified
from clew.knowledge.resolving.kept import Kept
from clew.knowledge.resolving.past import Past, ReadChanges
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.routing import Router
from clew.knowledge.resolving.states import States, audience_of
from clew.knowledge.resolving.uses import (
    find_assigned,
    find_imports,
    find_used,
    find_uses,
    read_use_question,
    tell_near,
    tell_unknown,
)
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import AsFound, Truth
from clew.llm.messages import Message
from clew.llm.requests import Model, ModelRequest
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Draft, Ttl
from clew.trail.kinds import NodeDomain, Trust
from clew.trail.nodes import UNVERIFIED, Node, ScoredNode
from clew.trail.store import Trail

Hashes = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""The present contents of files, by path; one that is gone is left out."""

SCHEMA = "system.answer.v1"
SHOWN_USES = 10
MOST_CONFLICTS = 3
MAX_QUESTION = 4_000
GOOD, ENOUGH = 0.8, 2
"""So many sources of more than this quality answer a question by themselves."""
MODEL_SECONDS = 30.0
"""So long a model may take to put an answer into words."""
KEPT = timedelta(days=90)
"""So long the breadcrumbs of answers stay."""


class Resolver:
    """Answers questions from the shelves. `ground` is what the words of a model are held against, `hashes` tells
    whether a kept answer about code still holds, `code` has the edges that tell what uses what, and `truth` holds
    what is found against the files that it tells of."""

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
        code: Code | None = None,
        changes: ReadChanges | None = None,
        truth: Truth | None = None,
    ) -> None:
        self._truth = truth or AsFound()
        self._trail = trail
        self._clock = clock
        self._shelves = shelves
        self._router = router
        self.cache = cache
        self._model = model
        self._ground = ground
        self._hashes = hashes
        self._code = code
        self._finder = Finder(trail, shelves, code)
        self._past = Past(trail, clock, shelves, changes, self._truth)
        self._states = States(trail, code)

    async def resolve(self, question: str, *, by: Principal, session_id: str = "") -> Resolved:
        """The answer, always with its sources. Raises InvalidInput for an empty or endless question."""
        by.require("read")
        _check(question)
        began = time.perf_counter()
        what = await self._router.route(question)
        found = await self._tell_uses(question, what, by)  # quicker than to find out whether a kept one still holds
        found = found or await self._past.tell(question, what, by=by)
        if found is None:
            state = await self._states.read(by)
            found = await self._recall(question, what, by, session_id, state)
            found = found or await self._work_out(question, what, by, session_id, state)
        if found.status == "no_matches" and self._code is not None and not self._code.is_whole:
            found = for_now(found)
        answer = msgspec.structs.replace(
            found,
            tokens=found.tokens + what.tokens,
            latency_ms=round(1_000 * (time.perf_counter() - began), 2),
        )
        await self._leave_trace(answer, what, by, session_id)
        return answer

    async def _recall(
        self, question: str, what: Classified, by: Principal, session_id: str, state: str
    ) -> Resolved | None:
        kept = self.cache.get(question, what, audience=audience_of(by), session_id=session_id, version=state)
        return await self._again(question, kept)

    async def _again(self, question: str, kept: Kept | None) -> Resolved | None:
        """A kept answer as that to another question; None where it no longer holds."""
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

    async def _work_out(self, question: str, what: Classified, by: Principal, session_id: str, state: str) -> Resolved:
        found = await self._truth.hold(lambda: self._finder.find(question, what, by=by))
        now = self._clock.now()
        nodes = {each.node.id: each.node for each in found}
        chosen = fitting([evidence_of(each, now) for each in found])
        used = [nodes[each.id] for each in chosen]
        conflicts = detect(used, now, in_code=self._stands_in_code(by))[:MOST_CONFLICTS]
        if not chosen:
            near = await tell_near(self._code, question) if self._code is not None else ""
            return build_answer(question, what, near or NOTHING, "graph", status="no_matches")
        answer = extracted(question, what, chosen, used, conflicts)
        model = self._model if not suffices(what, chosen, conflicts) else None
        ids = [each.node.id for each in found] if model is not None else []
        place = {"audience": audience_of(by), "session_id": session_id, "version": state}
        if model is not None:
            kept = self.cache.get_found(question, what, found=ids, **place) if not conflicts else None
            again = await self._again(question, kept)
            if again is not None:
                return again
            answer = await self._put_into_words(answer, what, chosen, used, conflicts, model)
        if answer.is_verified and not conflicts and answer.is_worded is (model is not None):
            files = {node.path: node.content_hash for node in used if node.path and node.content_hash}
            self.cache.put(question, what, answer, files=files, found=ids, **place)
        return answer

    def _stands_in_code(self, by: Principal) -> Callable[[str], bool]:
        shelf = self._shelves.get(NodeDomain.CODE)
        return lambda name: shelf is not None and shelf.contains(name, by=by)

    async def _tell_uses(self, question: str, what: Classified, by: Principal) -> Resolved | None:
        """What uses what, where that is the question and the name is one of the code."""
        asked, shelf = read_use_question(question), self._shelves.get(NodeDomain.CODE)
        if asked is None or shelf is None or self._code is None:
            return None
        definitions = await find_used(shelf, asked, by=by)
        uses, now = await find_uses(self._code, asked, definitions), self._clock.now()
        if not uses and asked.edge_type == "imports" and asked.backwards:  # what has its name may be something else
            uses = await find_imports(self._code, asked)
        assigned = await find_assigned(self._code, asked.named.names[0]) if not definitions and not uses else []
        if assigned:
            shown = [evidence_of(ScoredNode(node=assigned[0], similarity=1.0), now)]
            return told_no_use(question, what, asked.only_assigned, assigned[0], shown)
        if not definitions and not uses:
            unknown = await tell_unknown(self._code, shelf, asked, by=by)
            return build_answer(question, what, unknown, "graph", status="no_matches") if unknown else None
        places = [use.place for use in uses[:SHOWN_USES]] or definitions[:1]
        shown = [evidence_of(ScoredNode(node=place, similarity=1.0), now) for place in places]
        if not uses:
            none = told_no_use(question, what, asked.none_found, definitions[0], shown)
            return none if self._code.is_current else for_now(none)
        return told_uses(question, what, asked, uses, shown)

    async def _put_into_words(
        self,
        plain: Resolved,
        what: Classified,
        chosen: Sequence[Evidence],
        used: Sequence[Node],
        conflicts: Sequence[Conflict],
        model: Model,
    ) -> Resolved:
        """The answer in the words of a model; the plain one, with the reason, where it cites no source."""
        prompt = mask_keys(build_trust_prompt(plain.question, chosen, conflicts))
        try:
            async with asyncio.timeout(MODEL_SECONDS):
                said = await model.answer(ModelRequest(messages=(Message(role="user", content=prompt),)))
        except (ModelError, TimeoutError) as error:
            return _unworded(plain, f"the model did not answer: {inline(str(error)) or 'it took too long'}")
        tokens = said.usage.input_tokens + said.usage.output_tokens
        tokens = tokens or count_tokens(prompt) + count_tokens(said.content)
        parsed = parse_response(said.content, chosen)
        if not parsed.sources:
            return _unworded(plain, "the model cited no source", tokens)
        content = mask_keys(said.content)
        files = [node.path for node in used if node.path]
        verdict = await examine(content, files, self._ground) if self._ground is not None else None
        is_verified = verdict is not None and verdict.verified and not parsed.unknown
        text = annotate(content, used, self._clock.now()).text
        answer = build_answer(
            plain.question,
            what,
            text if is_verified else f"{UNVERIFIED} {text}",
            "model",
            cited_sources(chosen, used),
            conflicts,
            is_verified=is_verified,
        )
        doubts = (
            *(verdict.warnings if verdict else ()),
            *(f"it cites [{n}], which is no source" for n in parsed.unknown),
        )
        return msgspec.structs.replace(with_warnings(answer, *doubts), is_worded=True, tokens=tokens)

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
        ttl = Ttl(kind="datetime", expires_at=self._clock.now() + KEPT)
        draft = Draft(title=title, schema_name=SCHEMA, context=context, tags=tags, ttl=ttl, embed="never")
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


def _unworded(plain: Resolved, problem: str, tokens: int = 0) -> Resolved:
    return msgspec.structs.replace(with_warnings(plain, problem), problem=problem, tokens=tokens)
