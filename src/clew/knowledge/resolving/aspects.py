"""What sets questions about the same words apart: why or when, what calls or is called, from where to where, not, the
exact spelling of a name, a time. Two questions are one only if these are the same as well."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice

from clew.knowledge.resolving.subjects import stem_of, time_scope_of
from clew.knowledge.resolving.wordings import ASKING, ORDINARY
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
_ALL_ASKING = ORDINARY.union(*ASKING.values())

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
_OPERATOR = re.compile(r"(?<!\S)[<>=+*/%&|^!-]{1,3}(?!\S)")
_LETTER = re.compile(r"(?<![\w'’.+#-])[b-hj-zB-HJ-Z](?![\w'’.+#-])")
_LINKS = frozenset(("of", "for"))
_BEFORE_VERBS = frozenset(("we", "to", "that", "i", "you", "they", "which", "who", "not"))


def aspect_of(text: str) -> str:
    """The marks of all these kinds, each once and in order of the alphabet; none for a plain question. A very long one
    has a mark for all that is not looked at."""
    text, rest = text[:MAX_LOOKED_AT], text[MAX_LOOKED_AT:]
    line = _CALLED_SO.sub("", " ".join(text.lower().rstrip(" ?!.").split()))
    marks = {*_asked(line), *_turns(line), *_spellings(text, line)}
    marks |= {f"@{scope}" for scope in [time_scope_of(text)] if scope}
    marks |= {f"#{hashlib.sha256(rest.encode('utf-8', 'replace')).hexdigest()}"} if rest else set()
    return " ".join(sorted(marks))


def are_at_odds(one: str, other: str) -> bool:
    """Whether two questions with the same words and marks speak of another kind of thing, or of the test of a parser
    where the other speaks of the parser of a test."""
    first, second = (set(_KINDS.findall(text.lower())) for text in (one, other))
    if first and second and first.isdisjoint(second):
        return True
    return any((part, whole) in _parts(other) for whole, part in _parts(one))


def _parts(text: str) -> set[tuple[str, str]]:
    """What is part of what, in the singular: `the test of the parser` and `the parser test` are of a parser."""
    words = _WORD.findall(text.lower())
    found = set[tuple[str, str]]()
    for at, word in enumerate(words):
        if not _is_telling(word) or (at and words[at - 1] in _BEFORE_VERBS):
            continue
        rest = [each for each in words[at + 1 : at + 4] if each not in ("the", "a", "an")]
        if rest[:1] and _is_telling(rest[0]) and words[at + 1] == rest[0]:
            found.add((_singular(word), _singular(rest[0])))
        elif len(rest) > 1 and rest[0] in _LINKS and _is_telling(rest[1]):
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
        elif word in _TURNS and after and any(_is_telling(each) for each in words[:at]):
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
    if found is not None and _is_telling(found[1]):
        written = next((token for token in reversed(tokens) if token.lower() == found[1]), found[1])
        if written != found[1] and not _OF_A_NAME.search(written):
            yield f"={written}"
        elif stem_of(found[1]) != found[1]:
            yield "=" + _JOINTS.sub("", found[1])


def _has_accent(token: str) -> bool:
    return any(unicodedata.combining(each) for each in unicodedata.normalize("NFD", token))


def _first_telling(words: Iterable[str]) -> list[str]:
    return [stem_of(split_word(word)[0]) for word in islice(filter(_is_telling, words), 1)]


def _is_telling(word: str) -> bool:
    return word.partition("'")[0] not in STOP and word not in _ALL_ASKING
