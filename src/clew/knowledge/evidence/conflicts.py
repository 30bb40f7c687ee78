"""Sources that disagree: which one to believe, how a disagreement is noticed, and where it is kept until somebody has
settled it (SYL-84, SYL-85)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations

import msgspec

from clew.catalog.text import inline
from clew.knowledge.evidence.naming import COMMIT_PREFIX
from clew.knowledge.evidence.opposites import are_opposed
from clew.knowledge.evidence.trust import level_of, trust_of
from clew.knowledge.text import coverage, stems
from clew.trail.kinds import ConflictKind, NodeDomain
from clew.trail.nodes import UNVERIFIED, Node

APART = timedelta(days=30)
CLAIM = range(11, 200)
"""How many letters a sentence has that counts as a claim."""
SHARED_WORDS, WORD_LETTERS = 2, 4
SAME_SUBJECT = 0.5
"""More than this share of the shorter subject's words is in the other."""
MOST_CLAIMS = 200
"""So many claims are compared with each other; those of the first nodes."""

_SENTENCE = re.compile(r"[.!?](?=\s|$)|\n")
_USES = re.compile(r"\buses\s+[`'\"]?([\w.+#/-]*\w)")
_WORD = re.compile(r"\w+")


class Winner(msgspec.Struct, frozen=True, kw_only=True):
    """The one of two nodes to believe, and why."""

    node: Node
    reason: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two nodes that disagree on a subject, and which one to believe, where that is known. `id` and `detected_at` are
    set once it is on the trail."""

    kind: ConflictKind
    description: str
    resolution: str = ""
    subject: str = ""
    node_a: str = ""
    node_b: str = ""
    id: str = ""
    resolved: bool = False
    detected_at: datetime | None = None
    resolved_at: datetime | None = None


def winner(a: Node, b: Node, at: datetime) -> Winner:
    """Which of two to believe at a moment: code over anything else, then the more trusted, then the newer one."""
    for one, other in ((a, b), (b, a)):
        if one.domain is NodeDomain.CODE and other.domain is not NodeDomain.CODE:
            return Winner(node=one, reason="code is the source of truth")
    trust_a, trust_b = trust_of(a, at), trust_of(b, at)
    if trust_a != trust_b:
        better = a if trust_a > trust_b else b
        high, low = (level_of(trust)[0] for trust in sorted((trust_a, trust_b), reverse=True))
        return Winner(node=better, reason=f"higher trust: {high} over {low}")
    return Winner(node=a if a.at > b.at else b, reason="equally trusted, the newer one counts")


def detect(nodes: Sequence[Node], at: datetime, *, in_code: Callable[[str], bool] | None = None) -> list[Conflict]:
    """The conflicts among nodes: over time, then history against code, then in what they say.

    `in_code` tells whether a name stands anywhere in the code; without it only the given nodes of code are looked at.
    What was superseded is settled and takes no part; nor do commits, which tell of what was done and not of what is.
    """
    standing = [node for node in nodes if node.superseded_by is None and not node.id.startswith(COMMIT_PREFIX)]
    found = [*_over_time(standing, at), *_against_code(standing, in_code), *_in_words(standing, at)]
    return [*found, *_opposed(standing, at)]


def claims_of(text: str) -> list[str]:
    """The sentences of a text that are long enough to claim something and short enough to be one claim."""
    sentences = (each.strip() for each in _SENTENCE.split(text.removeprefix(UNVERIFIED)))
    return [each for each in sentences if len(each) in CLAIM]


def _over_time(nodes: Sequence[Node], at: datetime) -> Iterator[Conflict]:
    """The oldest and the newest of what has one name, where they are far apart and do not say the same. Code has no
    age: it is what is so now."""
    named: dict[str, list[Node]] = {}
    for node in nodes:
        named.setdefault(_folded(node.name), []).append(node)
    for subject, group in named.items():
        oldest, newest = min(group, key=lambda node: node.at), max(group, key=lambda node: node.at)
        days = (newest.at - oldest.at).days
        if oldest.domain is newest.domain is NodeDomain.CODE:
            continue
        if newest.at - oldest.at > APART and _folded(oldest.content) != _folded(newest.content):
            told = f"what is known of '{inline(subject)}' spans {days} days; the older part may be out of date"
            yield _conflict(ConflictKind.TEMPORAL, subject, oldest, newest, told, _believe(oldest, newest, at))


def _against_code(nodes: Sequence[Node], in_code: Callable[[str], bool] | None) -> Iterator[Conflict]:
    """Claims of history that something is used that no code mentions."""
    code = [node for node in nodes if node.domain is NodeDomain.CODE]
    texts = [f"{node.name} {node.signature or ''} {node.content}".casefold() for node in code]
    for node in nodes:
        for claim in claims_of(node.content) if code and node.domain is NodeDomain.HISTORY else ():
            missing = [used for used in _used(claim) if not any(used in text for text in texts)]
            if any(in_code is None or not in_code(used) for used in missing):
                told = f"history says '{inline(claim)}', but the code shows nothing of it"
                believe = "the code; it is the source of truth"
                yield _conflict(ConflictKind.SOURCE_MISMATCH, claim, node, code[0], told, believe)


def _in_words(nodes: Sequence[Node], at: datetime) -> Iterator[Conflict]:
    """Pairs of claims of two nodes that different things are used by the same and for the same. Code is not among
    them: its words are no statements."""
    claims = [
        (node, claim, used, _words(claim))
        for node in nodes
        if node.domain is not NodeDomain.CODE
        for claim in claims_of(node.content)
        if (used := _used(claim))
    ]
    for (a, first, uses_a, words_a), (b, second, uses_b, words_b) in combinations(claims[:MOST_CLAIMS], 2):
        shared = words_a & words_b
        is_other = a.id != b.id and uses_a.isdisjoint(uses_b)
        if is_other and len(shared) >= SHARED_WORDS and _is_of_the_same(first, second):
            told = f"'{inline(first)}' contradicts '{inline(second)}'"
            yield _conflict(ConflictKind.SEMANTIC, " ".join(sorted(shared)), a, b, told, _believe(a, b, at))


def _opposed(nodes: Sequence[Node], at: datetime) -> Iterator[Conflict]:
    """Pairs of nodes, one of them noted here, that say different numbers of the same, or the opposite. Code is not
    among them: its words are no statements."""
    told = [(node, claim) for node in nodes if node.domain is not NodeDomain.CODE for claim in claims_of(node.content)]
    seen: set[frozenset[str]] = set()
    for (a, first), (b, second) in combinations(told[:MOST_CLAIMS], 2):
        pair, is_noted = frozenset((a.id, b.id)), any(_is_noted(node) for node in (a, b))
        if len(pair) == 2 and is_noted and pair not in seen and are_opposed(first, second):
            seen.add(pair)
            shared = " ".join(sorted(stems(first) & stems(second)))
            description = f"'{inline(first)}' contradicts '{inline(second)}'"
            yield _conflict(ConflictKind.SEMANTIC, shared, a, b, description, _believe(a, b, at))


def _is_noted(node: Node) -> bool:
    return node.domain is NodeDomain.HISTORY and not node.path


def _conflict(kind: ConflictKind, subject: str, a: Node, b: Node, description: str, resolution: str) -> Conflict:
    return Conflict(
        kind=kind, subject=subject, node_a=a.id, node_b=b.id, description=description, resolution=resolution
    )


def _believe(a: Node, b: Node, at: datetime) -> str:
    found = winner(a, b, at)
    return f"{inline(found.node.name)} of {found.node.at:%Y-%m-%d} ({found.reason})"


def _is_of_the_same(first: str, second: str) -> bool:
    """Whether two claims speak of one subject, which stands before `uses`, and where both say what for, of one
    purpose."""
    (subject_a, purpose_a), (subject_b, purpose_b) = _apart(first), _apart(second)
    is_purpose = not (purpose_a and purpose_b) or not purpose_a.isdisjoint(purpose_b)
    return is_purpose and coverage(subject_a, subject_b) > SAME_SUBJECT


def _apart(claim: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words before and after what is used."""
    found = _USES.search(claim.casefold())
    return (stems(claim[: found.start()]), stems(claim[found.end() :])) if found else (frozenset(), frozenset())


def _used(claim: str) -> frozenset[str]:
    return frozenset(_USES.findall(claim.casefold()))


def _words(claim: str) -> set[str]:
    return {word for word in _WORD.findall(claim.casefold()) if len(word) >= WORD_LETTERS}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
