"""How an answer fits its budget: what matters in full and first, the rest of each domain on one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, takewhile

import msgspec

from clew.catalog.answers import Entry, Section
from clew.catalog.discovery import NEAR, Found, closeness
from clew.catalog.domain import Domain
from clew.catalog.markdown import inline, render_folded, render_section
from clew.catalog.registry import RoutedTool
from clew.llm.tokens import estimate_tokens

FEW = 4
"""Up to so many domains, each is shown in full where there is room, whatever the question."""
MOST_NAMED = 12
"""Entry points of a domain in full that are only named, beside those that are described."""
OVERHEAD = 120
"""Tokens of what stands around the sections."""
FOLDED_SHARE = 0.4
"""The part of the budget that one line a domain may take, where there are many; lines beyond it are cut."""
LINES = ((100, FEW), (60, 1), (0, 0))
"""Ways of folding, from long to short: characters of the description, entry points by name."""
SIZES = ((12, 50), (12, 10), (6, 5), (3, 3), (1, 2), (1, 0))
"""Ways of showing a domain in full, from long to short: described entry points, resources."""
LEAST = 60
"""Tokens below which no domain is worth showing in full."""

Entries = Mapping[str, RoutedTool]
Offer = tuple[Domain, Entries]
"""A domain, and its entry points for the caller."""


def lay_out(
    offers: Sequence[Offer], found: Mapping[str, Found], budget: int, *, is_relevant: bool
) -> tuple[list[Section], str]:
    """The sections of an answer within a budget of tokens, and what was cut, in words.

    The closest domains come first, equally close ones in order of registration. No domain goes missing without a word.
    """
    ordered = sorted(offers, key=lambda offer: -found[offer[0].name].relevance)
    best = found[ordered[0][0].name].relevance if ordered else 0.0
    lines, costs = _fold_all(ordered, found, budget)
    room, shown = budget - OVERHEAD - min(sum(costs), int(budget * FOLDED_SHARE)), []
    for offer, line, cost in zip(ordered, lines, costs, strict=True):
        own = found[offer[0].name]
        is_wanted = len(offers) <= FEW or own.relevance >= max(best, 1.0) * NEAR
        whole = _unfold(offer, own, room + cost, is_relevant) if is_wanted and room + cost >= LEAST else None
        if whole is not None:
            room -= estimate_tokens(render_section(whole)) - cost
        shown.append(whole or line)
    kept, missing = _drop_last(shown, budget - OVERHEAD, budget // 10)
    named = len(_first(missing, budget // 10))
    cut = _tell(kept, missing, named, found, is_relevant=is_relevant)
    if missing or not any(section.more for section in kept):
        return kept, cut
    return _name_more(kept, ordered, found, budget - OVERHEAD - sum(map(_size, kept))), cut


def _fold_all(offers: Sequence[Offer], found: Mapping[str, Found], budget: int) -> tuple[list[Section], list[int]]:
    """One line a domain, and what it costs: the longest way of which all take no more than their share."""
    for characters, named in LINES:
        lines = [_fold(offer, found[offer[0].name], characters, named) for offer in offers]
        costs = [estimate_tokens(render_folded(line)) for line in lines]
        if sum(costs) <= budget * FOLDED_SHARE or len(offers) <= FEW:
            break
    return lines, costs


def _fold(offer: Offer, found: Found, characters: int, named: int) -> Section:
    domain, entries = offer
    routes = [each.text for each in islice(_ranked(entries, found), named)]
    return Section(
        domain=domain.name,
        description=inline(domain.description, characters) if characters else "",
        is_folded=True,
        folded=routes,
        more=len(entries) - len(routes),
    )


def _hits(entries: Entries, found: Found) -> list[RoutedTool]:
    """The entry points that the question hits, closest first."""
    return [entries[route] for route in found.tools if route in entries]


def _ranked(entries: Entries, found: Found) -> Iterator[RoutedTool]:
    """All entry points: those that the question hits first, the others in order of registration."""
    yield from _hits(entries, found)
    for route, each in entries.items():
        if route not in found.tools:
            yield each


def _unfold(offer: Offer, found: Found, room: int, is_relevant: bool) -> Section | None:
    """As much of a domain as there is room for: fewer described entry points, then fewer resources. None when not even
    one fits."""
    domain, entries = offer
    resources = _resources(found) if is_relevant else []
    hits = len(_hits(entries, found)) if is_relevant else 0
    described = max(hits, FEW) if len(entries) > FEW else len(entries)
    ranked = list(islice(_ranked(entries, found), MOST_NAMED + SIZES[0][0]))
    for tools, most in SIZES:
        shown = min(tools, described)
        named = ranked[shown : shown + MOST_NAMED]
        section = Section(
            domain=domain.name,
            description=inline(domain.description),
            tools=[_entry(each, found) for each in ranked[:shown]],
            resources=resources[:most],
            folded=[each.text for each in named],
            more=len(entries) - shown - len(named),
        )
        if estimate_tokens(render_section(section)) <= room:
            return section
    return None


def _resources(found: Found) -> list[Entry]:
    """Resources that are not much farther away than the closest."""
    least = min(max(found.relevance, 1.0), 2.0) * NEAR / 2
    close = [hit for hit in found.resources if closeness(hit) >= least]
    return [
        Entry(
            route=hit.breadcrumb.context["uri"],
            description=inline(hit.breadcrumb.context["description"] or hit.breadcrumb.title),
            score=round(closeness(hit), 3),
        )
        for hit in close
    ]


def _entry(each: RoutedTool, found: Found) -> Entry:
    score = round(found.tools.get(each.text, 0.0), 3)
    return Entry(route=each.text, description=each.about, params=each.params, score=score)


def _name_more(
    shown: Sequence[Section], offers: Sequence[Offer], found: Mapping[str, Found], room: int
) -> list[Section]:
    """What room is left goes to the names of entry points that were only counted."""
    sections = []
    for section, (domain, entries) in zip(shown, offers, strict=True):
        known = len(section.tools) + len(section.folded)
        waiting = islice(_ranked(entries, found[domain.name]), known, None) if section.more else ()
        further = _first((each.text for each in waiting), room)
        room -= sum(map(_size_of_name, further))
        names, more = [*section.folded, *further], section.more - len(further)
        sections.append(msgspec.structs.replace(section, folded=names, more=more))
    return sections


def _size(section: Section) -> int:
    return estimate_tokens(render_folded(section) if section.is_folded else render_section(section))


def _first(names: Iterable[str], room: int) -> list[str]:
    """As many as there is room for."""
    fitting = []
    for name in names:
        room -= _size_of_name(name)
        if room < 0:
            break
        fitting.append(name)
    return fitting


def _size_of_name(name: str) -> int:
    return estimate_tokens(f", `{name}`")


def _drop_last(shown: Sequence[Section], room: int, for_names: int) -> tuple[list[Section], list[str]]:
    """Where not even one line a domain fits, the last ones are left out, and there is room for some of their names."""
    sizes = list(map(_size, shown))
    if sum(sizes) <= room:
        return list(shown), []
    fitting = sum(1 for _ in takewhile(lambda used: used <= room - for_names, accumulate(sizes)))
    kept = max(1, fitting)
    return list(shown[:kept]), [each.domain for each in shown[kept:]]


def _tell(
    kept: Sequence[Section], missing: Sequence[str], named: int, found: Mapping[str, Found], *, is_relevant: bool
) -> str:
    left = sum(len(_resources(found[name])) for name in missing)
    left += sum(len(_resources(found[each.domain])) - len(each.resources) for each in kept)
    parts = [f"{left} resource{'' if left == 1 else 's'}"] if left and is_relevant else []
    if missing:
        more = f"{len(missing) - named} {'more' if named else 'domains'}" if named < len(missing) else ""
        names = f"the domains {', '.join(missing[:named])}" if named else ""
        parts.append(" and ".join(filter(None, (names, more))))
    return f"Cut for the token budget: {', '.join(parts)}. Name a domain, or give a larger budget." if parts else ""
