"""Questions on which version, when or by whom something came or went: read here, and held against the lines of the
changelogs and the subjects of commits. Only a line whose object is the thing tells of its origin: what is added to it,
or for it, came later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from clew.knowledge.code.words import terms_of
from clew.knowledge.git.search import MADE, UNMADE
from clew.knowledge.git.tags import version_key
from clew.knowledge.history.changelog import ChangeKind, ChangeNote
from clew.knowledge.resolving.about_versions import is_of_kind
from clew.knowledge.resolving.definitions import is_name
from clew.knowledge.resolving.subjects import subject_words
from clew.trail.nodes import Node
from clew.trail.readable import find_words

MAX_LOOKED_AT = 500
MOST_WORDS = 5
"""What takes more words is a story, and no name of a thing."""

_KINDS: tuple[tuple[ChangeKind, str], ...] = (
    ("added", r"introduc(?:e[sd]?|ing)|add(?:s|ed|ing)?|brought|brings?|implement(?:s|ed)?|support(?:s|ed)?|available"),
    ("removed", r"remov(?:e[sd]?|ing)|dropp?(?:s|ed)?|delet(?:e[sd]?)"),
    ("deprecated", r"deprecat(?:e[sd]?)"),
)
_DONE = "|".join(f"(?P<{kind}{{0}}>{verbs})" for kind, verbs in _KINDS)
_THING = r"(?:the |a |an )?(?P<thing{0}>\S.{{0,120}}?)"
_ENDS = r"(?: (?:first|for the first time|here|in (?:this|the) \w+))?"
_VERSION = r"(?:in |since |from |with |as of )?(?:which|what) (?:version|release)"
_FORMS = (
    rf"{_VERSION} (?:of \S+ )?(?:has |have |first )*(?:{_DONE}) {_THING}",
    rf"{_VERSION} (?:was|were|is|are|has|have|did|does|got) {_THING} (?:been |be |first )*(?:{_DONE})",
    rf"when (?:was|were|has|have|did|got) {_THING} (?:been |be |first )*(?:{_DONE})",
)
_ASKED = tuple(re.compile(f"{form.format(at)}{_ENDS}", re.IGNORECASE) for at, form in enumerate(_FORMS))
_BY_WHOM = re.compile(
    rf"who (?:first )?(?:wrote|created|made|(?P<removed>{_KINDS[1][1]})|{_KINDS[0][1]}) {_THING.format('')}",
    re.IGNORECASE,
)
_GENERAL_WORDS = """
    support supported feature flag flags option options argument arguments parameter parameters method methods function
    functions class classes module command api setting property field
"""
_GENERAL = frozenset(_GENERAL_WORDS.split())
"""Words that say what kind of thing something is; a line that tells of it need not."""
_AS_WRITTEN = re.compile(r"(?<!\S)--?[a-z][\w-]+|(?<![\w.])v?\d+(?:\.\d+)+", re.IGNORECASE)
_CHORE = re.compile(
    r"\b(?:tests?|testing|docs?|document\w*|readme|typos?|fix(?:e[sd])?|examples?|lint\w*|changelog|merge|revert|ci|bump"
    r"|update[sd]?|refactor\w*|rename[sd]?|clean\w*|style|improve\w*)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"^(?:[^\w\s\[`'\"*(-]+\s+|\[[^\]]{1,80}\](?:\([^)]{1,300}\))?:?\s+|[\w/.-]{1,30}(?:\([\w-]{1,30}\))?!?:\s+|\*\*.{1,30}?\*\*:?\s*)+"
)
"""What may stand before a change: a sign, a ticket, the part that it is of, a label."""
_VERB = re.compile(
    r"^(?:(?:add|introduc|implement|support|allow|provid|remov|drop|delet|deprecat|creat|enabl)\w*\s+|new\s+|initial\s+"
    r"|basic\s+|a\s+|an\s+|the\s+|support\s+(?:for|of)\s+)+",
    re.IGNORECASE,
)
_ASIDE = r"\s(?:by|using|via|that|which|so|and|because|instead|[-–—]+)\s|[.;(]\s|\s\(|\.$"
_NARROWS = r"\s(?:to|in|on|for|with|when|if|of|from|as|into|at)\s"
_REST = re.compile(rf"{_ASIDE}|{_NARROWS}", re.IGNORECASE)
_BESIDE = re.compile(_ASIDE, re.IGNORECASE)
"""What follows the object of a line, and of that what does not narrow it: support for proxies is not all support."""
_LITTLE_WORDS = "new initial basic alpha beta now deprecated removed added old legacy more"
_LITTLE = _GENERAL | frozenset(_LITTLE_WORDS.split())
_UNSAID: tuple[ChangeKind, ...] = ("breaking", "changed", "other")
"""Kinds of changes that do not say whether something came or went."""
_IS_GONE = re.compile(r"\b(?:been|is|are|was|were|now) (?:now |been )*(?:removed|dropped|deleted)\b", re.IGNORECASE)
HALF, MOST, WHOLE = 0.5, 0.6, 1.0
"""The thing must be this share of the object of a commit that tells who made it, or of a line of a changelog; for the
version of a commit, which nobody wrote down as that of the thing, all of it."""


class OriginAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What came or went, by its words and by what must stand as it is written; `said` is what kind of thing it is said
    to be, `is_by_whom` where it is asked who did it, and `is_version` where only a version answers."""

    thing: str
    kind: ChangeKind
    words: tuple[str, ...]
    written: tuple[str, ...] = ()
    said: frozenset[str] = frozenset()
    is_by_whom: bool = False
    is_version: bool = False


def read_origin(question: str) -> OriginAsked | None:
    """What a question wants to know the origin or the end of; None where it asks for something else."""
    line = " ".join(question[:MAX_LOOKED_AT].split()).rstrip(" ?!.")
    for at, pattern in enumerate(_ASKED):
        if found := pattern.fullmatch(line):
            kind = next(kind for kind, _ in _KINDS if found[f"{kind}{at}"])
            return _asked(found[f"thing{at}"], kind, is_version=at < 2)
    found = _BY_WHOM.fullmatch(line)
    return _asked(found["thing"], "removed" if found["removed"] else "added", is_by_whom=True) if found else None


def notes_on(notes: Sequence[ChangeNote], asked: OriginAsked) -> list[ChangeNote]:
    """The released changes whose object it is, those first that have no other: of what came the earliest first, of what
    went the last."""
    told = (note for note in notes if note.version and _may_tell(note, asked.kind))
    found = [note for note in told if is_of_kind(note, asked.kind) and _is_object(asked, note.text)]
    known = [(key, note) for note in found if (key := version_key(note.version)) is not None]
    ordered = sorted(known, key=lambda each: each[0], reverse=asked.kind != "added")
    return sorted((note for _, note in ordered), key=lambda note: not _is_object(asked, note.text, WHOLE))


def _may_tell(note: ChangeNote, kind: ChangeKind) -> bool:
    """Whether a change is not told to be of another kind: what was deprecated before may be gone now."""
    return note.kind in (kind, *_UNSAID) or (kind == "removed" and _IS_GONE.search(note.text) is not None)


def commits_on(commits: Iterable[Node], asked: OriginAsked) -> list[Node]:
    """Those commits whose subject has it as its object and tells of no other work on it, in their order; those that say
    of what kind it is before the others, where the question does."""
    found = [node for node in commits if _is_of_kind(node.name, asked.kind) and _tells(node.name, asked)]
    return sorted(found, key=lambda node: not asked.said <= set(find_words(node.name.lower())))


def speaks_of(asked: OriginAsked, text: str) -> bool:
    """Whether a text has all that names the thing."""
    held = {term for word in find_words(text) for term in terms_of(word)}
    if not all(set(terms_of(word)) <= held for word in asked.words):
        return False
    return all(re.search(rf"(?<![\w.-]){re.escape(each)}(?![\w-])", text, re.IGNORECASE) for each in asked.written)


def _asked(thing: str, kind: ChangeKind, *, is_by_whom: bool = False, is_version: bool = False) -> OriginAsked | None:
    said = thing.strip(" '\"`")
    written = tuple(dict.fromkeys((*_AS_WRITTEN.findall(said), *(word for word in said.split() if is_name(word)))))
    words = subject_words(said)
    telling = tuple(words[:-1] if len(words) > 1 and words[-1] in _GENERAL else words)
    if not telling or len(telling) > MOST_WORDS:
        return None
    plain = tuple(each.strip("`'\"").removesuffix("()") for each in written)
    return OriginAsked(
        thing=said,
        kind=kind,
        words=telling,
        written=plain,
        said=_kind_said(said),
        is_by_whom=is_by_whom,
        is_version=is_version,
    )


def _kind_said(thing: str) -> frozenset[str]:
    return frozenset(thing.lower().split()[-1:]) & _GENERAL - {"support", "feature"}


def _tells(subject: str, asked: OriginAsked) -> bool:
    other = {found.lower() for found in _CHORE.findall(subject)} - set(asked.thing.lower().split())
    return not other and _is_object(asked, subject, HALF if asked.is_by_whom else WHOLE)


def _is_object(asked: OriginAsked, line: str, share: float = MOST) -> bool:
    """Whether a line is of the thing, by what stands between its verb and what follows that."""
    plain = _VERB.sub("", _BEFORE.sub("", line.strip()))
    object = (_BESIDE if share == WHOLE else _REST).split(plain, maxsplit=1)[0]
    own = {term for word in asked.words for term in terms_of(word)}
    words = [word for word in subject_words(object) if len(word) > 1 and word not in _LITTLE]
    others = [word for word in words if not own.issuperset(terms_of(word))]
    return speaks_of(asked, object) and len(asked.words) >= share * (len(asked.words) + len(others))


def _is_of_kind(subject: str, kind: ChangeKind) -> bool:
    words = set(find_words(subject.lower()))
    is_deprecated = any(word.startswith("deprecat") for word in words)
    if kind == "deprecated":
        return is_deprecated
    gone = is_deprecated or bool(words & {*UNMADE, "drops"})
    return gone if kind == "removed" else not gone or bool(words & set(MADE))
