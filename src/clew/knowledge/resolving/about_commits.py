"""Questions on commits: one by its name, those that touched a file or a symbol, those of an author. What they name is
read here; whether there is such a thing, the log tells."""

from __future__ import annotations

import re

import msgspec

from clew.knowledge.resolving.definitions import THE

MAX_LOOKED_AT = 500

_SHA = re.compile(
    r"\bcommit:? ['\"`]?(?P<named>[0-9a-f]{4,40})\b|(?<!\w)(?P<plain>(?=[0-9a-f]*\d)[0-9a-f]{7,40})(?!\w)"
)
_TELLS_OF_ONE = re.compile(
    r"^(?:please )?(?:(?:commit|show|describe|explain|tell me about|what|which|who|when)\b|[0-9a-f]{7,40}$)",
    re.IGNORECASE,
)
_VERBS = (
    r"(?:changed|change|changes|touched|touch|touches|modified|modify|edited|edit|updated|update|worked on|work on"
    r"|fixed|committed to)"
)
_MAKES = r"(?:wrote|written|created|create|added|add|introduced|introduce|made)"
_LATELY = r"(?: (?:last|most recently|recently|lately|at last))?"
_SHOW = r"(?:(?:show|list|find|give|tell) (?:me )?)?(?:(?:all|the|my|our|any) )*"
_NEW = r"(?P<last>last |latest |newest |most recent )?(?:recent )?"
_THING = r"(?:(?:the|this|our|that) )?(?:file |folder |directory |module )?['\"`]?(?P<thing>[^'\"`]+?)['\"`]?"
_OF_THINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"who (?:has |have |was it that )?(?P<last>last )?(?:{_VERBS}|(?P<first>{_MAKES}))"
        rf" {_THING}(?P<lately>{_LATELY})",
        rf"when (?:was|were|has|have|did) {_THING} (?:been |be |get )?(?P<last>last |most recently )?"
        rf"(?:{_VERBS}|(?P<first>{_MAKES}))(?P<lately>{_LATELY})",
        rf"(?:which|what) (?P<last>last )?commits? (?:has |have |did )?(?:last )?"
        rf"(?:{_VERBS}|(?P<first>{_MAKES})) {_THING}(?P<lately>{_LATELY})",
        rf"(?:what (?:is|was|are|were) )?{_SHOW}{_NEW}(?:commits?|changes?|edits?)"
        rf" (?:to|of|in|on|for|touching|changing|that {_VERBS}) {_THING}(?P<lately>{_LATELY})",
        rf"(?:what (?:is|was) )?{_SHOW}(?:git |commit )?(?:history|log) (?:of|for) {_THING}",
        rf"what (?:has |have |was |were |is )?(?:been )?(?:changed|done|new) (?:in|to|with|on)"
        rf" {_THING}(?P<lately>{_LATELY})",
    )
)
_ABOUT = r"(?: (?:in|to|on|about|of) (?P<topic>.+?))?"
_OF_AUTHORS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"what (?:did|has|have) (?P<who>.+?) (?:been )?(?:change|changed|do|done|commit|committed|work on|worked on"
        rf"|working on|fix|fixed|add|added|contribute|contributed|remove|removed|touch|touched){_ABOUT}{_LATELY}",
        rf"{_SHOW}{_NEW}(?:commits?|changes?|work|contributions?) (?:by|from|of|made by) (?P<who>.+?){_ABOUT}{_LATELY}",
        rf"(?:which|what) commits? (?:are|were) (?:by|from) (?P<who>.+?){_LATELY}",
    )
)
_NUMBER_NAMES = "two three four five six seven eight nine ten"
_NUMBERS = {word: number for number, word in enumerate(_NUMBER_NAMES.split(), 2)}
_LAST = re.compile(
    rf"(?:(?:what|which)\b(?: \w+){{0,4}}? |{_SHOW})?(?:the )?(?:last|latest|newest|most recent)"
    rf" (?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)}) commits(?: made| here| by whom)?"
    r"|who (?:made|wrote|did|is behind|has made) the (?:last|latest|newest|most recent) (?:commit|change)",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(
    r"how many commits(?: (?:were|are|have been|did we|do we))?(?: (?:there|made|make|done|committed|have))?"
    r"(?: (?:here|in all|in total|so far))?(?: by (?P<who>\S.{0,80}))?",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"{THE}", re.IGNORECASE)
_NOBODY = frozenset(("we", "i", "you", "they", "it", "this", "that", "he", "she", "people", "everyone", "the team"))


class ThingAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What was touched: a path, the name of a file or of a symbol. `is_last` where only the last commit is asked for,
    `is_first` where it is the one that made it."""

    thing: str
    is_last: bool = False
    is_first: bool = False


class AuthorAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be an author, and of what."""

    who: str
    topic: str = ""


def read_sha(question: str) -> tuple[str, bool] | None:
    """The name of a commit that a question wants to be told of, and whether it can be nothing else."""
    found = _SHA.search(question[:MAX_LOOKED_AT])
    if found is None or not _TELLS_OF_ONE.match(question.strip()):
        return None
    return found["named"] or found["plain"], found["named"] is not None and any(map(str.isdigit, found["named"]))


def read_last(question: str) -> int:
    """How many of the last commits a question wants; 0 where it asks for something else."""
    found = _LAST.fullmatch(_plain(question))
    if found is None:
        return 0
    said = (found["count"] or "1").lower()
    return int(said) if said.isdecimal() else _NUMBERS[said]


def read_count(question: str) -> str | None:
    """Whose commits a question wants to have counted, empty for those of all; None where it asks for something else."""
    found = _HOW_MANY.fullmatch(_plain(question))
    return None if found is None else found["who"] or ""


def read_thing(question: str) -> ThingAsked | None:
    """The thing whose changes a question wants to know; None where it asks for something else."""
    line = _plain(question)
    for pattern in _OF_THINGS:
        found = pattern.fullmatch(line)
        if found is not None:
            parts = found.groupdict()
            is_last = bool(parts.get("last") or parts.get("lately", "").strip() in ("last", "most recently"))
            thing = _AFTER.sub("", found["thing"], count=1).strip().removesuffix("()")
            return ThingAsked(thing=thing, is_last=is_last, is_first=bool(parts.get("first")))
    return None


def read_authors(question: str) -> list[AuthorAsked]:
    """Who may be the author that a question is about, likeliest first; none where it asks for something else."""
    line = _plain(question)
    found = [match for pattern in _OF_AUTHORS if (match := pattern.fullmatch(line)) is not None]
    asked = [
        AuthorAsked(who=match["who"].strip(" '\"`"), topic=(match.groupdict().get("topic") or "").strip())
        for match in found
    ]
    return [each for each in asked if each.who.lower() not in _NOBODY and not each.who.lower().startswith("commit ")]


def _plain(question: str) -> str:
    return " ".join(question[:MAX_LOOKED_AT].split()).rstrip(" ?!.")
