"""Tools on the journal: entries of all categories, their scopes, promotion, and the summary of a session; and tools on
lessons. They belong to the domain `history`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.domains.tool_builder import WIDTH, OpenKnowledge, method_tool
from clew.knowledge.history.beliefs import Belief, BeliefFact, BeliefLedger, BeliefStanding
from clew.knowledge.history.brief import entry_text, summarise_session
from clew.knowledge.history.entries import NO_SESSION, ArchiveQuery, Category, Moment, place_of_entry
from clew.knowledge.history.journal import Chronicle
from clew.knowledge.history.lessons import Mistake, Mistakes, Preferences, UserPreferences
from clew.knowledge.history.links import Limit
from clew.knowledge.nodes.node_store import Node
from clew.tools import Effects, Tool

WRITES = Effects(reaches_out=False)
MARKS = Effects(repeats_safely=True, reaches_out=False)
Scope = Literal["own_and_promoted", "current_only", "cross_session"]
Search = Annotated[str, msgspec.Meta(description="a text to search for; empty: the newest")]


def journal_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that write, find, share and sum up entries."""
    made = partial(method_tool, known, lambda knowledge, by: knowledge.chronicle(by, by.session or NO_SESSION))
    return (
        made(Chronicle.store, lambda entry: f"Stored as {entry.id} ({entry.category}).", effects=WRITES),
        made(query, entry_lines),
        made(cross_session_query, entry_lines),
        made(summarise_session, lambda brief: brief.text, name="session_summary"),
        made(Chronicle.promote_pattern, _promotion, effects=MARKS),
        made(Chronicle.promote, _promotion, effects=MARKS),
        made(Chronicle.take_back, _promotion, effects=MARKS),
    )


async def query(
    chronicle: Chronicle,
    search: Search = "",
    category: Category | None = None,
    scope: Annotated[
        Scope, msgspec.Meta(description="own entries and promoted ones of any session; only own ones; or all")
    ] = "own_and_promoted",
    promoted_only: bool = False,
    sources: Annotated[Sequence[str], msgspec.Meta(description="only of these writers")] = (),
    since: Moment = None,
    until: Moment = None,
    limit: Limit = 10,
) -> list[Node]:
    """List entries of the journal: best first with a search text, else newest first."""
    wanted = ArchiveQuery(
        search_text=search,
        categories=(category,) if category else (),
        current_only=scope == "current_only",
        cross_session=scope == "cross_session",
        promoted_only=promoted_only,
        sources=sources,
        since=since,
        until=until,
        limit=limit,
    )
    return await chronicle.query(wanted)


async def cross_session_query(
    chronicle: Chronicle,
    search: Search = "",
    session_ids: Annotated[Sequence[str], msgspec.Meta(description="only of these sessions; empty: of all")] = (),
    exclude_current: Annotated[bool, msgspec.Meta(description="leave out the own session")] = False,
    category: Category | None = None,
    limit: Limit = 10,
) -> list[Node]:
    """List entries of other sessions."""
    wanted = ArchiveQuery(
        search_text=search,
        categories=(category,) if category else (),
        session_ids=session_ids,
        exclude_sessions=(chronicle.session_id,) if exclude_current else (),
        cross_session=True,
        limit=limit,
    )
    return await chronicle.query(wanted)


def _promotion(entry: Node) -> str:
    mark = entry.metadata.get("promoted")
    return (
        f"{entry.id} is promoted for all sessions, by {mark['by']}." if mark else f"{entry.id} is no longer promoted."
    )


def entry_lines(found: Sequence[Node]) -> str:
    """Entries of the journal, a line each."""
    return "\n".join(map(_line, found)) or "No entry fits."


def _line(entry: Node) -> str:
    promoted = ", promoted" if entry.metadata.get("promoted") else ""
    where = f"session {inline(entry.session_id or NO_SESSION, WIDTH)}{promoted}, {place_of_entry(entry)}"
    return f"- {entry.at:%Y-%m-%d %H:%M} {entry.category}: {entry_text(entry, WIDTH)} ({where})"


# -- lessons: mistakes to avoid, preferences of the user, and beliefs with their valid times ------------------------


def lesson_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that read and record mistakes, preferences and beliefs."""
    of_mistakes = partial(method_tool, known, lambda knowledge, by: knowledge.mistakes(by))
    of_preferences = partial(method_tool, known, lambda knowledge, by: knowledge.preferences(by))
    of_beliefs = partial(method_tool, known, lambda knowledge, by: knowledge.beliefs(by))
    return (
        of_mistakes(Mistakes.check_mistakes, _mistake_lines),
        of_mistakes(Mistakes.report_mistake, _reported, effects=WRITES),
        of_preferences(UserPreferences.get_preferences, _preference_lines),
        of_preferences(UserPreferences.set_preference, _remembered, effects=MARKS),
        of_preferences(UserPreferences.learn, _learned, name="observe_preference", effects=WRITES),
        of_beliefs(BeliefLedger.as_of, _belief_lines, name="get_beliefs"),
        of_beliefs(record_belief, lambda belief: f"Recorded as {belief.id}.", effects=MARKS),
        of_beliefs(
            BeliefLedger.retract, lambda belief: f"Retracted {belief.id}.", name="retract_belief", effects=MARKS
        ),
    )


async def record_belief(
    ledger: BeliefLedger,
    subject: str,
    attribute: str,
    value: str,
    source: Annotated[str, msgspec.Meta(description="the line of documents that says so, for example a changelog")],
    version: Annotated[
        str, msgspec.Meta(description="its version or date: a later document retires an earlier one")
    ] = "",
    cite: Annotated[str, msgspec.Meta(description="the exact place")] = "",
    valid_from: Moment = None,
    valid_to: Moment = None,
    supersedes: Annotated[tuple[str, ...], msgspec.Meta(description="ids that it expressly replaces")] = (),
) -> Belief:
    """Record a fact with its source and valid time. Earlier records stay."""
    fact = BeliefFact(
        subject=subject,
        attribute=attribute,
        value=value,
        source=source,
        version=version,
        cite=cite,
        valid_from=valid_from,
        valid_to=valid_to,
        supersedes=supersedes,
    )
    return await ledger.add(fact)


def _mistake_lines(found: Sequence[Mistake]) -> str:
    lines = [
        f"- {inline(each.pattern, WIDTH)}: {inline(each.error, WIDTH)}. Instead: {inline(each.fix, WIDTH)}"
        f" (seen {_times(each)}, {each.id})"
        for each in found
    ]
    return "\n".join(lines) or "Safe to proceed: nothing like it is known to have gone wrong."


def _reported(mistake: Mistake) -> str:
    return f"Noted as {mistake.id}, reported {_times(mistake)}."


def _times(mistake: Mistake) -> str:
    return f"{mistake.occurrences} time{'s' * (mistake.occurrences != 1)}"


def _preference_lines(found: Preferences) -> str:
    said = [(category, value, "said") for category, value in found.explicit.items()]
    session = [(category, value, "for this session") for category, value in found.session_overrides.items()]
    lines = [f"- {inline(kind, WIDTH)}: {inline(value, WIDTH)} ({how})" for kind, value, how in session + said]
    return "\n".join([*lines, *_learned_lines(found)]) or "No preference is known."


def _learned(found: Preferences) -> str:
    return "\n".join(_learned_lines(found)) or "Nothing is learned: the suggestion was never accepted."


def _learned_lines(found: Preferences) -> list[str]:
    return [
        f"- {inline(category, WIDTH)}: {inline(each.value, WIDTH)} (learned, {each.confidence:.0%})"
        for category, each in found.implicit.items()
    ]


def _remembered(preference: str) -> str:
    return f"Remembered {inline(preference, WIDTH)}."


def _belief_lines(found: Sequence[BeliefStanding]) -> str:
    return "\n".join(map(_belief_line, found)) or "Nothing was recorded of that for that time."


def _belief_line(standing: BeliefStanding) -> str:
    fact = standing.belief.fact
    times = f"from {_day(standing.valid_from)}" + (f" to {_day(standing.valid_to)}" if standing.valid_to else "")
    disagreement = f"; disagrees with {', '.join(standing.disagrees_with)}" if standing.disagrees_with else ""
    said = f"{fact.subject}: {fact.attribute} is {'' if fact.holds else 'not '}{fact.value}"
    place = inline(fact.cite or f"{fact.source} {fact.version}".strip(), WIDTH)
    return f"- {inline(said, WIDTH)} ({times}, {place}, {standing.belief.id}{disagreement})"


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment is not None else "the beginning"
