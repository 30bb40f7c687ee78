"""Tools on lessons: mistakes to avoid, preferences of the user, and beliefs with their valid times. They belong to the
domain `history`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.domains.method_tool import method_tool
from clew.knowledge.domains.node_lines import WIDTH
from clew.knowledge.history.beliefs import Belief, BeliefFact, BeliefLedger, BeliefStanding
from clew.knowledge.history.entries import Moment
from clew.knowledge.history.lessons import Mistake, Mistakes, Preferences, UserPreferences
from clew.tools import Effects, Tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

WRITES = Effects(reaches_out=False)
NOTES = Effects(repeats_safely=True, reaches_out=False)


def lesson_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that read and record mistakes, preferences and beliefs."""
    of_mistakes = partial(method_tool, known, lambda knowledge, by: knowledge.mistakes(by))
    of_preferences = partial(method_tool, known, lambda knowledge, by: knowledge.preferences(by))
    of_beliefs = partial(method_tool, known, lambda knowledge, by: knowledge.beliefs(by))
    return (
        of_mistakes(Mistakes.check_mistakes, _mistake_lines),
        of_mistakes(Mistakes.report_mistake, _reported, effects=WRITES),
        of_preferences(UserPreferences.get_preferences, _preference_lines),
        of_preferences(UserPreferences.set_preference, _remembered, effects=NOTES),
        of_preferences(UserPreferences.learn, _learned, name="observe_preference", effects=WRITES),
        of_beliefs(BeliefLedger.as_of, _belief_lines, name="get_beliefs"),
        of_beliefs(record_belief, lambda belief: f"Recorded as {belief.id}.", effects=NOTES),
        of_beliefs(
            BeliefLedger.retract, lambda belief: f"Retracted {belief.id}.", name="retract_belief", effects=NOTES
        ),
    )


async def record_belief(
    ledger: BeliefLedger,
    subject: str,
    attribute: str,
    value: str,
    source: Annotated[str, msgspec.Meta(description="the line of documents that says so, for example a changelog")],
    version: Annotated[str, msgspec.Meta(description="which of them: a later one retires an earlier")] = "",
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
