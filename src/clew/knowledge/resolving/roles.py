"""Which part the words of a question have in it, as far as their order and the small words around them tell: who does
what to whom, what may be and what must, and which words of asking are part of a thing, as in `the work queue`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from clew.knowledge.resolving.subjects import stem_of
from clew.knowledge.resolving.wordings import ASKING, ORDINARY
from clew.trail.text import STOP

MOST_STEMS = 40

_ALL_ASKING = ORDINARY.union(*ASKING.values())
_WORD = re.compile(r"[^\W_]+(?:'\w+)?|[,:;!?]")
"""Signs end what belongs together."""
_FLAG = re.compile(r"(?<!\S)--?\w[\w-]*")
_NEGATED_WORDS = (
    "dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt mustnt"
)
_NEGATED = frozenset(_NEGATED_WORDS.split())
_MEASURES = frozenset(("almost", "nearly", "many", "each", "or"))
_MODALS = frozenset(("may", "might", "must", "should"))
_OBJECTS = frozenset(("us", "them"))
_GIVEN_TO_WORDS = "show tell give let help remind for to of with from"
_GIVEN_TO = frozenset(_GIVEN_TO_WORDS.split())
_AGENTS = frozenset(("by", "against"))
_SWITCH_WORDS = "turn turns turned turning switch switched power powered log logs logged sign signed"
_ENTER_WORDS = "log logs logged logging sign signs signed signing check checks checked opt opts zoom"
_SWITCHES, _ENTERS = frozenset(_SWITCH_WORDS.split()), frozenset(_ENTER_WORDS.split())
_WITH_PARTICLES = {"on": _SWITCHES, "off": _SWITCHES, "in": _ENTERS}
"""Verbs that mean another thing with a small word behind them."""
_BEFORE_WORDS = "the a an our my your this each every of for in on at with about by as into from"
_BEFORE_THINGS = frozenset(_BEFORE_WORDS.split())
_IMPERATIVES = frozenset(("explain", "describe", "find", "show", "locate", "summarize", "summarise"))
_VERB_WORDS = """
    implement implements implemented define defines defined handle handles handled happen happens find locate explain
    describe walk show look understand remember remind call calls called calling invokes invoked exist exists deal
    deals hold holds contain contains manage managed require requires decide decided chose chosen choose picked pick
    change changes changed touched edited modified help helped succeed succeeded fail failed pass passed turn turned
    work works worked working do comes
"""
_VERBS = frozenset(_VERB_WORDS.split())
_DOES = re.compile(
    r"\b(?:does|do|did) (?:(?:the|a|an|our) )?([^\W_]+) ([^\W_]+)\b"
    r"(?! (?:actually |really |even )?(?:work|look|behave|happen|turn|go|end)\b)"
)
"""Somebody, and what they do; with a verb that says little behind it, both are what it is about."""
_DIFFERS = re.compile(r"\b([^\W_]+) differs?\b")
_DID = re.compile(
    r"\b(?:who|what|which \w+) (?:has |have |was |were )?"
    r"(?:(add|introduc)|(remov|delet|dropp)|(br[oe]k|break)|(fix|solv))"
)
"""What somebody is asked to have done: all of these are changes, and so only words of asking for one."""
_TIME_WORDS = "week weeks month months year years day days night time release version commit change"
_TIMES = frozenset(_TIME_WORDS.split())
_KIND_WORDS = "code function functions method methods class classes file files module modules project repository repo"
_KINDS = frozenset(_KIND_WORDS.split())
_LIKE_A_NAME = re.compile(r"[a-z][A-Z]|\w[_./:]\w|\d|\w\(|^[A-Z]")


def roles_in(line: str) -> Iterator[str]:
    """The marks of a question in small letters, in which names are written as they are in `line`."""
    yield from (f"={flag}" for flag in _FLAG.findall(line))
    words = _WORD.findall(line.lower())
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        after = words[at + 1] if at + 1 < len(words) else ""
        if word in _NEGATED:
            yield "not"
        elif word in _MEASURES or (word == "must" and at) or (word in _MODALS and is_telling(before)):
            yield word
        elif word in _OBJECTS and before and before not in _GIVEN_TO:
            yield f"whom:{word}"
        elif before in _WITH_PARTICLES.get(word, ()):
            yield f"{before}-{word}"
        elif word in _AGENTS and (after_that := _first_stem(words[at + 1 :])):
            yield f"{word}:{after_that}"
        elif word in _ALL_ASKING and is_telling(after) and _is_part(word, before, after, line):
            yield f"of:{word}"
    yield from (f"did:{found.lastindex}" for found in _DID.finditer(line.lower()))
    yield from (f"doing:{word}" for word in _DIFFERS.findall(line.lower()))
    yield from (f"doing:{stem_of(found[1])}" for found in _DOES.finditer(line.lower()) if _is_done(found))


def are_turned_round(one: str, other: str) -> bool:
    """Whether three words of a question stand in the other in just the opposite order: who blocks whom."""
    first, second = (_places(text) for text in (one, other))
    common = sorted(first.keys() & second.keys(), key=first.__getitem__)[:MOST_STEMS]
    return any(second[here] > second[there] > second[last] for here, there, last in combinations(common, 3))


def _is_part(word: str, before: str, after: str, line: str) -> bool:
    """Whether a word of asking stands before a thing as a part of its name. `The function parse_date` is no such."""
    if word == "list" or after in _TIMES or (word in _KINDS and _stands_as_a_name(after, line)):
        return False
    if before == "to":
        return word not in _VERBS
    if is_telling(before):
        return word not in _VERBS or word.endswith("ed")
    return before in _BEFORE_THINGS or before in _IMPERATIVES


def _stands_as_a_name(word: str, line: str) -> bool:
    found = re.search(rf"(?i)\S*\b{re.escape(word)}\S*", line)
    return found is not None and _LIKE_A_NAME.search(found[0]) is not None


def _is_done(found: re.Match[str]) -> bool:
    """Whether what is found is somebody and what they do."""
    return is_telling(found[1]) and is_telling(found[2])


def _places(text: str) -> dict[str, int]:
    """Where the telling words of a text stand, by their stems; each where it is said first."""
    found: dict[str, int] = {}
    for at, word in enumerate(filter(is_telling, _WORD.findall(text.lower()))):
        found.setdefault(stem_of(word), at)
    return found


def _first_stem(words: Sequence[str]) -> str:
    """What the words behind a small one begin with; a letter may be a name."""
    named = (word for word in islice(words, 4) if word[0].isalnum() and word != "a")
    return next((stem_of(word) for word in named if word not in STOP or len(word) == 1), "")


def is_telling(word: str) -> bool:
    """Whether a word names something, and is neither a small one nor one of asking."""
    return word[:1].isalnum() and word.partition("'")[0] not in STOP and word not in _ALL_ASKING
