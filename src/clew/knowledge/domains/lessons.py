"""Tools on lessons: mistakes to avoid, preferences of the user, and beliefs with their valid times. They belong to the
domain `history`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.domains.node_lines import READS, WIDTH
from clew.knowledge.history.lessons import Response
from clew.tools import Effects, Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge
    from clew.knowledge.history.beliefs import BeliefStanding
    from clew.knowledge.history.lessons import Preferences

NOTES = Effects(repeats_safely=True, reaches_out=False)
Moment = Annotated[datetime, msgspec.Meta(tz=True, description="for example 2026-01-01T00:00:00Z")] | None


def lesson_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that read and record mistakes, preferences and beliefs."""
    return *_mistake_tools(known), *_preference_tools(known), *_belief_tools(known)


def _mistake_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="check_mistakes", effects=READS, searchable=False)
    async def check_mistakes(
        approach: Annotated[str, msgspec.Meta(description="the plan, in a sentence")], ctx: ToolContext
    ) -> str:
        """Check whether a plan was a mistake before, and show what to do instead."""
        found = await (await known()).mistakes(ctx.by).check_mistakes(approach)
        lines = [
            f"- {inline(each.pattern, WIDTH)}: {inline(each.error, WIDTH)}. Instead: {inline(each.fix, WIDTH)}"
            f" (seen {each.occurrences} time{'s' * (each.occurrences != 1)}, {each.id})"
            for each in found
        ]
        return "\n".join(lines) or "Safe to proceed: nothing like it is known to have gone wrong."

    @tool(name="report_mistake", effects=Effects(reaches_out=False), searchable=False)
    async def report_mistake(
        pattern: Annotated[str, msgspec.Meta(description="the attempt")],
        error: Annotated[str, msgspec.Meta(description="the failure")],
        fix: Annotated[str, msgspec.Meta(description="what to do instead")],
        ctx: ToolContext,
        context: str = "",
        tags: Sequence[str] = (),
    ) -> str:
        """Record a mistake for all sessions. Reporting it again raises its confidence."""
        noted = await (await known()).mistakes(ctx.by).report_mistake(pattern, error, fix, context, tags)
        return f"Noted as {noted.id}, reported {noted.occurrences} time{'s' * (noted.occurrences != 1)}."

    return check_mistakes, report_mistake


def _preference_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_preferences", effects=READS, searchable=False)
    async def get_preferences(
        ctx: ToolContext, category: Annotated[str, msgspec.Meta(description="only of this kind")] = "all"
    ) -> str:
        """List the user's preferences: explicit, learned, and of this session."""
        found = await (await known()).preferences(ctx.by).get_preferences(category)
        return "\n".join(_preference_lines(found)) or "No preference is known."

    @tool(name="set_preference", effects=NOTES, searchable=False)
    async def set_preference(
        category: Annotated[str, msgspec.Meta(description="of what kind, for example indentation")],
        preference: Annotated[str, msgspec.Meta(description="what the user wants")],
        ctx: ToolContext,
        for_session: Annotated[bool, msgspec.Meta(description="only until this session ends")] = False,
    ) -> str:
        """Remember what the user prefers. Only what the user said: do not guess."""
        await (await known()).preferences(ctx.by).set_preference(category, preference, for_session=for_session)
        return f"Remembered {'for this session' if for_session else 'for all sessions'}: {inline(category, WIDTH)}."

    @tool(name="observe_preference", effects=Effects(reaches_out=False), searchable=False)
    async def observe_preference(
        category: Annotated[str, msgspec.Meta(description="the kind of preference, for example indentation")],
        suggestion: Annotated[str, msgspec.Meta(description="the value that was suggested")],
        response: Annotated[Response, msgspec.Meta(description="the user's response")],
        ctx: ToolContext,
    ) -> str:
        """Learn from the user's response to a suggestion: the first acceptance counts 0.6, each further one 0.1 more, a
        rejection 0.2 less."""
        found = await (await known()).preferences(ctx.by).learn(category, suggestion, response)
        learned = [line for line in _preference_lines(found) if "(learned" in line]
        return "\n".join(learned) or "Nothing is learned: the suggestion was never accepted."

    return get_preferences, set_preference, observe_preference


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
        from clew.knowledge.history.beliefs import BeliefFact  # with the rest of knowledge

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

    @tool(name="retract_belief", effects=NOTES, searchable=False)
    async def retract_belief(
        id: Annotated[str, msgspec.Meta(description="the id of a belief, as get_beliefs shows it")],
        why: Annotated[str, msgspec.Meta(description="why it is not right")],
        ctx: ToolContext,
    ) -> str:
        """Record that a belief was never right. The belief stays on record, with the reason."""
        await (await known()).beliefs(ctx.by).retract(id, why)
        return f"Retracted {id}."

    return get_beliefs, record_belief, retract_belief


def _preference_lines(found: Preferences) -> list[str]:
    said = [(category, value, "said") for category, value in found.explicit.items()]
    session = [(category, value, "for this session") for category, value in found.session_overrides.items()]
    learned = [(category, each.value, f"learned, {each.confidence:.0%}") for category, each in found.implicit.items()]
    return [f"- {inline(kind, WIDTH)}: {inline(value, WIDTH)} ({how})" for kind, value, how in session + said + learned]


def _belief_line(standing: BeliefStanding) -> str:
    fact = standing.belief.fact
    times = f"from {_day(standing.valid_from)}" + (f" to {_day(standing.valid_to)}" if standing.valid_to else "")
    odds = f"; disagrees with {', '.join(standing.disagrees_with)}" if standing.disagrees_with else ""
    said = f"{fact.subject}: {fact.attribute} is {'' if fact.holds else 'not '}{fact.value}"
    place = inline(fact.cite or f"{fact.source} {fact.version}".strip(), WIDTH)
    return f"- {inline(said, WIDTH)} ({times}, {place}, {standing.belief.id}{odds})"


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment is not None else "the beginning"
