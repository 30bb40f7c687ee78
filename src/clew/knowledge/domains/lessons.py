"""Tools on lessons: mistakes to avoid, preferences of the user, and beliefs with their valid times. They belong to the
domain `history`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.domains.method_tool import method_tool
from clew.knowledge.domains.node_lines import READS, WIDTH
from clew.knowledge.history.beliefs import Belief, BeliefFact, BeliefLedger, BeliefStanding
from clew.knowledge.history.lessons import Mistake, Mistakes, Preferences, UserPreferences
from clew.tools import Effects, Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

WRITES = Effects(reaches_out=False)
NOTES = Effects(repeats_safely=True, reaches_out=False)
Moment = Annotated[datetime, msgspec.Meta(tz=True, description="for example 2026-01-01T00:00:00Z")] | None


def lesson_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that read and record mistakes, preferences and beliefs."""

    async def mistakes(ctx: ToolContext) -> Mistakes:
        return (await known()).mistakes(ctx.by)

    async def preferences(ctx: ToolContext) -> UserPreferences:
        return (await known()).preferences(ctx.by)

    async def beliefs(ctx: ToolContext) -> BeliefLedger:
        return (await known()).beliefs(ctx.by)

    return (
        method_tool(Mistakes.check_mistakes, mistakes, _mistake_lines),
        method_tool(Mistakes.report_mistake, mistakes, _reported, effects=WRITES),
        method_tool(UserPreferences.get_preferences, preferences, _preference_lines),
        method_tool(UserPreferences.set_preference, preferences, _remembered, effects=NOTES),
        method_tool(UserPreferences.learn, preferences, _learned, name="observe_preference", effects=WRITES),
        method_tool(BeliefLedger.retract, beliefs, _retracted, name="retract_belief", effects=NOTES),
        *_belief_tools(known),
    )


def _belief_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_beliefs", effects=READS, searchable=False)
    async def get_beliefs(
        ctx: ToolContext,
        subject: Annotated[str, msgspec.Meta(description="of what; empty: of all")] = "",
        attribute: str = "",
        as_of: Moment = None,
        recorded_by: Moment = None,
    ) -> str:
        """List the facts that were valid at a moment and recorded by another, each with its source. Facts that disagree
        are all listed, and marked."""
        ledger = (await known()).beliefs(ctx.by)
        found = await ledger.as_of(as_of, recorded_by, subject=subject, attribute=attribute)
        return "\n".join(map(_belief_line, found)) or "Nothing was recorded of that for that time."

    @tool(name="record_belief", effects=NOTES, searchable=False)
    async def record_belief(
        subject: str,
        attribute: str,
        value: str,
        source: Annotated[str, msgspec.Meta(description="the line of documents that says so, for example a changelog")],
        ctx: ToolContext,
        version: Annotated[str, msgspec.Meta(description="which of them: a later one retires an earlier")] = "",
        cite: Annotated[str, msgspec.Meta(description="the exact place")] = "",
        valid_from: Moment = None,
        valid_to: Moment = None,
        supersedes: Annotated[Sequence[str], msgspec.Meta(description="ids that it expressly replaces")] = (),
    ) -> str:
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
            supersedes=tuple(supersedes),
        )
        return f"Recorded as {(await (await known()).beliefs(ctx.by).add(fact)).id}."

    return get_beliefs, record_belief


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


def _retracted(belief: Belief) -> str:
    return f"Retracted {belief.id}."


def _belief_line(standing: BeliefStanding) -> str:
    fact = standing.belief.fact
    times = f"from {_day(standing.valid_from)}" + (f" to {_day(standing.valid_to)}" if standing.valid_to else "")
    disagreement = f"; disagrees with {', '.join(standing.disagrees_with)}" if standing.disagrees_with else ""
    said = f"{fact.subject}: {fact.attribute} is {'' if fact.holds else 'not '}{fact.value}"
    place = inline(fact.cite or f"{fact.source} {fact.version}".strip(), WIDTH)
    return f"- {inline(said, WIDTH)} ({times}, {place}, {standing.belief.id}{disagreement})"


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment is not None else "the beginning"
