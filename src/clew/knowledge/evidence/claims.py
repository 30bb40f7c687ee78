"""What a text claims of the code, by three patterns: `we use X for Y`, `X implements Y`, `the X is in Y`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from clew.trail.nodes import Node, ScoredNode

ClaimKind = Literal["uses", "implements", "location"]
NEAR = 0.7
"""From this similarity on, a piece of history is about the same."""
MOST_TEXT = 100_000
"""So many letters of a text are looked through."""

_STOPS = ".,;:!?)"
_NAME = r"[`'\"]?(\w[\w.+#/-]{0,200}?)[`'\"]?"
_END = r"(?=[.,;:!?)]*(?:\s|$))"
_PATTERNS: tuple[tuple[ClaimKind, re.Pattern[str]], ...] = (
    ("uses", re.compile(rf"\bwe\s+use\s+{_NAME}\s+for\s+{_NAME}{_END}", re.IGNORECASE)),
    ("implements", re.compile(rf"(?<![\w.]){_NAME}\s+implements\s+{_NAME}{_END}", re.IGNORECASE)),
    ("location", re.compile(rf"\bthe\s+{_NAME}\s+is\s+in\s+[`'\"]?([^\s`'\"]{{1,400}})", re.IGNORECASE)),
)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement on the code. `subject` is what the code must have; `object` is the purpose of what is used, what is
    implemented, or the place."""

    kind: ClaimKind
    text: str
    subject: str
    object: str

    @property
    def topic(self) -> str:
        """What the claim answers: the purpose of what is used, else its subject. Two claims of one kind and topic that
        differ cannot both be right."""
        return (self.object if self.kind == "uses" else self.subject).casefold()

    @property
    def answer(self) -> str:
        return (self.subject if self.kind == "uses" else self.object).casefold()

    @property
    def question(self) -> str:
        """The claim without its answer: what others who speak of the same are near to, whatever they answer."""
        match self.kind:
            case "uses":
                return f"we use for {self.object}"
            case "implements":
                return f"{self.subject} implements"
            case _:
                return f"the {self.subject} is in"


def find_claims(text: str) -> list[Claim]:
    """The claims of a text, by pattern and then by place; the same claim once."""
    found = dict.fromkeys(claim for kind, pattern in _PATTERNS for claim in _claims(kind, pattern, text[:MOST_TEXT]))
    return list(found)


def disagreeing(claim: Claim, found: Sequence[ScoredNode]) -> list[Node]:
    """The nodes, out of those that are about the same, that make another claim of the same kind on the same topic."""
    near = (each.node for each in found if each.similarity >= NEAR)
    return [node for node in near if any(_disagree(claim, other) for other in find_claims(node.content))]


def _claims(kind: ClaimKind, pattern: re.Pattern[str], text: str) -> Iterator[Claim]:
    for match in pattern.finditer(text):
        subject, place = match[1], match[2].rstrip(_STOPS)
        if place:
            yield Claim(kind=kind, text=" ".join(match[0].split()).rstrip(_STOPS), subject=subject, object=place)


def _disagree(one: Claim, other: Claim) -> bool:
    return one.kind == other.kind and one.topic == other.topic and one.answer != other.answer
