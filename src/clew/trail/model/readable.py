"""The readable text of a breadcrumb: the texts that are searched and embedded, and the pointers from its tags and
words. Runs on every write, so it is plain and quick."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec

from clew.lazy_pattern import lazy_pattern

MAX_TEXT = 20_000
MAX_VALUES = 50_000
MAX_POINTERS = 32
MAX_WORD = 64
MAX_KNOWN_WORDS = 100_000

TagKind = Literal["routing", "pointer", "state"]

_STATES = """
    active approved archived blocked cancelled closed completed consumed deleted deprecated disabled done
    draft enabled ephemeral expired failed inactive open paused pending processed processing published
    queued ready rejected resolved running skipped stale started stopped succeeded superseded validated
    waiting
"""
_STOP_WORDS = """
    about above after again all also although always among and another any anyone anything are aren around
    because been before being below between both but can cannot could couldn did didn does doesn doing don
    done down during each either else etc even ever every everything few for from further get gets getting
    give given gives had hadn has hasn have haven having hence her here hers him his how however into isn
    its itself just least less let like made make makes making many may maybe might more most much must
    need needs neither never none nor not nothing now off often once one only onto other others ought our
    ours out over own per perhaps please quite rather same see several shall she should shouldn since some
    someone something still such take takes than that the their theirs them then there therefore these
    they thing things this those though through thus together too toward towards under unless until upon
    use used uses using very via was wasn way well were weren what whatever when where whether which while
    who whole whom whose why will with within without would wouldn yes yet you your yours
"""
STATES = frozenset(_STATES.split())
"""The bare tags that mark a life-cycle state; so does any tag in the namespace `status:` or `state:`."""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that point at nothing; other languages are left as they are."""

_WORD = lazy_pattern(r"\w+")
_BLANKS = bytes(code if code < 128 and _WORD.match(chr(code)) else 32 for code in range(256))
# ASCII with blanks for all that is not part of a word: several times faster than the expression.
_UPPER = "A-ZÀ-ÖØ-ÞΑ-ΩА-Я"
_PART = lazy_pattern(rf"[{_UPPER}]?[^\W\d_{_UPPER}]+|[{_UPPER}]+(?![^\W\d_{_UPPER}])")
_SECRET = "$secret"
_TEXT_TYPES = frozenset((str, dict, list, tuple))


class ReadableText(msgspec.Struct, frozen=True):
    """The texts of a breadcrumb after its hints."""

    title: str
    description: str
    content: str


def readable(title: str, view: Mapping[str, Any]) -> ReadableText:
    """The texts of a view: its `description` (or else `summary`), and all other texts in document order.

    Keys, numbers and references to secrets are left out. Description and content are cut at MAX_TEXT
    characters, and the content after MAX_VALUES texts and containers.
    """
    chosen = next((key for key in ("description", "summary") if isinstance(view.get(key), str)), None)
    description = view[chosen][:MAX_TEXT] if chosen is not None else ""
    return ReadableText(title, description, _content(value for key, value in view.items() if key != chosen))


def _content(values: Iterable[Any]) -> str:
    """The texts among the values and below them, one a line."""
    texts: list[str] = []
    room, stack = MAX_TEXT, [_with_texts(values)]
    for _ in range(MAX_VALUES):
        value = next(stack[-1], None)
        if isinstance(value, str):
            texts.append(value)
            room -= len(value) + 1
        elif isinstance(value, dict):
            if _SECRET not in value:
                stack.append(_with_texts(value.values()))
        elif value is None:
            stack.pop()
        else:
            stack.append(_with_texts(value))
        if room <= 0 or not stack:
            break
    return "\n".join(filter(None, texts))[:MAX_TEXT]


def _with_texts(values: Iterable[Any]) -> Iterator[Any]:
    """The values that are texts or containers, which may contain texts. Long lists of numbers are passed over
    quickly."""
    return iter([value for value in values if type(value) in _TEXT_TYPES])


def tag_kind(tag: str) -> TagKind:
    """The kind of a tag: `namespace:id` routes, one of STATES or `status:…` or `state:…` marks a state, and any other
    bare tag is a pointer for search."""
    namespace, colon, _ = tag.partition(":")
    if colon:
        return "state" if namespace in ("status", "state") else "routing"
    return "state" if tag.lower() in STATES else "pointer"


def pointers(tags: Sequence[str], shown: ReadableText) -> tuple[str, ...]:
    """The pointers of a breadcrumb: its pointer tags, then the most frequent words of its texts.

    In lower case, without repeats, at most MAX_POINTERS; words by count, then by first occurrence.
    Identifiers count whole and by their parts.
    """
    found = dict.fromkeys([tag.lower() for tag in tags if ":" not in tag and tag_kind(tag) == "pointer"])
    counts = count_words(f"{shown.title}\n{shown.description}\n{shown.content}")
    # A sort is stable, so words of one count stay in the order in which they came.
    words = sorted(counts, key=counts.__getitem__, reverse=True)[:MAX_POINTERS]
    found.update(dict.fromkeys(words))
    return tuple(found)[:MAX_POINTERS]


def count_words(text: str) -> dict[str, int]:
    """The number of times that each candidate for a pointer occurs in a text, in the order of first occurrence."""
    return Counter(chain.from_iterable(map(_pointers.__getitem__, find_words(text))))


def find_words(text: str) -> list[str]:
    """The words of a text in their original case. Text that is not ASCII is normalized to NFKC."""
    if text.isascii():
        return text.encode().translate(_BLANKS).decode().split()
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def is_recurring(word: str) -> bool:
    """Whether a word is worth caching. Words with digits are mostly ids, which do not recur and would fill the
    cache."""
    return word.replace("_", "").isalpha()


class _Pointers(dict[str, tuple[str, ...]]):
    """A cache of the pointers of each word: the word in lower case, and its parts if it is an identifier."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        lower = word.lower()
        found: tuple[str, ...] = (lower,)
        if not 2 < len(lower) <= MAX_WORD or lower in STOP_WORDS or lower.isdecimal():
            found = ()
        elif "_" in word or (word[1:] != lower[1:] and not word.isupper()):
            found = (lower, *_parts(word, lower))
        if len(self) < MAX_KNOWN_WORDS and len(word) <= MAX_WORD and is_recurring(word):
            self[word] = found
        return found


_pointers = _Pointers()


def _parts(word: str, whole: str) -> Iterable[str]:
    """The parts of `snake_case` and `camelCase` words that could be pointers themselves."""
    parts = (part.lower() for part in _PART.findall(word))
    return {part: None for part in parts if len(part) > 2 and part != whole and part not in STOP_WORDS}
