"""What sets questions about the same words apart: why or when, what calls or is called, from where to where, not, the
exact spelling of a name, a time. Two questions are one only if these are the same as well."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.resolving.subjects import stem_of, time_scope_of
from clew.knowledge.resolving.wordings import ASKING, ORDINARY
from clew.trail.text import STOP, split_word

_THING = r"(?:function|method|class|module|file|variable|constant)"
_SOMETHING = r"(?!we\b|i\b|you\b|they\b|it\b|not\b)(?:\S+ ){1,4}?"
_ASKED = {
    "why": r"\b(?:why|reasons?|rationale|motivation|how come)\b",
    "when": r"\b(?:when (?:did|was|were|do|does|is|are)|since when|at what point|what date|how long ago)\b",
    "who": r"\b(?:who(?! calls?\b| invokes?\b)|whom|whose)\b",
    "many": r"\b(?:how many|number of|count of)\b",
    "ever": r"\bhave we (?:ever|already)\b|^did we\b(?!.*\bsimilar\b)",
    "callers": r"\b(?:who|what|which \w+|that) (?:calls?|invokes?)\b|\bcallers?\b|\bcalls to\b|\bcall sites?\b"
    r"|\b(?:is|are|gets?|being) (?:\S+ ){0,4}?(?:called|invoked)\b(?! by)",
    "callees": rf"\bcallees?\b|\bcalled by\b|\b(?:does|do|did) {_SOMETHING}(?:call|import|inherit|invoke|extend)\b",
    "uses": rf"^(?:where|which {_THING}(?:e?s)?|which tests?)\b.*\b(?:uses?|used)\b",
}
_PATTERNS = {mark: re.compile(pattern) for mark, pattern in _ASKED.items()}
_CHOICE = re.compile(r"\b(?:decid\w+|decisions?|chose|chosen|choose|pick|picked)\b")
_CALLED_SO = re.compile(rf"\b{_THING} called\b")
_ACTIVE = re.compile(rf"\b(?:does|do|did) {_SOMETHING}(?:call|import|invoke|extend) (.+)")

_TURNS = dict.fromkeys(("to", "into", "onto"), ">") | {"from": "<"}
"""Words that tell where something comes from or goes to."""
_BOUNDS = frozenset("before after since until between instead than without".split())
_NEGATIONS = frozenset("not never no except cannot nor neither unless".split())
_PARTICLES = frozenset("up down off out above below over under most more few only other".split())
_ASKING_WITH_PARTICLES = frozenset("leave left turn turned turns pick look looked find found".split())
_ALL_ASKING = ORDINARY.union(*ASKING.values())

_NAME = re.compile(r"[\w/-]*(?:[a-z][A-Z]|\w[_./:]\w|\d)[\w./:-]*|(?<=[`\"])[\w .-]+(?=[`\"])")
_BARE = re.compile(rf"\b(?:where(?: is|'s)|calls?|callers of|find|locate|what does|definition of|{_THING}) (\w+)")
_WORD = re.compile(r"[^\W_]+(?:'\w+)?")


def aspect_of(text: str) -> str:
    """The marks of all these kinds, each once and in order of the alphabet; none for a plain question."""
    line = _CALLED_SO.sub("", " ".join(text.lower().rstrip(" ?!.").split()))
    marks = {*_asked(line), *_turns(line), *_spellings(text, line)}
    scope = time_scope_of(text)
    return " ".join(sorted(marks | {f"@{scope}"} if scope else marks))


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
        after = _first_telling(words[at + 1 :])
        if word in _NEGATIONS or word.endswith("n't"):
            yield "not"
        elif word in _PARTICLES and at and words[at - 1] not in _ASKING_WITH_PARTICLES:
            yield word
        elif word in _BOUNDS and after:
            yield f"{word}:{after[0]}"
        elif word in _TURNS and after and any(_is_telling(each) for each in words[:at]):
            yield _TURNS[word] + after[0]


def _spellings(text: str, line: str) -> Iterator[str]:
    """Words that can only be names, of several parts, with a digit, a dot or a capital within, or in quotes; and a word
    that stands for itself and is not its own stem: `dumps` is another function than `dump`."""
    for name in _NAME.findall(text):
        yield "=" + re.sub(r"[_\s-]+", "", name.lower().strip("./:-"))
    found = _BARE.search(line)
    if found is not None and _is_telling(found[1]) and stem_of(found[1]) != found[1] and line.endswith(found[1]):
        yield "=" + found[1]


def _first_telling(words: list[str]) -> list[str]:
    return [stem_of(split_word(word)[0]) for word in words if _is_telling(word)][:1]


def _is_telling(word: str) -> bool:
    return word not in STOP and word not in _ALL_ASKING
