"""Fit an answer into its token budget: close domains in full and first, each other domain on one line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, islice, takewhile
from math import inf
from typing import TypeVar

import msgspec

from clew.catalog.operations.answers import CatalogEntry, Section
from clew.catalog.operations.discovery import DomainHits
from clew.catalog.operations.markdown import render_entry, render_folded
from clew.catalog.operations.text import inline
from clew.catalog.registry import EntryPoints, RoutedTool
from clew.llm.tokens import estimate_tokens
from clew.trail.model.query import Hit
from clew.trail.search.closeness import NEAR, closeness

FEW = 4
"""With at most this many domains, each is shown in full if there is room, even if it is irrelevant to the question."""
MOST_DESCRIBED, MOST_NAMED = 12, 12
"""The most entry points that a fully shown domain describes, and the most that it names in addition."""
OVERHEAD = 120
"""The estimated tokens of the text around the sections."""
HEADING, AND_MORE = 10, 12
"""The tokens of a domain's heading without its name and description, and those of the line that names further entry
points."""
FOLDED_SHARE = 0.4
"""The share of the budget for the one-line forms of domains, if there are many domains."""
LINES = ((100, FEW), (60, 1), (0, 0))
"""The forms of a folded domain, from long to short: the length of the description, and the number of entry points
named."""
HOW_TO_SEE = "Ask with a `domain`, in words closer to what you need, or with a larger budget."
"""The next steps after a cut."""
LEAST = 60
"""With fewer tokens left than this, no further domain is shown in full."""

T = TypeVar("T")
Sized = tuple[Section, int]
"""A section, and the tokens it takes."""


def lay_out(
    offers: Sequence[EntryPoints],
    found: Mapping[str, DomainHits],
    budget: int,
    *,
    is_relevant: bool,
    described: Collection[str] = (),
) -> tuple[list[Section], str]:
    """The sections of an answer within a budget of tokens, and a sentence about the omitted parts. The parameters of
    tools that were `described` before are left out.

    The closest domains come first, equally close ones in order of registration. Every omitted domain is mentioned.
    """
    ordered = sorted(offers, key=lambda offer: -found[offer.domain.name].relevance)
    best = found[ordered[0].domain.name].relevance if ordered else 0.0
    lines = _fold_all(ordered, found, budget)
    room = budget - OVERHEAD - min(sum(cost for _, cost in lines), int(budget * FOLDED_SHARE))
    shown: list[Sized] = []
    wanted: dict[str, DomainHits] = {}
    for offer, (line, cost) in zip(ordered, lines, strict=True):
        own = found[offer.domain.name]
        is_wanted = len(offers) <= FEW or own.relevance >= max(best, 1.0) * NEAR
        wanted |= {offer.domain.name: own} if is_wanted else {}
        whole = _unfold(offer, own, room + cost, is_relevant, described) if is_wanted and room + cost >= LEAST else None
        section, size = whole or (line, cost)
        room -= size - cost
        shown.append((section, size))
    kept, missing = _drop_last(shown, budget - OVERHEAD, budget // 10)
    left = budget - OVERHEAD - sum(size for _, size in shown)
    sections = kept if missing else _name_more(kept, ordered, found, left)
    return sections, _describe_cut(
        sections, missing, len(_first(missing, budget // 10)), wanted, is_relevant=is_relevant
    )


# -- one line a domain ------------------------------------------------------------------------------------


def _fold_all(offers: Sequence[EntryPoints], found: Mapping[str, DomainHits], budget: int) -> list[Sized]:
    """Fold every domain to one line, in the longest form in which all lines fit their share of the budget."""
    share = budget * FOLDED_SHARE if len(offers) > FEW else inf
    usual_first = sorted(offers, key=lambda each: bool(found[each.domain.name].tools))
    for (characters, named), most in zip(LINES, (share, share, inf), strict=True):
        lines = _fold_within(usual_first, found, characters, named, most)
        if lines is not None:
            return [lines[offer.domain.name] for offer in offers]
    return []


def _fold_within(
    offers: Sequence[EntryPoints], found: Mapping[str, DomainHits], characters: int, named: int, share: float
) -> dict[str, Sized] | None:
    """All domains folded to one line each, by name; None if they take more than `share` tokens. The line of a domain
    without hits is cached."""
    lines: dict[str, Sized] = {}
    used = 0
    for offer in offers:
        own = found[offer.domain.name]
        is_usual = not own.tools or not named
        line = offer.folded.get((characters, named)) if is_usual else None
        if line is None:
            section = _fold(offer, own, characters, named)
            line = section, estimate_tokens(render_folded(section))
            if is_usual:
                offer.folded[characters, named] = line
        used += line[1]
        if used > share:
            return None
        lines[offer.domain.name] = line
    return lines


def _fold(entries: EntryPoints, found: DomainHits, characters: int, named: int) -> Section:
    domain = entries.domain
    routes = [each.text for each in islice(_ranked(entries, found), named)]
    return Section(
        domain=domain.name,
        description=_about(domain.description, characters) if characters else "",
        is_folded=True,
        folded=routes,
        more=len(entries) - len(routes),
    )


@lru_cache(maxsize=4_096)
def _about(description: str, characters: int) -> str:
    return inline(description, characters)


def _hits(entries: EntryPoints, found: DomainHits) -> list[RoutedTool]:
    """The entry points that the question hits, closest first."""
    return [entries[route] for route in found.tools if route in entries]


def _ranked(entries: EntryPoints, found: DomainHits) -> Iterator[RoutedTool]:
    """All entry points: those that the question hits first, the others in order of registration."""
    yield from _hits(entries, found)
    for route, each in entries.items():
        if route not in found.tools:
            yield each


# -- a domain in full -------------------------------------------------------------------------------------


def _unfold(
    entries: EntryPoints, found: DomainHits, room: int, is_relevant: bool, described: Collection[str]
) -> Sized | None:
    """The part of a domain that fits into `room`: relevant entry points, resources, then names of other entry points.
    None if no entry point and no resource fits."""
    domain = entries.domain
    about = _about(domain.description, 300)
    used = HEADING + estimate_tokens(domain.name + about)
    hits = len(_hits(entries, found)) if is_relevant else 0
    most = min(max(hits, FEW), MOST_DESCRIBED) if len(entries) > FEW else len(entries)
    ranked = list(islice(_ranked(entries, found), most + MOST_NAMED))
    tools = _fitting(ranked[:most], [each.size for each in ranked[:most]], room - used)
    used += sum(each.size for each in tools)
    resources: list[CatalogEntry] = []
    for hit in _close_hits(found) if is_relevant else ():
        entry = _resource_entry(hit)
        size = estimate_tokens(render_entry(entry)[0])
        if used + size > room:
            break
        resources.append(entry)
        used += size
    if not tools and not resources:
        return None
    rest = ranked[len(tools) : len(tools) + MOST_NAMED]
    named = _fitting(rest, [each.name_size for each in rest], room - used - AND_MORE)
    more = len(entries) - len(tools) - len(named)
    if named or more:
        used += AND_MORE + sum(each.name_size for each in named)
    section = Section(
        domain=domain.name,
        description=about,
        tools=[_entry(each, found, described) for each in tools],
        resources=resources,
        folded=[each.text for each in named],
        more=more,
    )
    return section, used


def _fitting(items: Sequence[T], sizes: Sequence[int], room: int) -> Sequence[T]:
    """The longest prefix of the items that fits."""
    number = sum(1 for _ in takewhile(lambda used: used <= room, accumulate(sizes)))
    return items[:number]


def _close_hits(found: DomainHits) -> list[Hit]:
    """The resources that are nearly as relevant as the most relevant hit."""
    least = min(max(found.relevance, 1.0), 2.0) * NEAR / 2
    return [hit for hit in found.resources if closeness(hit) >= least]


def _resource_entry(hit: Hit) -> CatalogEntry:
    context = hit.breadcrumb.context
    description = inline(context["description"] or hit.breadcrumb.title)
    return CatalogEntry(route=context["uri"], description=description, score=round(closeness(hit), 3))


def _entry(each: RoutedTool, found: DomainHits, described: Collection[str]) -> CatalogEntry:
    # the guide of a foreign server is as close as the closest of its tools, to which it leads
    close = max(found.tools.values(), default=0.0) if each.domain.is_foreign else found.tools.get(each.text, 0.0)
    params = "" if each.text in described else each.params
    return CatalogEntry(
        route=each.text,
        description=each.about,
        params=params,
        score=round(close, 3),
        reads_only=each.tool.effects.reads_only,
    )


# -- the remaining room, and the parts that do not fit ----------------------------------------------------


def _name_more(
    shown: Sequence[Section], offers: Sequence[EntryPoints], found: Mapping[str, DomainHits], room: int
) -> list[Section]:
    """Fill the remaining room with names of entry points that are only counted so far."""
    sections = []
    for section, entries in zip(shown, offers, strict=True):
        if not section.more or room <= 0:
            sections.append(section)
            continue
        known = len(section.tools) + len(section.folded)
        further = []
        for each in islice(_ranked(entries, found[entries.domain.name]), known, None):
            room -= each.name_size
            if room < 0:
                break
            further.append(each.text)
        names, more = [*section.folded, *further], section.more - len(further)
        sections.append(msgspec.structs.replace(section, folded=names, more=more))
    return sections


def _first(names: Iterable[str], room: int) -> list[str]:
    """The first names that fit into the room."""
    listed = list(names)
    return list(_fitting(listed, [estimate_tokens(f", `{name}`") for name in listed], room))


def _drop_last(shown: Sequence[tuple[Section, int]], room: int, for_names: int) -> tuple[list[Section], list[str]]:
    """The sections that fit, at least one, and the names of the domains that were left out. If anything is left out,
    `for_names` tokens stay free for their names."""
    sections, sizes = [section for section, _ in shown], [size for _, size in shown]
    if sum(sizes) <= room:
        return sections, []
    fitting = sum(1 for _ in takewhile(lambda used: used <= room - for_names, accumulate(sizes)))
    kept = max(1, fitting)
    return sections[:kept], [each.domain for each in sections[kept:]]


def _describe_cut(
    kept: Sequence[Section], missing: Sequence[str], named: int, wanted: Mapping[str, DomainHits], *, is_relevant: bool
) -> str:
    """A sentence about the cut: entry points and resources of the domains in full, and further domains."""
    parts = [_count(each.more, "entry point", each.domain) for each in kept if each.more and not each.is_folded]
    left = sum(len(_close_hits(found)) for found in wanted.values())
    left -= sum(len(each.resources) for each in kept)
    if left and is_relevant:
        parts.append(_count(left, "resource"))
    if missing:
        more = f"{len(missing) - named} {'more' if named else 'domains'}" if named < len(missing) else ""
        names = f"the domains {', '.join(missing[:named])}" if named else ""
        parts.append(" and ".join(filter(None, (names, more))))
    return f"Cut for the token budget: {', '.join(parts)}. {HOW_TO_SEE}" if parts else ""


def _count(number: int, noun: str, domain: str = "") -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" + (f" of {domain}" if domain else "")
