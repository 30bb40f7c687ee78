"""The context builder: seeds, graph walk, score, budget, sections, and a receipt for each item.

The builder has no rules for single schemas or agents: the agent's definition lists the sources, and the schema defines
the rendering. Building only reads, and the same trail gives the same bytes.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from clew.access import Principal
from clew.catalog.indexing.document_nodes import SCHEMA as RESOURCE_SCHEMA
from clew.clock import Clock
from clew.context.assembly import AssembledContext, ContextPart, assemble
from clew.context.definition import AgentDefinition, GraphSource
from clew.context.draft import ContextDraft
from clew.context.edges import bounded, plumbing
from clew.context.graph_cache import GraphCache
from clew.context.graph_paths import describe_path, is_linked_to_close, without_own
from clew.context.graph_walk import WIDER, ReachedBreadcrumb, walk
from clew.context.receipts import Receipt
from clew.context.relevance import question_of
from clew.context.rendering import Rendered, render
from clew.context.schemas import SchemaCache, Schemas
from clew.context.scoring import parts_of
from clew.context.sections import HEADING_TOKENS, NUMBER_TOKENS, section_for
from clew.context.selection import SHARES, TokenLimits
from clew.context.session_privacy import SessionPrivacy
from clew.context.sources import MissingSource, Seed, find_seeds
from clew.errors import ModelError, NotFound
from clew.knowledge.evidence.trust import quality
from clew.llm.tokens import count_tokens
from clew.skills.discovery.skill_records import DOMAIN as SKILLS
from clew.skills.lru_cache import LruCache
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG, find_request_id, lasting_tags, run_tag

CONTEXT_TAG = "agent:context"
SKILLS_TAG = f"domain:{SKILLS}"
DEFAULT_BUDGET = 50_000
"""The budget for an agent without a configured model."""
MAX_RENDERED = 64_000_000
"""The limit for the cache of rendered breadcrumbs, in characters."""


class ModelBudget(Protocol):
    """The model's properties that the builder needs."""

    @property
    def name(self) -> str: ...

    @property
    def budget_tokens(self) -> int: ...


class ModelLookup(Protocol):
    """Finds the model of an agent. `clew.llm.model.Models` implements it."""

    def for_agent(self, agent_id: str, model: str = "") -> tuple[Any, ModelBudget]:
        """Return the model of an agent. Raises ModelError if there is none."""
        ...


class ContextBuilder:
    """Builds contexts on one trail. Safe to use from several tasks."""

    def __init__(
        self, trail: Trail, models: ModelLookup | None, flow: Flow, clock: Clock, *, cache: GraphCache | None = None
    ) -> None:
        self.cache = cache or GraphCache(clock)
        self._trail = trail
        self._models = models
        self._flow = flow
        self._book = SchemaCache(trail)
        self._rendered: LruCache[tuple[str, str, int, int, int, bool], Rendered] = LruCache(
            MAX_RENDERED, lambda each: len(each.text) + 200
        )

    async def warm(self) -> None:
        """Load the modules and data of the first context, so that it does not have to wait."""
        count_tokens("")
        await self._trail.index.warm()

    async def build(
        self, trigger: Breadcrumb, agent: AgentDefinition, *, by: Principal, reply_tags: Sequence[str] = ()
    ) -> ContextDraft:
        """Return the context of an agent for a trigger. Nothing is written. The receipt lists required sources that are
        missing."""
        schemas = await self._book.read(by=by)
        hidden = self._hidden(schemas)
        question = question_of(trigger, schemas.view(trigger))
        seeds, missing = await find_seeds(
            self._trail, agent.context_sources, trigger, hidden, question=question, flow=self._flow, by=by
        )
        privacy = SessionPrivacy(self._trail, self._flow, trigger, by=by)
        unique = _once([seed for seed in seeds if await _is_open(seed, privacy)])
        walked = await self._walk(unique, agent.context_sources.graph, trigger, by)
        model, budget = await self._budget(agent, by)
        shares = {**SHARES, **agent.context_sources.shares}
        room = TokenLimits(total=budget, heading=HEADING_TOKENS, shares=shares)
        parts = [self._part(seed, None, schemas, room, trigger) for seed in unique]
        starts = {seed.breadcrumb.id: seed for seed in unique}
        parts += await self._reached(
            walked, starts, agent.context_sources.graph, schemas, room, trigger, hidden, privacy, by
        )
        assembled = assemble(parts, room)
        counts = dict(sorted(Counter(seed.origin for seed in unique).items()))
        return self._draft(trigger, agent, assembled, missing, counts, model, budget, reply_tags)

    def _hidden(self, schemas: Schemas) -> tuple[str, ...]:
        """Return the schemas that only an `always` source may add: Clew's internal records and definitions. Results of
        tools are useful only in their own session."""
        flow = self._flow
        own = (
            *(flow.context, flow.context_request, flow.request, flow.response, flow.error),
            *(flow.stopped, flow.workflow, flow.workflow_result),
        )
        return bounded((*plumbing(flow), *own, flow.agent, flow.tool, flow.tool_config, *schemas.machinery))

    async def _budget(self, agent: AgentDefinition, by: Principal) -> tuple[str, int]:
        """Return the name of the agent's model, and the token budget of a context for it."""
        name, budget = "", DEFAULT_BUDGET
        if self._models is not None:
            with contextlib.suppress(
                ModelError
            ):  # the call of the model reports it; a context can be shown without one
                asked = await self._configured(agent, by) or agent.model or ""
                _, info = self._models.for_agent(agent.agent_id, asked)
                name, budget = info.name, info.budget_tokens
        return name, min(budget, agent.context_sources.tokens or budget)

    async def _configured(self, agent: AgentDefinition, by: Principal) -> str:
        """Return the model in the agent's configuration; empty if it has none."""
        if not agent.llm_config_id:
            return ""
        try:
            found = (await self._trail.records.get(agent.llm_config_id, by=by)).context.get("model")
        except NotFound:
            return ""
        return found if isinstance(found, str) else ""

    async def _walk(
        self, seeds: Sequence[Seed], graph: GraphSource, trigger: Breadcrumb, by: Principal
    ) -> list[ReachedBreadcrumb]:
        if not graph.enabled or not graph.hops:
            return []
        starts = {seed.breadcrumb.id: seed.cost for seed in seeds}
        expand = self.cache.expander(self._trail, trigger.session, by=by)
        if trigger.schema_name == self._flow.message:
            expand = without_own(trigger.id, expand)
        return await walk(starts, expand, hops=graph.hops, limit=WIDER * graph.limit, costs=graph.costs)

    async def _reached(
        self,
        walked: Sequence[ReachedBreadcrumb],
        starts: Mapping[str, Seed],
        graph: GraphSource,
        schemas: Schemas,
        room: TokenLimits,
        trigger: Breadcrumb,
        hidden: Sequence[str],
        privacy: SessionPrivacy,
        by: Principal,
    ) -> list[ContextPart]:
        """Return the records that the walk found, nearest first, up to the limit or the budget."""
        parts: list[ContextPart] = []
        tokens = 0
        for each in walked:
            if len(parts) == graph.limit or tokens > room.total:
                break
            found = await self._find(each.id, by)
            if found is None or found.schema_name in hidden or found.created_at > trigger.updated_at:
                continue
            if _is_skill(found) or await privacy.hides(found):
                continue
            if self._is_of_other_session(found, trigger) and not is_linked_to_close(each, starts):
                continue
            seed = Seed(
                breadcrumb=found, origin="graph", reason=describe_path(each), cost=each.cost, section=graph.section
            )
            parts.append(self._part(seed, each, schemas, room, trigger))
            tokens += parts[-1].rendered.tokens
        return parts

    def _is_of_other_session(self, found: Breadcrumb, trigger: Breadcrumb) -> bool:
        """Whether a breadcrumb belongs to another session."""
        is_here = found.session is not None and found.session == trigger.session
        return found.schema_name in (self._flow.message, self._flow.answer) and not is_here

    async def _find(self, id: str, by: Principal) -> Breadcrumb | None:
        try:
            return await self._trail.records.get(id, by=by)
        except NotFound:
            return None

    def _part(
        self, seed: Seed, walked: ReachedBreadcrumb | None, schemas: Schemas, room: TokenLimits, trigger: Breadcrumb
    ) -> ContextPart:
        found = seed.breadcrumb
        is_trigger = seed.origin == "trigger"
        section = section_for(seed.origin, seed.section, schemas.of(found.schema_name).section)
        score = quality(parts_of(found, seed.similarity, seed.cost, trigger.updated_at))
        return ContextPart(
            breadcrumb=found,
            origin=seed.origin,
            reason=seed.reason,
            score=1.0 if is_trigger or seed.origin == "always" else score,
            section=section,
            rendered=self._render(
                found,
                schemas,
                room.item(section, is_pinned=is_trigger) - NUMBER_TOKENS,
                is_spoken=self._is_spoken(found, trigger),
            ),
            repeats=seed.repeats,
            hops=walked.hops if walked is not None else 0,
            path=walked.path if walked is not None else (),
        )

    def _is_spoken(self, found: Breadcrumb, trigger: Breadcrumb) -> bool:
        """Whether a breadcrumb is a message of the user who gets the answer. A message of somebody else in the session
        is data."""
        is_here = found.session == trigger.session and found.created_by == trigger.created_by
        return found.schema_name == self._flow.message and is_here

    def _render(self, breadcrumb: Breadcrumb, schemas: Schemas, cap: int, *, is_spoken: bool) -> Rendered:
        key = (breadcrumb.owner_id, breadcrumb.id, breadcrumb.version, schemas.changed, cap, is_spoken)

        def make() -> Rendered:
            return render(breadcrumb, schemas.view(breadcrumb), cap=cap, is_spoken=is_spoken)

        return self._rendered.find_or_make(key, make)

    def _draft(
        self,
        trigger: Breadcrumb,
        agent: AgentDefinition,
        assembled: AssembledContext,
        missing: Sequence[MissingSource],
        seeds: dict[str, int],
        model: str,
        budget: int,
        reply_tags: Sequence[str],
    ) -> ContextDraft:
        consumer = CONSUMER_TAG + agent.agent_id
        tags = (CONTEXT_TAG, consumer, *lasting_tags(trigger), run_tag(trigger.id), *reply_tags)
        origins = {item.origin for item in assembled.items}
        return ContextDraft(
            schema_name=self._flow.context,
            consumer_id=agent.agent_id,
            trigger=trigger,
            formatted_context=assembled.text,
            token_estimate=assembled.tokens,
            breadcrumb_count=len(assembled.items),
            sources_assembled=len(origins),
            budget=budget,
            model=model,
            receipt=Receipt(
                items=assembled.items,
                dropped=assembled.dropped,
                more_dropped=assembled.more_dropped,
                seeds=seeds,
                sections=assembled.sections,
                missing=tuple(missing),
            ),
            tags=tuple(dict.fromkeys(tags)),
            request_id=find_request_id(trigger),
            read=assembled.read,
        )


async def _is_open(seed: Seed, privacy: SessionPrivacy) -> bool:
    """Whether a seed may be shown: it is not the text of a skill, and search did not find it in a private session."""
    if seed.origin == "always":
        return True
    return not _is_skill(seed.breadcrumb) and not (seed.origin == "semantic" and await privacy.hides(seed.breadcrumb))


def _is_skill(found: Breadcrumb) -> bool:
    """Whether a breadcrumb is the text of a skill, which a model gets only by loading the skill."""
    return found.schema_name == RESOURCE_SCHEMA and SKILLS_TAG in found.tags


def _once(seeds: Sequence[Seed]) -> list[Seed]:
    """Merge duplicates: keep the seed of the first source, with the best similarity and cost of all."""
    found: dict[str, Seed] = {}
    for seed in seeds:
        first = found.setdefault(seed.breadcrumb.id, seed)
        if first is not seed:
            measured = [each for each in (first.similarity, seed.similarity) if each is not None]
            better = max(measured, default=None)
            cost = min(first.cost, seed.cost)
            found[seed.breadcrumb.id] = msgspec.structs.replace(first, similarity=better, cost=cost)
    return list(found.values())
