"""Answers from references: what is kept from before, or the sources' own words, put into words by a model where there
is one and held against its sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.clock import Clock
from clew.errors import ModelError
from clew.knowledge.evidence.conflicts import Conflict, detect
from clew.knowledge.references.answers import NOTHING, Cited, Findings, Said, Worded, ask_model, cite, judge
from clew.knowledge.references.remembering import Memory
from clew.knowledge.references.wording import listed
from clew.llm.requests import Model
from clew.trail.nodes import ScoredNode

Compose = Callable[[Sequence[Cited]], str]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the library, and how it is answered. `settings` tell it from others in the same words; `approach`
    and `how` say more of a source, by the id of its node. Without a `task` no model is asked."""

    skill: str
    question: str
    settings: Mapping[str, Any]
    compose: Compose = listed
    task: str = ""
    approach: Mapping[str, str] = {}
    how: Mapping[str, str] = {}
    gaps: Sequence[str] = ()


class Answering:
    """Answers of one principal, kept across sessions."""

    def __init__(self, memory: Memory, clock: Clock, model: Model | None) -> None:
        self._memory, self._clock, self._model = memory, clock, model

    async def answer(self, asked: Asked, found: Sequence[ScoredNode]) -> Findings:
        """The answer that is kept, or else a new one."""
        if not found:
            return Findings(skill=asked.skill, question=asked.question, status="no_matches", text=NOTHING)
        nodes, model, now = [each.node for each in found], self._model if asked.task else None, self._clock.now()
        conflicts = detect(nodes, now)
        plain = _in_their_words(asked, found, conflicts, now)
        key = {"skill": asked.skill, "question": asked.question, "model": model is not None, **asked.settings}
        worded = kept = await self._memory.recall(key, nodes)
        if worded is None and model is not None:
            try:
                worded = await ask_model(model, asked.task, found, conflicts, asked.question, now)
            except ModelError as error:
                told = f"the model did not answer ({error.kind}); these are the sources' own words"
                return msgspec.structs.replace(plain, warnings=(*plain.warnings, told))
        if kept is None:
            await self._memory.keep(key, nodes, worded or Worded())
        if worded is not None and model is not None:
            plain = _put_into_words(plain, judge(worded.text, found, asked.question, now), worded.tokens)
        return msgspec.structs.replace(plain, is_cached=kept is not None)


def _in_their_words(
    asked: Asked, found: Sequence[ScoredNode], conflicts: Sequence[Conflict], now: datetime
) -> Findings:
    sources = tuple(_cite(asked, each, number, now) for number, each in enumerate(found, 1))
    return Findings(
        skill=asked.skill,
        question=asked.question,
        status="ok",
        text=asked.compose(sources),
        sources=sources,
        warnings=tuple(dict.fromkeys(each.warning for each in sources if each.warning)),
        conflicts=tuple(f"{each.description}; believe {each.resolution}" for each in conflicts),
        gaps=tuple(asked.gaps),
    )


def _cite(asked: Asked, found: ScoredNode, number: int, now: datetime) -> Cited:
    approach, how = asked.approach.get(found.node.id, ""), asked.how.get(found.node.id, "")
    return cite(found, number, asked.question, now, approach=approach, how=how)


def _put_into_words(plain: Findings, said: Said, tokens: int) -> Findings:
    return msgspec.structs.replace(
        plain,
        text=said.text,
        is_verified=said.is_verified,
        is_synthesised=True,
        warnings=(*plain.warnings, *said.doubts),
        tokens=tokens,
    )
