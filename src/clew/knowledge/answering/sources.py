"""Passages, commits and notes as nodes, and nodes as citations and lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from clew.catalog.operations.answers import Cited
from clew.catalog.operations.text import code_span, inline, plain
from clew.knowledge.answering.question import content_words
from clew.knowledge.code.excerpts import Excerpt
from clew.knowledge.code.files import ASIDE, TEST, is_changelog, kind_of
from clew.knowledge.code.models import node_id
from clew.knowledge.code.search.passages import BETWEEN, SYMBOL_KINDS
from clew.knowledge.code.search.search_index import PassageHit
from clew.knowledge.code.search.words import terms_of
from clew.knowledge.evidence.trust import Evidence, citation_of, level_of
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import UNVERIFIED, Node, ScoredNode
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys
from clew.trail.model.readable import find_words

EXCERPT = 160
MOST_LETTERS = 20_000
"""Characters of a text that are searched for the best sentence."""
MAX_CONTENT = 4_000
LINE = "line"
"""The kind of a place that is the lines of a message in code."""
SHORTEST_DOC = 20
"""A shorter description is not worth the room."""

_TYPES = {
    "function": NodeType.FUNCTION,
    "method": NodeType.METHOD,
    "class": NodeType.STRUCT,
    "interface": NodeType.INTERFACE,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SENTENCE = lazy_pattern(r"(?<=[.!?:])\s+|\n+")
_MARKUP = lazy_pattern(r"^(?:#{1,6}\s+|[-*+]\s+|\d{1,3}[.)]\s+)")


def passage_node(hit: PassageHit, found: Excerpt) -> ScoredNode:
    """A passage as a node: documents are literature, changelogs history, everything else code."""
    place, lines, symbol = hit.place, found.lines, found.symbol
    text = "\n".join(lines)[:MAX_CONTENT]
    is_prose = place.kind == "section"
    if is_prose and place.name and lines and place.name in lines[0]:  # the citation shows the heading as the owner
        text = text.partition("\n")[2].lstrip("=-~^#*+\n ") or text
    prose = NodeDomain.HISTORY if is_changelog(place.path) else NodeDomain.ACADEMIC
    domain = prose if is_prose else NodeDomain.CODE
    name = place.name or (next((line.strip() for line in lines if line.strip()), "") or place.path)
    node = Node(
        id=f"{node_id(place.path, place.name if place.kind in SYMBOL_KINDS else '')}:{place.start}",
        name=name,
        domain=domain,
        node_type=_node_type(place.kind, domain),
        content=text,
        path=place.path,
        package=BETWEEN.join(filter(None, (place.owner, place.name))) if is_prose or place.kind == LINE else None,
        line_start=place.start,
        line_end=place.end,
        content_hash=found.blob,
        signature=symbol.signature if symbol is not None else None,
        metadata={"kind": place.kind, "language": place.language, "doc": _doc_of(symbol) if symbol else ""},
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.GROUND if domain is NodeDomain.CODE else TrustLevel.STANDARD,
        created_at=_EPOCH,
    )
    return ScoredNode(node=node, similarity=min(1.0, hit.score))


def cite(chosen: Sequence[Evidence], used: Sequence[Node], question: str) -> tuple[Cited, ...]:
    """A citation for each node, numbered from 1."""
    return tuple(
        Cited(
            number=number,
            id=node.id,
            path=node.path or "",
            start=node.line_start or 0,
            end=node.line_end or node.line_start or 0,
            blob=node.content_hash or "",
            commit=node.id.removeprefix(COMMIT_PREFIX) if node.id.startswith(COMMIT_PREFIX) else "",
            text=_describe(node, each.content, question),
            kind=kind_of_node(node),
            owner=_owner(node),
            score=round(each.parts.similarity, 3),
            place=citation_of(node),
            trust=level_of(each.parts.trust)[0],
            warning=each.warning or level_of(each.parts.trust)[1],
        )
        for number, (each, node) in enumerate(zip(chosen, used, strict=True), 1)
    )


def kind_of_node(node: Node) -> str:
    """The kind of a source: a kind of code, `section`, `commit`, `change`, or the type of a note."""
    if node.id.startswith(COMMIT_PREFIX):
        return "commit"
    if node.metadata.get("kind") == "changelog":
        return "change"
    kind = node.metadata.get("kind")
    return kind if isinstance(kind, str) and node.path else node.node_type.label


def describe(node: Node) -> str:
    """A source on one line of markdown: code as written, prose from the sentence with most words of the question, a
    commit with its author."""
    return _describe(node, mask_keys(node.content), "")


def _describe(node: Node, content: str, question: str) -> str:
    """Like `describe`, given the content of the node without keys. Keys must be masked before the content is cut,
    because a key may span lines."""
    if node.domain is NodeDomain.CODE and node.signature:
        return _describe_code(node)
    bare = content.removeprefix(UNVERIFIED)
    said = bare[:MOST_LETTERS] or mask_keys(node.name)
    shown = inline(excerpt(said, question, EXCERPT), EXCERPT) + _aside(node)
    return shown if bare == content else f"{UNVERIFIED} {shown}"


def used_line(user: str, does: str, used: str, *, is_guess: bool) -> str:
    """A use as text."""
    guess = " (by its name alone)" if is_guess else ""
    return f"{code_span(mask_keys(user), EXCERPT)} {does} {code_span(mask_keys(used), EXCERPT)}{guess}"


def _owner(node: Node) -> str:
    """The class of a method, the symbol around a line, or the headings above a section."""
    if node.domain is NodeDomain.CODE and node.metadata.get("kind") != LINE:
        return plain(node.name.rpartition(".")[0], EXCERPT) if node.metadata.get("kind") in SYMBOL_KINDS else ""
    return plain(node.package or "", EXCERPT)


def _aside(node: Node) -> str:
    """The version and day of a change, the author of a commit."""
    if node.metadata.get("kind") == "changelog":
        day = [f"{node.timestamp:%Y-%m-%d}"] if node.timestamp is not None else []
        return f" · {inline(', '.join([str(node.metadata.get('version') or 'unreleased'), *day]), EXCERPT)}"
    if node.id.startswith(COMMIT_PREFIX) and node.authors:
        return f" · {inline(mask_keys(node.authors[0]), EXCERPT)}"
    return ""


def _describe_code(node: Node) -> str:
    code = code_span(mask_keys((node.signature or node.name)[: EXCERPT * 4]), EXCERPT)
    doc = str(node.metadata["doc"] if "doc" in node.metadata else _doc_of(node))
    room = EXCERPT - len(code)
    return f"{code} · {inline(mask_keys(doc[: EXCERPT * 4]), room)}" if doc and room >= SHORTEST_DOC else code


def _doc_of(node: Node) -> str:
    """The description of a symbol, which follows its signature."""
    return node.content.removeprefix(node.signature or "").strip()


def _node_type(kind: str, domain: NodeDomain) -> NodeType:
    if domain is NodeDomain.HISTORY:
        return NodeType.HISTORY_ENTRY
    return NodeType.DOCUMENTATION if domain is NodeDomain.ACADEMIC else _TYPES.get(kind, NodeType.FILE)


def path_distance(path: str, qualname: str = "") -> int:
    """The sort rank of a file or a symbol: 0 for product code, then other files, then tests."""
    bits = kind_of(path, qualname)
    return 2 if bits & TEST else 1 if bits & ASIDE else 0


def with_doc(symbol: Node) -> Node:
    """A symbol of the graph with its description apart from its signature."""
    return msgspec.structs.replace(symbol, metadata={**symbol.metadata, "doc": _doc_of(symbol)})


def excerpt(text: str, question: str, room: int) -> str:
    """The text from the sentence with the most words of the question on, after the first sentence of the text if that
    is short. If that sentence ends within the first `room` characters, the whole text. The result is on one line and is
    not cut to `room`."""
    said = [_MARKUP.sub("", part).strip() for part in _SENTENCE.split(text[:MOST_LETTERS])]
    sentences = list(dict.fromkeys(filter(None, said)))
    best = _best_sentence(sentences, question)
    whole = " ".join(sentences)
    if not best or len(" ".join(sentences[: best + 1])) <= room:
        return whole
    head = f"{sentences[0]} … " if len(sentences[0]) <= room // 3 else "… "
    return head + " ".join(sentences[best:])


def _best_sentence(sentences: list[str], question: str) -> int:
    """The index of the first sentence with the most words of the question; 0 if none has any."""
    wanted = {term for word in content_words(question) for term in terms_of(word)}
    found = [len(wanted & {term for word in find_words(each) for term in terms_of(word)}) for each in sentences]
    return found.index(max(found)) if found else 0
