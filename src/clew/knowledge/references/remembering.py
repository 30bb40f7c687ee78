"""What a model said is kept on the trail, so that the same question in another session costs nothing. It holds for a
day, and only while its sources and their content are the same. Whoever recalls it holds it against them again: a kept
text is believed no more than a new one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.knowledge.references.answers import Worded
from clew.knowledge.resolving.cache import LIFETIMES
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.upsert import find_keyed, keep_keyed
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Draft
from clew.trail.node import as_text
from clew.trail.nodes import Node
from clew.trail.store import Trail

SCHEMA = "system.research.v1"
LIFETIME = LIFETIMES[Target.ACADEMIC, Intent.GENERAL]


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    rests_on: str
    until: str
    text: str
    tokens: int


class Memory:
    """Kept answers of one owner. Who may see more than others has answers of their own, which others cannot read."""

    def __init__(self, trail: Trail, clock: Clock, by: Principal) -> None:
        self._trail, self._clock, self._by = trail, clock, by

    async def recall(self, asked: Mapping[str, Any], nodes: Sequence[Node]) -> Worded | None:
        """What was said to what was asked, where it is kept and still holds."""
        found = await find_keyed(self._trail, self._key(asked), by=self._by)
        if found is None or found.schema_name != SCHEMA:
            return None
        try:
            kept = msgspec.convert(found.context, _Kept)
        except msgspec.ValidationError:
            return None  # somebody else wrote something there
        is_over = kept.until <= as_text(self._clock.now(), "now")
        return None if is_over or kept.rests_on != rests_on(nodes) else Worded(text=kept.text, tokens=kept.tokens)

    async def keep(self, asked: Mapping[str, Any], nodes: Sequence[Node], worded: Worded) -> None:
        """Keep what was said for the next who asks, if the caller may write at all."""
        if LIFETIME is None:
            return
        until = as_text(self._clock.now() + LIFETIME, "until")
        kept = _Kept(rests_on=rests_on(nodes), until=until, text=worded.text, tokens=worded.tokens)
        title = inline(mask_keys(f"{asked['skill']}: {asked['question']}"), 200)
        draft = Draft(title=title, context=msgspec.to_builtins(kept), schema_name=SCHEMA)
        await keep_keyed(self._trail, self._key(asked), draft, by=self._by)

    def _key(self, asked: Mapping[str, Any]) -> str:
        plain = msgspec.json.encode([_folded(asked), sorted(self._by.scopes)], order="deterministic")
        return f"research:{hashlib.sha256(plain).hexdigest()}"


def rests_on(nodes: Sequence[Node]) -> str:
    """A digest of sources: another one means other sources, another order, or another content."""
    told = [(node.id, node.content, node.content_hash, node.verified, node.superseded_by) for node in nodes]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


def _folded(value: Any) -> Any:
    """What was asked without runs of blanks. Case stays: a name in capitals may find other sources."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return {key: _folded(each) for key, each in value.items()}
    return [_folded(each) for each in value] if isinstance(value, list | tuple) else value
