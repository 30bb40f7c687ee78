"""`ask`: what the caller can do, and what is known. An answer always shows entry points, never hidden routes, and no
padding."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SCHEMA as RESOURCE_SCHEMA
from clew.catalog.indexing.resource_queries import find_resource
from clew.catalog.indexing.tool_index import TOOL_SCHEMA
from clew.catalog.operations.answer_layout import lay_out
from clew.catalog.operations.answers import (
    MAX_PER_DOMAIN,
    MAX_QUESTION,
    MORE,
    NOTHING_AT_ALL,
    CatalogAnswer,
    Known,
    Question,
)
from clew.catalog.operations.discovery import FOREIGN_TOOL_SCHEMA, Discovery, DomainHits
from clew.catalog.operations.markdown import render_answer
from clew.catalog.registry import DomainRegistry, EntryPoints
from clew.catalog.route import CatalogRoute, parse_route
from clew.clock import Clock
from clew.errors import InvalidInput, TooLarge
from clew.lazy_pattern import lazy_pattern
from clew.llm.tokens import estimate_tokens
from clew.secrecy import mask_keys
from clew.skills.exposure import Exposed, Exposure, Exposures
from clew.trail.model.breadcrumb import encode_canonical
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MIN_BUDGET, MAX_BUDGET = 300, 100_000
MAX_NAMED = 5
"""The maximum number of routes in a question that are looked up."""
_ROUTES = lazy_pattern(r"[a-z][a-z0-9-]*://(?:tools|resources)/[^\s\"'`<>()]+")
REMEMBERED = 500
CATALOG_SCHEMAS = (TOOL_SCHEMA, FOREIGN_TOOL_SCHEMA, RESOURCE_SCHEMA)

STILL_READING = "Local files are still being read: ask again in a moment for all of them."
NOTHING_CLOSE = (
    "Nothing here is close to that question. These are the entry points; rephrase, or start from one of them."
)
REPEATED = "You asked this before, and the answer is the same: follow its routes and their guidance instead of asking."


class Remembered(msgspec.Struct, frozen=True):
    """An answer and the position of the log when it was made."""

    answer: CatalogAnswer
    seq: int
    generation: int


class AskOperation:
    """Answers questions, with a cache of answers for each session."""

    def __init__(
        self, trail: Trail, registry: DomainRegistry, exposures: Exposures, discovery: Discovery, clock: Clock
    ) -> None:
        self._trail = trail
        self._registry = registry
        self._exposures = exposures
        self._discovery = discovery
        self._clock = clock
        self._answers: OrderedDict[tuple[str, ...], Remembered] = OrderedDict()

    async def ask(
        self,
        question: Question,
        *,
        by: Principal,
        reader: Principal,
        known: Known | None = None,
        hints: Sequence[str] = (),
    ) -> CatalogAnswer:
        """Return the answer to a checked question, with the given knowledge and hints, rendered as markdown.

        `reader` reads the catalog's records with the caller's scopes. Raises NotFound (a domain), HandleRefused.
        """
        exposure = await self._exposures.open(question.handle, by=by)
        key = _key(question, exposure.handle, by)
        repeated = await self._recall(key, reader)
        if repeated is not None:
            return _rendered(repeated, known or Known(), hints)
        seq, generation = await self._trail.log.head(), self._registry.generation
        found = await self._answer(question, exposure, by, reader)
        # the trail records the shown routes while the answer is rendered
        noting = asyncio.ensure_future(self._exposures.reveal(exposure, self._shown(question, found), by=by))
        await asyncio.sleep(0)
        answer = _rendered(found, known or Known(), hints)
        await noting
        self._answers[key] = Remembered(found, seq, generation)
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        return answer

    async def _answer(self, question: Question, exposure: Exposure, by: Principal, reader: Principal) -> CatalogAnswer:
        domains = self._domains(question, by)
        entries = [self._registry.entry_points(domain, by) for domain in domains]
        found = await self._discovery.find(question.query, domains, question.per_domain, by=reader)
        await self._add_named(question, found, entries, reader)
        is_relevant = any(each.relevance >= 1 for each in found.values())
        budget = question.budget - len(exposure.handle)
        described = _described(exposure) - {str(route) for route in _routes_in(question.query)}
        sections, cut = lay_out(entries, found, budget, is_relevant=is_relevant, described=described)
        hint = "" if is_relevant else NOTHING_CLOSE if domains else NOTHING_AT_ALL
        return CatalogAnswer(handle=exposure.handle, sections=sections, is_relevant=is_relevant, hint=hint, cut=cut)

    async def _add_named(
        self, question: Question, found: Mapping[str, DomainHits], entries: Sequence[EntryPoints], reader: Principal
    ) -> None:
        """Put the routes that a question spells out first, so that the answer always shows them."""
        known = {each.domain.name: each for each in entries}
        for route in _routes_in(question.query):
            if route.domain not in known:
                continue
            own = found[route.domain]
            if str(route) in known[route.domain]:
                own.put_tool_first(str(route))
            elif route.kind == "resources" and (record := await find_resource(self._trail, str(route), by=reader)):
                own.put_resource_first(record, question.per_domain)

    def _domains(self, question: Question, by: Principal) -> Sequence[Domain]:
        if question.domain is not None:
            return [self._registry.visible_domain(question.domain, by)]
        return self._registry.domains(by)

    async def _recall(self, key: tuple[str, ...], reader: Principal) -> CatalogAnswer | None:
        """The cached answer to the same question; None if there is none or the catalog has changed since."""
        known = self._answers.get(key)
        if known is None or known.generation != self._registry.generation:
            return None
        changes = Selector(schema_names=CATALOG_SCHEMAS)
        events, seq = await self._trail.log.read(known.seq, by=reader, selector=changes, limit=1)
        if events:
            return None
        self._answers[key] = Remembered(known.answer, max(seq, known.seq), known.generation)
        return msgspec.structs.replace(known.answer, is_repeated=True, hint=REPEATED)

    def _shown(self, question: Question, answer: CatalogAnswer) -> list[Exposed]:
        now, why = self._clock.now(), f"ask: {mask_keys(question.query)[:200]}"
        shown: list[Exposed] = []
        for section in answer.sections:
            routes = [*section.tools, *section.resources]
            shown += [
                Exposed(item=each.route, via="ask", why=why, since=now, tokens=estimate_tokens(each.description))
                for each in routes
            ]
            shown += [Exposed(item=route, via="ask", why=why, since=now) for route in section.folded]
        return shown


def _described(exposure: Exposure) -> set[str]:
    """The routes that earlier answers under this handle described. Routes that were only named have no tokens."""
    return {item for item, each in exposure.items.items() if each.via == "ask" and each.tokens}


def _routes_in(query: str) -> list[CatalogRoute]:
    """The first few routes that a question spells out."""
    found = []
    for text in _ROUTES.findall(query)[:MAX_NAMED]:
        with contextlib.suppress(InvalidInput):
            found.append(parse_route(text.rstrip(".,;:?!")))
    return found


def tell_awaiting(number: int) -> str:
    """A hint about things that wait for consent. Only the user learns how to agree to them."""
    things = "thing that this folder brings waits" if number == 1 else "things that this folder brings wait"
    return f"{number:,} {things} for the user's consent."


def _rendered(answer: CatalogAnswer, known: Known, hints: Sequence[str]) -> CatalogAnswer:
    """The whole answer with its markdown. An answer with citations always counts as relevant."""
    hint = "" if known.items and answer.hint == NOTHING_CLOSE else answer.hint
    more = f"{known.more:,} {MORE}"
    full = msgspec.structs.replace(
        answer,
        known=known.items,
        notes=[*known.notes, *([more] if known.more else [])],
        text=known.text,
        hint=" ".join(filter(None, (*reversed(hints), hint))),
        is_relevant=answer.is_relevant or bool(known.items),
    )
    markdown = render_answer(full)
    return msgspec.structs.replace(full, markdown=markdown, tokens=estimate_tokens(markdown))


def check_question(question: Question) -> None:
    if not question.query.strip():
        raise InvalidInput("query", "is empty", hint="Say in a few words what you want to do or know")
    if len(question.query) > MAX_QUESTION:
        raise TooLarge("query", len(question.query), MAX_QUESTION, "characters")
    encode_canonical(question.query, "query")
    if not 1 <= question.per_domain <= MAX_PER_DOMAIN:
        raise InvalidInput("per_domain", f"must be between 1 and {MAX_PER_DOMAIN}")
    if not MIN_BUDGET <= question.budget <= MAX_BUDGET:
        raise InvalidInput("budget", f"must be between {MIN_BUDGET} and {MAX_BUDGET:,} tokens")


def _key(question: Question, handle: str, by: Principal) -> tuple[str, ...]:
    """The cache key of a question: its words without case, spacing and the final mark."""
    words = " ".join(question.query.casefold().split()).strip(" ?.!")
    shape = (question.domain or "", str(question.per_domain), str(question.budget))
    return (by.owner_id, by.agent_id, *sorted(by.scopes), handle, words, *shape)
