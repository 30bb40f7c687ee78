"""What sets questions about the same words apart: why or when, what calls or is called, from where to where, not, the
exact spelling of a name, a time. Two questions are one only if these are the same as well."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from clew.knowledge.resolving.roles import are_turned_round, is_telling, roles_in
from clew.knowledge.resolving.subjects import stem_of, time_scope_of
from clew.knowledge.resolving.wordings import ORDINARY
from clew.trail.text import STOP, split_word

MAX_LOOKED_AT = 1_000

_THING = r"(?:function|method|class|module|file|variable|constant)"
_SOMETHING = r"(?!we\b|i\b|you\b|they\b|it\b|not\b)(?:\S+ ){1,4}?"
_ASKED = {
    "why": r"\b(?:why|reasons?|rationale|motivation|how come)\b",
    "when": r"\b(?:when (?:did|was|were|do|does|is|are)|since when|at what point|what date|how long ago)\b",
    "who": r"\b(?:who(?! calls?\b| invokes?\b)|whom|whose)\b",
    "mine": r"\b(?:did|have|had|was|am) i\b|\bmy\b",
    "last": r"\b(?:last|latest|newest|most recent) (?:commit|change|edit|release|version)\b",
    "all": r"\b(?:remov|delet|clear|drop|reset|clos|stop|kill|cancel|eras)(?:e|es|s|ed|ped|ing|ping|led|ling)?"
    r" (?:all|every)\b",
    "many": r"\b(?:how many|number of|count of)\b",
    "ever": r"\bhave we (?:ever|already)\b|^did we\b(?!.*\bsimilar\b)",
    "callers": r"\b(?:who|what|which \w+|that) (?:calls?|invokes?)\b|\bcallers?\b|\bcalls to\b|\bcall sites?\b"
    r"|\b(?:is|are|gets?|being) (?:\S+ ){0,4}?(?:called|invoked)\b(?! by)",
    "callees": rf"\bcallees?\b|\bcalled by\b|\b(?:does|do|did) {_SOMETHING}(?:call|import|inherit|invoke|extend)\b",
    "failed": r"^(?:did|do|does|has|have|is|are|was|were)\b.*\b(?:fail(?:s|ed|ing)?|a failure|break|broke|broken)\b",
    "uses": rf"^(?:where|which {_THING}(?:e?s)?|which tests?)\b.*\b(?:uses?|used)\b",
}
_PATTERNS = {mark: re.compile(pattern) for mark, pattern in _ASKED.items()}
_CHOICE = re.compile(r"\b(?:decid\w+|decisions?|chose|chosen|choose|pick|picked)\b")
_CALLED_SO = re.compile(rf"\b{_THING} called\b")
_ACTIVE = re.compile(rf"\b(?:does|do|did) {_SOMETHING}(?:call|import|invoke|extend) (.+)")

_TURNS = dict.fromkeys(("to", "into", "onto"), ">") | {"from": "<"}
"""Words that tell where something comes from or goes to."""
_BOUND_WORDS = "before after since until between instead than without over under above below"
_BOUNDS = frozenset(_BOUND_WORDS.split())
_NEGATIONS = frozenset(("not", "never", "no", "except", "cannot", "nor", "neither", "unless"))
_PARTICLES = frozenset(("up", "down", "off", "out", "most", "more", "few", "only", "other"))
_ASKING_WITH_PARTICLES = frozenset(("leave", "left", "turn", "turned", "turns", "pick", "look", "looked", "find"))

_TOKEN = re.compile(r"[^\s,;()\[\]{}<>!?`\"]+")
_OF_A_NAME = re.compile(r"[a-z][A-Z]|\w[_./:]\w|\d|\w(?:\+\+|#)")
_QUOTED = re.compile(r"[`\"]([^`\"]{1,80})[`\"]")
_BARE = re.compile(
    rf"\b(?:where(?: is|'s)|calls?|callers of|find|locate|explain|describe|(?:what|how) does|definition of|{_THING})"
    r" (\w+)(?: do| mean| return| work)?\Z"
)
_JOINTS = re.compile(r"[_\s-]+")
_WORD = re.compile(r"[^\W_]+(?:'\w+)?")
_KINDS = re.compile(
    r"\b(class|function|method|module|package|constant|variable|table|test|(?<!which )(?<!what )file)(?:e?s)?\b"
)
_ASKED_SO = re.compile(rf"\b{_THING}s? (?:for|that|which)\b")
_LISTED = re.compile(
    r"\blists? of (?:all )?(?:the )?(class|function|method|module|variable|constant|file|test)(?:e?s)\b"
)
_OPERATOR = re.compile(r"(?<!\S)[<>=+*/%&|^!-]{1,3}(?!\S)")
_LETTER = re.compile(r"(?<![\w'’.+#-])[b-hj-zB-HJ-Z](?![\w'’.+#-])")
_LINKS = frozenset(("of", "for", "at"))
_BETWEEN = frozenset(("found", "used", "done", "made", "kept", "defined", "called"))
"""What may stand between a thing and that which it is part of."""
_BEFORE_VERBS = frozenset(("we", "to", "that", "i", "you", "they", "which", "who", "not"))
_VERB_WORDS = "detect convert remove delete create calculate compute extract generate retrieve validate"
_VERBS = frozenset(_VERB_WORDS.split())
"""Never a thing, so no part of one and none that has parts."""
_MOVES = frozenset(("read", "write", "copy", "load", "save"))
"""Neither, where it is said from where or to where."""
_ALL_OF_THEM = re.compile(r"\ball(?: of)?(?: the)?((?: \w+){1,3})")


def aspect_of(text: str) -> str:
    """The marks of all these kinds, each once and in order of the alphabet; none for a plain question. A very long one
    has a mark for all that is not looked at."""
    text, rest = text[:MAX_LOOKED_AT], text[MAX_LOOKED_AT:]
    line = _CALLED_SO.sub("", " ".join(text.lower().rstrip(" ?!.").split()))
    marks = {*_asked(line), *_turns(line), *_spellings(text, line), *roles_in(text.rstrip(" ?!."))}
    marks |= {f"@{scope}" for scope in [time_scope_of(text)] if scope}
    marks |= {f"#{hashlib.sha256(rest.encode('utf-8', 'replace')).hexdigest()}"} if rest else set()
    return " ".join(sorted(marks))


def are_at_odds(one: str, other: str) -> bool:
    """Whether two questions with the same words and marks speak of another kind of thing, of all of them where the
    other speaks of one, of a list in a list where the other has one list, or of the test of a parser where the other
    speaks of the parser of a test."""
    if _differ_in_kind(one, other) or _says_twice(one, other):
        return True
    if _wants_many(one, other) or _wants_many(other, one) or are_turned_round(one, other):
        return True
    return any((part, whole) in _parts(other) for whole, part in _parts(one))


def _differ_in_kind(one: str, other: str) -> bool:
    """Whether each of two questions names a kind of thing that the other does not, or one of them one more: a function
    in a file, and a file. `The function for this` is only how one asks."""
    first, second = (set(_KINDS.findall(text.lower())) for text in (one, other))
    if first - second and second - first:
        return True
    first, second = (set(_KINDS.findall(_ASKED_SO.sub("", text.lower()))) for text in (one, other))
    return bool(first and second) and first != second


def _says_twice(one: str, other: str) -> bool:
    """Whether a question says a word more than once that the other says once: a list of lists, and a list."""
    first, second = (
        Counter(stem_of(word) for word in _WORD.findall(text.lower()) if word not in STOP and word not in ORDINARY)
        for text in (one, other)
    )
    return any(min(first[stem], 2) != min(second[stem], 2) for stem in first.keys() & second.keys())


def _wants_many(one: str, other: str) -> bool:
    """Whether a question wants all of what the other has one of, as all objects, or a list of what it does not name."""
    words = set(_WORD.findall(other.lower()))
    named = {word for found in _ALL_OF_THEM.findall(one.lower()) for word in found.split() if len(word) > 3}
    many = {word for word in named if word.endswith("s") and not word.endswith("ss")}
    if any(word not in words and _singular(word) in words for word in many):
        return True
    return bool(words) and not set(_LISTED.findall(one.lower())) <= set(_KINDS.findall(other.lower()))


def _parts(text: str) -> set[tuple[str, str]]:
    """What is part of what, in the singular: `the test of the parser` and `the parser test` are of a parser."""
    words = [word for word in _WORD.findall(text.lower()) if word not in _BETWEEN]
    verbs = _VERBS if _TURNS.keys().isdisjoint(words) else _VERBS | _MOVES
    things = {word for word in words if (is_telling(word) and word not in verbs) or word in ("list", "lists")}
    found = set[tuple[str, str]]()
    for at, word in enumerate(words):
        if word not in things or (at and words[at - 1] in _BEFORE_VERBS):
            continue
        rest = [each for each in words[at + 1 : at + 4] if each not in ("the", "a", "an")]
        if rest[:1] and rest[0] in things and words[at + 1] == rest[0]:
            found.add((_singular(word), _singular(rest[0])))
        elif len(rest) > 1 and rest[0] in _LINKS and rest[1] in things:
            found.add((_singular(rest[1]), _singular(word)))
    return found


def _singular(word: str) -> str:
    return word.removesuffix("s")


def _asked(line: str) -> Iterator[str]:
    """What is wanted to be known."""
    found = [mark for mark, pattern in _PATTERNS.items() if pattern.search(line)]
    yield from found
    if "why" not in found and _CHOICE.search(line):
        yield "choice"
    active = _ACTIVE.search(line)
    if active is not None:
        yield from (f">{stem}" for stem in _first_telling(_WORD.findall(active[1])))


def _turns(line: str) -> Iterator[str]:
    """Which part the words have in it, as far as small words tell."""
    words = _WORD.findall(line)
    for at, word in enumerate(words):
        after = _first_telling(islice(words, at + 1, None))
        if word in _NEGATIONS or word.endswith("n't"):
            yield "not"
        elif word in _PARTICLES and at and words[at - 1] not in _ASKING_WITH_PARTICLES:
            yield word
        elif word in _BOUNDS and after:
            yield f"{word}:{after[0]}"
        elif word in _TURNS and after and any(is_telling(each) for each in words[:at]):
            yield _TURNS[word] + after[0]


def _spellings(text: str, line: str) -> Iterator[str]:
    """Words that can only be names, of several parts, with a digit, a dot or a capital within, or in quotes; operators,
    single letters and letters with accents; and a word that stands for itself and is not its own stem or has capitals:
    `dumps` is another function than `dump`, and `Run` than `run`."""
    tokens = [token.strip(".:/-'") for token in _TOKEN.findall(text)]
    for name in (*filter(_OF_A_NAME.search, tokens), *_QUOTED.findall(text)):
        yield "=" + _JOINTS.sub("", name.lower())
    yield from (f"={sign}" for sign in (*_OPERATOR.findall(text), *map(str.lower, _LETTER.findall(text))))
    yield from (f"={token.lower()}" for token in tokens if not token.isascii() and _has_accent(token))
    found = _BARE.search(line)
    if found is not None and is_telling(found[1]):
        written = next((token for token in reversed(tokens) if token.lower() == found[1]), found[1])
        if written != found[1] and not _OF_A_NAME.search(written):
            yield f"={written}"
        elif stem_of(found[1]) != found[1]:
            yield "=" + _JOINTS.sub("", found[1])


def _has_accent(token: str) -> bool:
    return any(unicodedata.combining(each) for each in unicodedata.normalize("NFD", token))


def _first_telling(words: Iterable[str]) -> list[str]:
    return [stem_of(split_word(word)[0]) for word in islice(filter(is_telling, words), 1)]
