"""A model puts an answer into words; the sources check it. Unverified text is marked, and never cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.errors import ModelError
from clew.knowledge.evidence.conflicts import SourceConflict
from clew.knowledge.evidence.firewall import Ground, examine
from clew.knowledge.evidence.prompt import build_trust_prompt, parse_response
from clew.knowledge.evidence.provenance import annotate
from clew.knowledge.evidence.trust import Evidence
from clew.knowledge.nodes.node_store import UNVERIFIED, Node
from clew.llm.messages import Message
from clew.llm.requests import Model, ModelRequest
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys

MODEL_SECONDS = 30.0
"""The longest that a model may take."""


class Worded(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a model, or the reason why there are none."""

    text: str = ""
    problem: str = ""
    tokens: int = 0
    is_verified: bool = True
    warnings: tuple[str, ...] = ()


class ModelAnswer:
    """One model. `ground_of` returns the facts that its claims are checked against for a caller."""

    def __init__(self, model: Model, ground_of: Callable[[Principal], Ground]) -> None:
        self._model, self._ground_of = model, ground_of

    async def word(
        self,
        question: str,
        chosen: Sequence[Evidence],
        used: Sequence[Node],
        conflicts: Sequence[SourceConflict],
        *,
        by: Principal,
    ) -> Worded:
        """The answer in the words of the model; without text if it fails or cites no source."""
        prompt = mask_keys(build_trust_prompt(question, chosen, conflicts))
        try:
            async with asyncio.timeout(MODEL_SECONDS):
                said = await self._model.answer(ModelRequest(messages=(Message(role="user", content=prompt),)))
        except (ModelError, TimeoutError) as error:
            problem = f"the model did not answer: {inline(str(error)) or 'it took too long'}"
            return Worded(problem=problem, warnings=(problem,))
        tokens = said.usage.input_tokens + said.usage.output_tokens
        tokens = tokens or count_tokens(prompt) + count_tokens(said.content)
        parsed = parse_response(said.content, chosen)
        if not parsed.sources:
            problem = "the model cited no source"
            return Worded(problem=problem, tokens=tokens, warnings=(problem,))
        content = mask_keys(said.content)
        verdict = await examine(content, [node.path for node in used if node.path], self._ground_of(by))
        is_verified = verdict.verified and not parsed.unknown
        text = annotate(content, used)
        unknown = (f"it cites [{number}], which is no source" for number in parsed.unknown)
        return Worded(
            text=text if is_verified else f"{UNVERIFIED} {text}",
            tokens=tokens,
            is_verified=is_verified,
            warnings=(*verdict.warnings, *unknown),
        )
