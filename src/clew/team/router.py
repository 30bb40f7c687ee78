"""The router of the Guide: chooses the agent that takes a message of the user.

The first of these that applies decides: a slash command, a certain result of the classifier, a model if there is one,
the current agent, the Architect with a question back to the user.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from clew.clock import Clock, SystemClock
from clew.errors import InvalidInput
from clew.secrecy import mask_keys
from clew.team.commands import read_command
from clew.team.metadata import Metadata, dated, read_metadata, snake_case
from clew.team.route import AGENTS, CERTAIN, DUTIES, FOLLOW_UP, DecidedBy, MessageRoute, RouteCandidate, RouteTarget

if TYPE_CHECKING:
    from clew.llm.requests import Model
    from clew.team.classifier import Classification
    from clew.team.model_classifier import ModelClassifier, ModelVerdict

MAX_MESSAGE = 100_000
SHOWN = 3
"""The number of candidates that a route lists."""
GUESS = 0.79
"""The highest confidence of an uncertain decision."""
LIKELY, EVEN = 0.25, 0.5
"""The minimum probability of a candidate that the question to the user names, and the minimum probability at which the
Architect asks no question."""

AGENT = "guide"
"""The name of the Guide in [models] and in the ledger."""


class Router:
    """Routes messages. It caches only the model's decisions."""

    def __init__(self, model: Model | None = None, clock: Clock | None = None) -> None:
        self._model = _open_model_classifier(model) if model is not None else None
        self._clock = clock or SystemClock()

    async def route(self, message: str, *, talking_to: str = "", owner: str = "") -> MessageRoute:
        """Choose the target of a message. A failing model is skipped. Raises InvalidInput for an empty or huge message,
        and for an agent that does not exist."""
        _check(message)
        message = mask_keys(message)
        talker = _read_agent(talking_to)
        decided = self._route_command(message)
        if decided is not None:
            return decided
        # the first call loads the weights of the embedder, which would block the event loop
        found = await asyncio.to_thread(_classify, message)
        return (
            self._route_certain(message, found, talker)
            or await self._route_by_model(message, found, talker, owner)
            or self._fall_back(message, found, talker)
        )

    def _route_command(self, message: str) -> MessageRoute | None:
        command = read_command(message)
        if command is None:
            return None
        target, confidence, rest = command
        return _with_metadata(_route(target, confidence, "command"), self._metadata(rest, target))

    def _route_certain(self, message: str, found: Classification, talker: RouteTarget | None) -> MessageRoute | None:
        if found.confidence < CERTAIN:
            return None
        if found.best == FOLLOW_UP:
            return self._stay(message, found, talker, found.confidence) if talker else None
        target = RouteTarget(found.best)
        route = _route(target, found.confidence, "classifier", found)
        return _with_metadata(route, self._metadata(message, target))

    async def _route_by_model(
        self, message: str, found: Classification, talker: RouteTarget | None, owner: str
    ) -> MessageRoute | None:
        if self._model is None:
            return None
        cached = self._model.find_cached(message, owner)
        verdict = cached or await self._model.classify(message, owner)
        if verdict is None:
            return None
        confidence = min(1.0, max(0.0, verdict.confidence))
        if verdict.target == FOLLOW_UP:
            route = self._stay(message, found, talker, confidence) if talker else None
        else:
            route = _route(RouteTarget(verdict.target), confidence, "model", found)
            route = _with_metadata(route, self._model_metadata(verdict))
        return msgspec.structs.replace(route, cached=cached is not None) if route else None

    def _fall_back(self, message: str, found: Classification, talker: RouteTarget | None) -> MessageRoute:
        """Choose the current agent, else the Architect with a question."""
        if talker is not None:
            sure = found.probability(FOLLOW_UP) + found.probability(talker.value)
            return self._stay(message, found, talker, min(GUESS, sure))
        sure = min(GUESS, found.probability(RouteTarget.ARCHITECT.value))
        route = _route(RouteTarget.ARCHITECT, sure, "default", found)
        likeliest = next((RouteTarget(name) for name, _ in found.ranked if name != FOLLOW_UP), RouteTarget.ARCHITECT)
        route = _with_metadata(route, self._metadata(message, likeliest))
        return msgspec.structs.replace(route, question=_question(found))

    def _stay(self, message: str, found: Classification, talker: RouteTarget, confidence: float) -> MessageRoute:
        return _with_metadata(_route(talker, confidence, "follow-up", found), self._metadata(message, talker))

    def _metadata(self, message: str, target: RouteTarget) -> Metadata | None:
        return read_metadata(message, target, self._clock.now())

    def _model_metadata(self, verdict: ModelVerdict) -> Metadata | None:
        """Return the metadata that the model gave with the target."""
        intent = verdict.checked_intent()
        if intent is None:
            return None
        scope = snake_case(verdict.time_scope) if verdict.target == RouteTarget.ARCHIVALIST else ""
        metadata = Metadata(intent=intent, subject=snake_case(verdict.subject), time_scope=scope)
        return dated(metadata, self._clock.now())


def _open_model_classifier(model: Model) -> ModelClassifier:
    from clew.team.model_classifier import ModelClassifier  # only with a configured model

    return ModelClassifier(model)


def _classify(message: str) -> Classification:
    from clew.team.classifier import open_classifier  # loads numpy and the embedder, which commands do not need

    return open_classifier().classify(message)


def _check(message: str) -> None:
    if not message.strip():
        raise InvalidInput("message", "is empty")
    if len(message) > MAX_MESSAGE:
        raise InvalidInput("message", f"has more than {MAX_MESSAGE:,} characters")


def _read_agent(name: str) -> RouteTarget | None:
    """Return the current agent, or None. Raises InvalidInput."""
    if not name:
        return None
    found = next((each for each in AGENTS if each.value == name.lower()), None)
    if found is None:
        hint = f"Agents that talk to the user are {', '.join(AGENTS)}"
        raise InvalidInput("talking_to", f"{name[:50]!r} is not an agent", hint=hint)
    return found


def _route(target: RouteTarget, confidence: float, by: DecidedBy, found: Classification | None = None) -> MessageRoute:
    ranked = found.ranked[:SHOWN] if found is not None else ()
    candidates = [RouteCandidate(target=name, probability=round(share, 3)) for name, share in ranked]
    return MessageRoute(target=target, confidence=_rounded(confidence), decided_by=by, candidates=candidates)


def _rounded(confidence: float) -> float:
    """Round down to two digits, so that rounding never makes a decision certain."""
    return int(confidence * 100) / 100


def _with_metadata(route: MessageRoute, metadata: Metadata | None) -> MessageRoute:
    if metadata is None:
        return route
    return msgspec.structs.replace(
        route,
        intent=metadata.intent.value,
        subject=metadata.subject,
        time_scope=metadata.time_scope,
        since=metadata.since,
        until=metadata.until,
    )


def _question(found: Classification) -> str:
    """The question back to the user, which describes the likely targets; empty if the Architect is the likeliest."""
    if found.best == RouteTarget.ARCHITECT and found.ranked[0][1] >= EVEN:
        return ""
    likely = [RouteTarget(name) for name, share in found.ranked if share >= LIKELY and name != FOLLOW_UP]
    if not likely:
        return "What would you like to have done: a change, a question about the code, a review or something else?"
    return f"Is this {' or '.join(f'for the {each.value} ({DUTIES[each]})' for each in likely)}?"
