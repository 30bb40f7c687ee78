"""Which sources may answer a question at all, by its kind: what names no version does not say which, what names nobody
does not say who, and what changed does not say where something is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from clew.knowledge.evidence.naming import COMMIT_PREFIX
from clew.knowledge.history.changelog import CHANGELOG
from clew.knowledge.resolving.about_origins import read_origin, speaks_of
from clew.knowledge.resolving.choices import read_choice, says_choice
from clew.knowledge.resolving.definitions import distance_of
from clew.knowledge.resolving.intents import Classified
from clew.knowledge.resolving.phrases import Intent, Target
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node

_A_VERSION = re.compile(r"(?<![\w.])v?\d+\.\d+")
_A_NUMBER = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)")
_WHO_IS = re.compile(
    r"^(?:so |and )?who (?:is|are|was|were|'s|maintains?|owns?|leads?|runs?|sponsors?|funds?)\b", re.IGNORECASE
)
_PEOPLE = re.compile(
    r"maintain|owner|author|contributor|credit|sponsor|team|contact|people|govern|thank|backer", re.IGNORECASE
)
_CONDUCT = re.compile(r"conduct", re.IGNORECASE)
"""What asks something of those who work on a project does not say who they are."""


Suits = Callable[[Node], bool]
"""Whether a source may answer."""


def asks_who_is(question: str) -> bool:
    """Whether a question wants to know who somebody is, and not who did something."""
    return _WHO_IS.search(question) is not None


def suits_for(question: str, what: Classified, project: str) -> list[Suits]:
    """What a source must all fulfil to answer a question on a project of this name."""
    return list(_suits(question, what, project))


def _suits(question: str, what: Classified, project: str) -> Iterator[Suits]:
    origin = read_origin(question)
    if origin is not None and origin.is_version:
        yield lambda node: _says_version(node) and speaks_of(origin, _said(node))
    if origin is not None and origin.is_by_whom:
        yield _names_author
    choice = read_choice(question, project)
    if choice is not None:
        yield lambda node: says_choice(choice, _told_in(node))
    if what.intent is Intent.LOCATE and what.target is Target.LIBRARIAN:
        yield lambda node: node.metadata.get("kind") != CHANGELOG
    numbers = set(_A_NUMBER.findall(question)) if what.target is Target.ARCHIVALIST else set()
    if numbers:  # what was done with 2.7 says nothing of 3.7
        yield lambda node: numbers <= set(_A_NUMBER.findall(_said(node)))
    if asks_who_is(question):
        yield _names_people


def _said(node: Node) -> str:
    return f"{node.name}\n{node.content}"


def _told_in(node: Node) -> str:
    """What a source says in sentences. What an example says of itself is not said of the project."""
    if node.domain is not NodeDomain.CODE:
        return f"{node.name}\n\n{node.content}"
    return node.content.removeprefix(node.signature or "") if distance_of(node) == 0 else ""


def _says_version(node: Node) -> bool:
    """Whether a source says the number of a version, or is of one."""
    return bool(node.metadata.get("version")) or _A_VERSION.search(node.content) is not None


def _names_author(node: Node) -> bool:
    """Whether a source may say who did something: a commit, or what says who somebody is."""
    return node.id.startswith(COMMIT_PREFIX) or _names_people(node)


def _names_people(node: Node) -> bool:
    """Whether a source may say who somebody is: a note, or a document about those who work on something."""
    if node.domain is NodeDomain.HISTORY:
        return not node.path and not node.id.startswith(COMMIT_PREFIX)
    place = f"{node.path or ''} {node.name}"
    return _PEOPLE.search(place) is not None and _CONDUCT.search(place) is None
