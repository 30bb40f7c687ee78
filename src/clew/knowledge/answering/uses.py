"""Questions about uses: callers, importers, subclasses, implementations and tests.

A question asks for uses if it has a relation stem and a name that the index knows, in any wording.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from clew.errors import ClewError, InvalidInput, NotFound
from clew.knowledge.answering.messages import WHOLE
from clew.knowledge.answering.passage_search import EVERYWHERE
from clew.knowledge.answering.question import (
    STEM,
    STEMS,
    THINGS,
    AskedRelation,
    ParsedQuestion,
    RelationName,
    Tests,
    is_identifier,
)
from clew.knowledge.answering.sources import path_distance
from clew.knowledge.code.files import TEST, TEXT, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileFacts, SymbolLink, name_parts
from clew.knowledge.nodes.kinds import NodeType
from clew.knowledge.nodes.node_store import Node
from clew.lazy_pattern import lazy_pattern

MAX_DEFINITIONS = 5
MAX_FILES, MAX_PASSAGES = 50, 200
MAX_TEST_DEPTH = 3
MAX_LINE = 500
"""Letters of a line that are looked at."""

_FORWARD = (
    r"\b(?:does|do|did) (?!we\b|i\b|you\b|they\b)[`'\"]?(?P<name>[\w.$:#]+)(?:\(\))?[`'\"]? (?:\w+ )?(?:{stems})\b"
)
"""The name before a relation stem: the question asks for the symbols that the name uses."""
_WORD = lazy_pattern(r"[A-Za-z_$@][\w$@/.:#-]*!?")
_IN = lazy_pattern(r"\b(?:in|below|under|inside|within) (?:the )?[`'\"]?(?P<place>[\w./-]+)[`'\"]?", re.IGNORECASE)
_SAID = {"calls": "calls", "imports": "imports", "inherits": "inherits from", "implements": "implements"}
_EDGES: dict[RelationName, tuple[str, ...]] = {
    "calls": ("calls",),
    "imports": ("imports", "extends"),
    "extends": ("extends", "implements"),
    "uses": ("calls", "references", "imports", "extends", "implements"),
    "tests": ("calls", "references", "imports"),
}
_FACTS = {"imports": ("imports", "inherits from"), "extends": ("inherits from",)}
"""The kinds of use of a foreign name that answer a relation. Ruby imports a module by including it."""
_VERBS = {"call": "calls", "inherit": "inherits from"}
_PACKAGE_FILES = ("__init__", "index", "mod")
_COMMENTS = ("//", "#", "*", "/*", "--", '"""')


class Relation(NamedTuple):
    """A relation that a question asks for. `backwards` asks for users of the name, else for the symbols that it uses.
    `within` is a folder or file that limits the answer."""

    edge: RelationName
    name: str
    definitions: Sequence[Node]
    backwards: bool = True
    within: str = ""


class CodeUse(NamedTuple):
    """One use with its place, as `user does used`. A guess rests on the name alone; `depth` counts the steps between
    both."""

    path: str
    line: int
    blob: str
    user: str
    does: str
    used: str
    is_guess: bool = False
    depth: int = 1


async def read_relation(question: ParsedQuestion, asked: AskedRelation, code: CodeGraph) -> Relation | None:
    """The relation that a question asks for, and the name that it is about. None if the question has no known name."""
    edge = asked.name
    forward = re.search(_FORWARD.replace("{stems}", STEMS[edge]), question.text, re.IGNORECASE)
    for name in _candidates(question, asked, forward["name"] if forward else ""):
        definitions = await code.named(name)
        exact = [node for node in definitions if _last_part(node.name) == _last_part(name)]
        if not _is_asked_of(name, question):
            continue
        if edge == "imports":
            exact += await _modules(code, name)
        if exact or _may_be_foreign(name, edge, question):
            return Relation(
                edge=edge,
                name=name,
                definitions=sorted(exact, key=_distance)[:MAX_DEFINITIONS],
                backwards=forward is None,
                within=await _place_in(question, code),
            )
    return None


async def find_uses(code: CodeGraph, relation: Relation, question: ParsedQuestion) -> list[CodeUse]:
    """The uses, certain ones before guesses, the product before its tests."""
    found: dict[tuple[str, int], CodeUse] = {}
    for node in relation.definitions:
        for use in await _linked(code, relation, node):
            found.setdefault((use.path, use.line), use)
    for use in await _unlinked(code, relation, has_links=bool(found)):
        found.setdefault((use.path, use.line), use)
    if relation.edge == "tests":
        wanted = [use for use in found.values() if kind_of(use.path, use.user) & TEST]
    else:
        wanted = [use for use in found.values() if _is_wanted(use, question)]
    wanted = [use for use in wanted if not relation.within or _is_within(use.path, relation.within)]
    return sorted(
        wanted, key=lambda use: (use.is_guess, use.depth, path_distance(use.path, use.user), use.path, use.line)
    )


async def _linked(code: CodeGraph, relation: Relation, node: Node) -> list[CodeUse]:
    """Uses along the edges of the graph; overrides of a method are the methods of the same name."""
    if relation.edge == "extends" and node.node_type in (NodeType.METHOD, NodeType.FUNCTION):
        return [_definition_use(node)]
    depth = MAX_TEST_DEPTH if relation.edge == "tests" else 1
    look = code.dependents if relation.backwards else code.dependencies
    found = []
    for edge in _EDGES[relation.edge]:
        try:
            links = await look(node.id, edge_type=edge, depth=depth)
        except (NotFound, InvalidInput):  # the symbol is gone, or another one has its name now
            continue
        found += [_use(node, link, backwards=relation.backwards) for link in links]
    return found


async def _unlinked(code: CodeGraph, relation: Relation, *, has_links: bool) -> list[CodeUse]:
    """Uses without an edge in the graph: calls of a name on an unknown receiver, imports and subclasses of foreign
    names, and lines that mention a name."""
    is_module = all(node.node_type is NodeType.FILE for node in relation.definitions)  # a package may have its name
    if not relation.backwards or (has_links and relation.edge in ("imports", "extends") and not is_module):
        return []
    if relation.edge in ("imports", "extends"):
        has_imports = has_links and relation.edge == "imports"
        return await _by_facts(code, relation, ("imports",) if has_imports else _FACTS[relation.edge])
    if not relation.definitions:
        return []
    calls = await _named_calls(code, relation)
    if calls or has_links or relation.edge == "tests":
        return calls
    return await _by_facts(code, relation, ("calls",), is_guess=True) or await _mentions(code, relation)


async def _by_facts(
    code: CodeGraph, relation: Relation, verbs: Sequence[str], *, is_guess: bool = False
) -> list[CodeUse]:
    """Imports of a name, classes that inherit from it, or calls of it, in the files that have the name."""
    return [
        CodeUse(path, line, "", path, does, relation.name, is_guess=is_guess)
        for path, facts in await code.facts_of(relation.name, limit=MAX_FILES)
        for line, does in dict(_used_lines(facts, relation.name, verbs)).items()
    ]


def _used_lines(facts: FileFacts, name: str, verbs: Collection[str]) -> Iterator[tuple[int, str]]:
    """The lines of a file that use a name in one of some ways, and how."""
    wanted, last = name_parts(name), _last_part(name)
    of_kind = {kind: verb for kind, verb in _VERBS.items() if verb in verbs}
    for used in facts.references:
        if used.kind in of_kind and last in used.target and _last_part(used.target) == last:
            yield used.line, of_kind[used.kind]
    base = re.compile(rf"(?<!\w){re.escape(last)}(?!\w)")
    for each in facts.symbols if "inherits from" in verbs else ():
        if each.kind in ("class", "interface") and base.search(each.signature.partition(each.name)[2]):
            yield each.line_start, "inherits from"
    for item in facts.imports if "imports" in verbs and wanted else ():
        if wanted[-1] in item.module or wanted[-1] in item.name:
            parts = [*name_parts(item.module.strip("<>")), *name_parts(item.name)]
            if any(parts[at : at + len(wanted)] == wanted for at in range(len(parts))):
                yield item.line, "imports"


async def _mentions(code: CodeGraph, relation: Relation) -> list[CodeUse]:
    """Lines of code that have a name, without its definitions and without comments."""
    own = {(node.path, line) for node in relation.definitions for line in (node.line_start, node.line_end)}
    name = _last_part(relation.name)
    named = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    hits = await code.passages([name], shares=EVERYWHERE, limit=MAX_PASSAGES, cover=WHOLE)

    def find(text: str) -> list[int]:
        lines = enumerate(text.split("\n"))
        return [at for at, line in lines if named.search(line[:MAX_LINE]) and not line.lstrip().startswith(_COMMENTS)]

    places = [hit.place for hit in hits if not kind_of(hit.place.path) & TEXT]
    return [
        CodeUse(place.path, place.start + at, place.blob, place.path, "mentions", relation.name, is_guess=True)
        for place, lines in await code.find_in(places, find, limit=MAX_PASSAGES)
        for at in lines
        if (place.path, place.start + at) not in own
    ]


async def _named_calls(code: CodeGraph, relation: Relation) -> list[CodeUse]:
    try:
        calls = await code.unresolved_calls(relation.name)
    except ClewError:
        return []
    return [CodeUse(call.path, call.line, "", call.caller, "calls", relation.name, is_guess=True) for call in calls]


def _candidates(question: ParsedQuestion, asked: AskedRelation, first: str) -> list[str]:
    """Words that may be the name: identifiers, paths of modules, then plain words after the stem and before it."""
    plain = [found[0].strip(".,:?").removesuffix("()") for found in _WORD.finditer(question.text[asked.end :])]
    before = [found[0] for found in _WORD.finditer(question.text[: asked.start])]
    near = [
        word
        for word in (*plain[:4], *reversed(before[-3:]))
        if word.rstrip("!") in question.words or "-" in word or "/" in word
    ]
    spelled = [path for path in question.paths if "/" not in path]  # `Response.json` may be a method
    return list(dict.fromkeys(filter(None, (first, *question.names, *spelled, *near))))


async def _modules(code: CodeGraph, name: str) -> list[Node]:
    """The files of the modules and packages of a name, which may be dotted or a path."""
    wanted = name_parts(name)
    if not wanted:
        return []
    possible = [file.path for file in await code.files() if file.language and wanted[-1] in file.path]
    paths = [
        path for path in possible if _module_parts(path)[-len(wanted) :] == wanted or f"/{path}".endswith(f"/{name}")
    ]
    paths.sort(key=path_distance)
    found = []
    for path in paths[:MAX_DEFINITIONS]:
        with suppress(NotFound):  # the file is gone
            found.append(await code.symbol(path))
    return found


def _module_parts(path: str) -> list[str]:
    *folders, file = path.split("/")
    stem = file.partition(".")[0]
    return folders if stem in _PACKAGE_FILES else [*folders, stem]


def _is_asked_of(name: str, question: ParsedQuestion) -> bool:
    """Whether a name can be the subject of the relation. An identifier always can. A plain word can only if it is
    capitalized or the question has no other content word."""
    if is_identifier(name) or name in question.names or not name.isalpha():
        return True
    others = [word for word in question.words if word != name and not STEM.fullmatch(word)]
    others = [word for word in others if not re.fullmatch(THINGS, word, re.IGNORECASE)]
    return name[0].isupper() or not others


def _may_be_foreign(name: str, edge: RelationName, question: ParsedQuestion) -> bool:
    """Whether a name without a definition may be an external package or class."""
    return edge in ("imports", "extends") and (
        is_identifier(name) or "-" in name or "/" in name or name in question.words
    )


async def _place_in(question: ParsedQuestion, code: CodeGraph) -> str:
    """The folder or file that the question limits the answer to."""
    for found in _IN.finditer(question.text):
        place = found["place"].strip("./").rstrip(".")
        if place and any(_is_within(file.path, place) for file in await code.files()):
            return place
    return ""


def _is_within(path: str, place: str) -> bool:
    return f"/{path}".startswith(f"/{place}/") or f"/{place}/" in f"/{path}" or f"/{path}".endswith(f"/{place}")


def _is_wanted(use: CodeUse, question: ParsedQuestion) -> bool:
    is_test = bool(kind_of(use.path, use.user) & TEST)
    return not (is_test and question.tests is Tests.NEVER) and (is_test or question.tests is not Tests.ONLY)


def _definition_use(node: Node) -> CodeUse:
    owner, _, name = node.name.rpartition(".")
    line = node.line_start or 1
    return CodeUse(node.path or "", line, node.content_hash or "", owner or (node.path or ""), "implements", name)


def _use(node: Node, link: SymbolLink, *, backwards: bool) -> CodeUse:
    user, used = (link.node, node) if backwards else (node, link.node)
    does = _SAID.get(link.edge_type, "refers to") if link.depth == 1 else "reaches"
    place = user.path or "", link.line, user.content_hash or ""
    return CodeUse(*place, user.name, does, used.name, is_guess=link.is_guess, depth=link.depth)


def _last_part(name: str) -> str:
    return re.split(r"[./:#]", name.removesuffix("()"))[-1]


def _distance(node: Node) -> tuple[int, int, str]:
    return path_distance(node.path or "", node.name), -((node.line_end or 0) - (node.line_start or 0)), node.path or ""
