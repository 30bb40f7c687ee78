"""Search over the domains of knowledge: one of them, all at once, or as much as a budget allows. What cannot be there
is not looked for, and every answer says where else there is something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.evidence.citations import citation_of
from clew.knowledge.evidence.trust import RankedNode, rank_by_freshness, trust_of
from clew.knowledge.membership import telling_words
from clew.knowledge.shelves import Shelf
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys
from clew.trail.kinds import NodeDomain
from clew.trail.node import UNVERIFIED, marked
from clew.trail.nodes import EVERY_NODE, NodeFilter

Status = Literal["ok", "no_matches"]
Thoroughness = Literal["quick", "moderate", "thorough"]
Shelves = Mapping[NodeDomain, Shelf]

PER_DOMAIN = 5
TOKEN_BUDGET = 1_000
ENOUGH: dict[Thoroughness, int] = {"quick": 3, "moderate": 8, "thorough": 20}
FIRST_BATCH, BATCH_GROWS, MOST_BATCHES = 3, 2, 10
KNOWN_SHARE = 0.5
"""A domain with this share of the words of a question has something on it."""
SNIPPET = 200


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One result as it is shown: `source` leads back to it, `warning` is what a reader should know."""

    id: str
    domain: str
    type: str
    name: str
    source: str
    score: float
    trust: int
    snippet: str
    warning: str = ""


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Results, best first, and the other domains that have something on the question; or a hint where there is
    nothing."""

    status: Status
    results: tuple[Finding, ...] = ()
    hint: str = ""
    also_exists_in: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


class AllAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer for each domain that was asked for, in that order."""

    query: str
    results: dict[str, SearchAnswer]


class SmartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Results over all domains within a budget of tokens."""

    status: Status
    results: tuple[Finding, ...] = ()
    tokens_used: int = 0
    budget: int = TOKEN_BUDGET
    hint: str = ""


async def search(
    shelves: Shelves,
    domain: NodeDomain,
    query: str,
    *,
    by: Principal,
    at: datetime,
    limit: int = 10,
    filter: NodeFilter = EVERY_NODE,
) -> SearchAnswer:
    """Search one domain. Where its filter knows none of the words, nothing is looked for."""
    others = await _also_in(shelves, domain, query, by)
    found = await _found_in(shelves[domain], query, by, at, limit, filter)
    if not found:
        hint = f"No {domain.label} on this." + (f" Try {', '.join(others)}." if others else "")
        return SearchAnswer(status="no_matches", hint=hint)
    return SearchAnswer(
        status="ok",
        results=tuple(to_finding(each, at) for each in found),
        also_exists_in=others,
        suggestions=(f"Related content in: {', '.join(others)}",) if others else (),
    )


async def search_all(
    shelves: Shelves,
    query: str,
    *,
    by: Principal,
    at: datetime,
    domains: Sequence[str] = (),
    limit_per_domain: int = PER_DOMAIN,
) -> AllAnswer:
    """Search several domains, all by default, and group what is found. A domain that is not there has no matches.

    Raises InvalidInput for a name that is no domain.
    """
    asked = [to_domain(name) for name in dict.fromkeys(domains)] or list(NodeDomain)
    results = {}
    for domain in asked:
        found = await _found_in(shelves.get(domain), query, by, at, limit_per_domain, EVERY_NODE)
        status: Status = "ok" if found else "no_matches"
        results[domain.label] = SearchAnswer(status=status, results=tuple(to_finding(each, at) for each in found))
    return AllAnswer(query=query, results=results)


async def smart_search(
    shelves: Shelves,
    query: str,
    *,
    by: Principal,
    at: datetime,
    token_budget: int = TOKEN_BUDGET,
    thoroughness: Thoroughness = "moderate",
) -> SmartAnswer:
    """Batches of results of all domains, each larger than the last, until there are enough or the budget is used up.
    One that is too long for what is left is passed over; none comes twice."""
    chosen: list[Finding] = []
    used, seen = 0, set[str]()
    for batch in range(MOST_BATCHES):
        size = FIRST_BATCH + batch * BATCH_GROWS
        found = await _next_batch(shelves, query, by, at, size, seen)
        for each in (to_finding(one, at) for one in found):
            tokens = count_tokens(msgspec.json.encode(each).decode())
            if used + tokens <= token_budget and len(chosen) < ENOUGH[thoroughness]:
                chosen.append(each)
                used += tokens
        if not found or len(chosen) >= ENOUGH[thoroughness] or used >= token_budget:
            break
    if not seen:
        return SmartAnswer(status="no_matches", budget=token_budget, hint="No domain has anything on this.")
    return SmartAnswer(status="ok", results=tuple(chosen), tokens_used=used, budget=token_budget)


def to_domain(name: str) -> NodeDomain:
    """The domain of a name. Raises InvalidInput."""
    found = next((domain for domain in NodeDomain if domain.label == name), None)
    if found is None:
        choices = ", ".join(domain.label for domain in NodeDomain)
        raise InvalidInput("domains", f"{name!r} is not a domain", hint=f"Domains are {choices}")
    return found


def to_finding(ranked: RankedNode, at: datetime) -> Finding:
    """A node as it is shown: on one line, without keys, the mark of what is unverified included."""
    node = ranked.node
    return Finding(
        id=node.id,
        domain=node.domain.label,
        type=node.node_type.label,
        name=inline(mask_keys(node.name), SNIPPET),
        source=citation_of(node),
        score=round(ranked.score, 3),
        trust=trust_of(node, at),
        snippet=_snippet(node.content),
        warning=ranked.freshness.warning,
    )


def _snippet(content: str) -> str:
    bare = content.removeprefix(UNVERIFIED)
    shown = inline(mask_keys(bare[: SNIPPET * 8]), SNIPPET)
    return shown if bare == content else marked(shown)


async def _found_in(
    shelf: Shelf | None, query: str, by: Principal, at: datetime, limit: int, filter: NodeFilter
) -> list[RankedNode]:
    if shelf is None:
        return []
    await shelf.catch_up()
    if not shelf.contains(query, by=by):
        return []
    return rank_by_freshness(await shelf.search(query, by=by, limit=limit, filter=filter), at)


async def _next_batch(
    shelves: Shelves, query: str, by: Principal, at: datetime, size: int, seen: set[str]
) -> list[RankedNode]:
    """The best of all domains that were not there yet; they are now."""
    found: list[RankedNode] = []
    for shelf in shelves.values():
        await shelf.catch_up()
        if shelf.contains(query, by=by):
            scored = await shelf.search(query, by=by, limit=size, exclude=seen)
            found += rank_by_freshness([each for each in scored if each.node.id not in seen], at)
    best = sorted(found, key=lambda each: -each.score)[:size]
    seen.update(each.node.id for each in best)
    return best


async def _also_in(shelves: Shelves, domain: NodeDomain, query: str, by: Principal) -> tuple[str, ...]:
    """The other domains that know enough of the words of a question."""
    words = telling_words(query)
    found = []
    for shelf in shelves.values():
        if shelf.domain is not domain and words:
            await shelf.catch_up()
            known = sum(shelf.contains(word, by=by) for word in words)
            found += [shelf.domain.label] if known >= KNOWN_SHARE * len(words) else []
    return tuple(found)
