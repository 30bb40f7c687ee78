"""Records to store and queries to ask: distinct texts of about 60 words with Zipf's frequencies, five tags, and the
vector that the default embedder makes of them; and real texts where the benchmark data is at hand.

The words are those of the embedder's own tokenizer, in the order in which it learnt them, which is about that of
their frequency, and plain inflections of them: so stop words lead, stems repeat, and rare words are split.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.llm.wordllama import WordLlamaEmbedder, find_weights
from clew.trail.search.text import STOP

Floats = npt.NDArray[np.float32]

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL_SETS = ("tools_dev_corpus", "skills_dev_corpus", "memory_dev_corpus", "code_search_corpus")
VOCABULARY = 20_000
TITLE_WORDS = 6
QUERY_WORDS = 6
SHARES = (1, 10, 50)
"""Percentages of the records that pass a filter by the tag `pass:<percentage>`."""
EMBED_BATCH = 1_000


class Item(NamedTuple):
    """A record as every contender gets it."""

    id: str
    title: str
    text: str
    tags: tuple[str, ...]
    vector: Floats


class Query(NamedTuple):
    """A question in words. Without a vector the contender embeds the words itself, on the clock."""

    text: str
    vector: Floats | None = None


class Corpus:
    """Makes items, always the same ones for a seed. `embedder` is the one that all contenders share."""

    def __init__(self, seed: int = 7) -> None:
        self.embedder = WordLlamaEmbedder()
        self._random = np.random.default_rng(seed)
        self._words = np.array(vocabulary(), dtype=object)
        frequency = 1.0 / np.arange(1, len(self._words) + 1)
        self._steps = np.cumsum(frequency / frequency.sum())
        self._made = 0

    def make(self, count: int) -> list[Item]:
        """The next items, none like another."""
        lengths = self._random.normal(60 - TITLE_WORDS, 14, count).clip(20, 110).astype(int) + TITLE_WORDS
        ends = np.cumsum(lengths)
        words = self._draw(int(ends[-1])).tolist() if count else []
        starts = (ends - lengths).tolist()
        titles = [" ".join(words[at : at + TITLE_WORDS]) for at in starts]
        texts = [" ".join(words[at + TITLE_WORDS : end]) for at, end in zip(starts, ends.tolist(), strict=True)]
        vectors = self.embed([f"{title}. {text}" for title, text in zip(titles, texts, strict=True)])
        first, self._made = self._made, self._made + count
        return [
            Item(item_id(first + at), titles[at], texts[at], self._tags(first + at), vectors[at]) for at in range(count)
        ]

    def ask(self, items: Sequence[Item], count: int) -> list[Query]:
        """Questions made of neighbouring words of one item each."""
        queries = []
        for at in self._random.integers(0, len(items), count):
            words = items[at].text.split()
            start = int(self._random.integers(0, max(1, len(words) - QUERY_WORDS)))
            queries.append(Query(" ".join(words[start : start + QUERY_WORDS])))
        return queries

    def mark(self, item: Item) -> tuple[Item, Query]:
        """The item with a word of its own in its title, and the question that must find it."""
        marked = item._replace(title=f"{item.title} marker{item.id[-8:]}")
        return marked, Query(marked.title, item.vector)

    def embed(self, texts: Sequence[str]) -> Floats:
        packed = [
            vector
            for at in range(0, len(texts), EMBED_BATCH)
            for vector in self.embedder.embed(texts[at : at + EMBED_BATCH])
        ]
        return np.frombuffer(b"".join(packed), "<f4").reshape(len(texts), self.embedder.dimension)

    def _draw(self, count: int) -> npt.NDArray[np.object_]:
        places = np.searchsorted(self._steps, self._random.random(count))
        return self._words[np.minimum(places, len(self._words) - 1)]

    def _tags(self, number: int) -> tuple[str, ...]:
        """Five tags; the last puts the record into one of four groups, of which three are the filters' shares."""
        draw = self._random.random() * 100
        group = next((f"pass:{share}" for share, end in _GROUPS if draw < end), "pass:none")
        words = self._draw(2)
        return (f"session:{number // 20}", f"project:{number % 50}", f"topic:{words[0]}", f"kind:{words[1]}", group)


_GROUPS = tuple((share, sum(SHARES[: at + 1])) for at, share in enumerate(SHARES))


def item_id(number: int) -> str:
    """An id in the form of a UUID that contains the item's number."""
    return f"00000000-0000-7000-8000-{number:012x}"


def item_number(id: str) -> int:
    return int(id[-12:], 16)


@cache
def vocabulary() -> tuple[str, ...]:
    """Some 20,000 words, the frequent ones first."""
    path = find_weights() / "tokenizers" / "l2_supercat_tokenizer_config.json"
    tokens: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    pieces = (token[1:].lower() for token, _ in sorted(tokens.items(), key=lambda pair: pair[1]) if token[0] == "▁")
    known = STOP - {"s", "t", "d", "m"}
    whole = [word for word in pieces if word.isascii() and word.isalpha() and (len(word) > 3 or word in known)]
    inflected = (word + ending for ending in ("s", "ed", "ing", "ment") for word in whole if word not in STOP)
    return tuple(dict.fromkeys((*whole, *inflected)))[:VOCABULARY]


def read_real_texts(limit: int) -> list[tuple[str, dict[str, str]]]:
    """Title and context of real records, none twice, drawn evenly from the sets; empty where there is no data."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for name in REAL_SETS:
        path = DATA / f"{name}.jsonl"
        rows = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for line in rows[: limit // len(REAL_SETS)]:
            row = json.loads(line)
            context = {field: row[field] for field in ("description", "content") if row.get(field)}
            found[json.dumps([row["name"], context])] = (row["name"][:2_000], context)
    return list(found.values())
