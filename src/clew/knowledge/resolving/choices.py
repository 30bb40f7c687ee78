"""Questions on what a whole project uses for something, such as `which database does it use`. Only a sentence that says
it of the project answers: that some page speaks of databases does not."""

from __future__ import annotations

import re

import msgspec

from clew.knowledge.code.words import terms_of
from clew.knowledge.resolving.subjects import subject_words
from clew.trail.readable import find_words

MAX_LOOKED_AT = 300

_ASKED = re.compile(
    r"(?:so |and )?(?:which|what) (?P<what>\w+(?: \w+){0,2}?)"
    r" (?:does|do|is) (?P<whose>[\w.-]{1,60}|this \w+|the project)"
    r" (?:use|using|run on|rely on|depend on|based on|built on|store \w+ in)(?: .{1,40})?",
    re.IGNORECASE,
)
_OWN = frozenset(("it", "we", "this project", "the project", "this repository", "this library", "this package"))
_SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n\s*\n|\n(?=\s*[-*=~#$>])|\n(?=\s{2,}\S)|\n(?=(?:from|import)\s)|```")
"""Where a sentence ends: also before lines of code, which are indented or begin with a prompt."""
LONGEST = 40
"""Words of a sentence; what has more is none."""
_WE = re.compile(
    r"\bwe (?:use|chose|rely|depend|store|keep|run)\b|\bour\b|\bthis (?:project|library|package)\b", re.IGNORECASE
)
_GENERAL = frozenset(("library", "framework", "package", "tool", "toolkit", "module", "software"))
"""What anything that is chosen may be called."""


class ChoiceAsked(msgspec.Struct, frozen=True):
    """What is chosen, by its words, and what the project is called."""

    words: tuple[str, ...]
    project: str


def read_choice(question: str, project: str) -> ChoiceAsked | None:
    """What a question wants to know of the choices of a project of this name; None where it asks for something else,
    or for the choice of something else."""
    found = _ASKED.fullmatch(" ".join(question[:MAX_LOOKED_AT].split()).rstrip(" ?!."))
    if found is None or found["whose"].lower() not in _OWN | {project.lower()}:
        return None
    said = subject_words(found["what"])
    words = tuple(word for word in said if word not in _GENERAL) or tuple(said)
    return ChoiceAsked(words, project) if words else None


def says_choice(asked: ChoiceAsked, text: str) -> bool:
    """Whether a sentence of a text speaks of what is chosen and of the project. A call such as `shop.open()` does not
    speak of the shop."""
    wanted = [set(terms_of(word)) for word in asked.words]
    own = re.compile(rf"(?<![\w./`-])(?<!\$ ){re.escape(asked.project)}(?![\w/-]|\.\w)", re.IGNORECASE)
    for sentence in _SENTENCES.split(text):
        words = find_words(sentence)
        held = {term for word in words for term in terms_of(word)}
        if (
            len(words) <= LONGEST
            and all(each <= held for each in wanted)
            and (own.search(sentence) or _WE.search(sentence))
        ):
            return True
    return False
