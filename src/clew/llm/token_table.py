"""A table of one vector per token, averaged over the tokens of a text, and the tokenizer that goes with it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.lazy_pattern import lazy_pattern
from clew.llm.vocabulary import TokenVocabulary

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
TokenIds = NDArray[np.uint16]

MAX_TEXT = 40_000
"""The number of leading characters of a text that are embedded. An average over more would say little about any
part."""
_WORDS_A_LINE = 64
_ROWS = 4_096
_MEMORY = 16_000_000
_WORD_COST = 250
_FEW_WORDS = 64
"""While the tokenizer is not loaded, up to this many new words are tokenized without it."""
_MANY_TOKENS = 50_000
"""Above this many tokens, converting the whole table once is faster than converting the rows of each text."""

_PLAIN = (
    b'"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"\xe2\x96\x81"},'
    b'"pre_tokenizer":null,"post_processor":null,"decoder":null,'
)
"""Tokenizer settings that put neither a space nor a special token before a text."""

_marks = lazy_pattern("(<s>|</s>|<unk>)")
_words = lazy_pattern(r"\n| *[^ \n]+| +")


def pool(matrix: Floats | Halves, tokens: Sequence[TokenIds]) -> Floats:
    """Return the mean of the rows of each token list, scaled to length 1; zeros for an empty list.

    Each result depends only on its own tokens.
    """
    pooled = np.zeros((len(tokens), matrix.shape[1]), np.float32)
    for mean, ids in zip(pooled, tokens, strict=True):
        for at in range(0, len(ids), _ROWS):
            rows = matrix.take(ids[at : at + _ROWS], axis=0).astype(np.float32, copy=False)
            mean += rows.sum(axis=0)
    lengths = np.sqrt((pooled * pooled).sum(axis=1, keepdims=True))
    np.divide(pooled, lengths, out=pooled, where=lengths > 0)
    return pooled


class TokenTable:
    """The table and the tokenizer.

    The table is mapped from its file, so that one question reads only the rows that it needs. No token spans a space or
    a line end, so a text is cut into words and each word is tokenized once. When the cached words take too much memory,
    all of them are dropped: the dict is replaced and not cleared, because other threads may be reading it.
    """

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        self._matrix: Floats | Halves = map_tensor(weights, "embedding.weight")
        self._pooled = 0
        self._path = tokenizer
        self._vocabulary = TokenVocabulary(tokenizer)
        self._opened: Any = None
        self._forget()

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        tokens = list(self.tokens(texts))
        self._pooled += sum(map(len, tokens))
        if self._pooled > _MANY_TOKENS:
            self._matrix = self._matrix.astype(np.float32, copy=False)
        return [row.tobytes() for row in pool(self._matrix, tokens).astype("<f4", copy=False)]

    def tokens(self, texts: Sequence[str]) -> Iterator[TokenIds]:
        known, split = self._known, [_split(text) for text in texts]
        new = list({word for words in split for word in words if word not in known})
        if new:
            self._learn(known, new)
        if self._memory > _MEMORY:
            self._forget()
        return (np.frombuffer(b"".join(map(known.__getitem__, words)), np.uint16) for words in split)

    def _learn(self, known: dict[str, bytes], new: list[str]) -> None:
        """Tokenize new words, many in one call, because one call per word would cost more than the words."""
        if self._opened is None and len(new) <= _FEW_WORDS and self._vocabulary.has_simple(new):
            for word in new:
                self._know(known, word, self._vocabulary.tokens(word))
            return
        self._opened = self._opened or _open_tokenizer(self._path)
        groups = [new[at : at + _WORDS_A_LINE] for at in range(0, len(new), _WORDS_A_LINE)]
        lines = ["".join(f"{word}\n" for word in group) for group in groups]
        # a batch releases the GIL and then waits to get it again: not worth it for one line
        encoded = [self._opened.encode(lines[0])] if len(lines) == 1 else self._opened.encode_batch(lines)
        for group, ids in zip(groups, encoded, strict=True):
            start = 0
            for word in group:
                end = ids.index(self._vocabulary.newline, start)
                self._know(known, word, ids[start:end])
                start = end + 1

    def _know(self, known: dict[str, bytes], word: str, ids: list[int]) -> None:
        known[word] = array("H", ids).tobytes()
        self._memory += _WORD_COST + len(word)

    def _forget(self) -> None:
        self._known = {"\n": array("H", [self._vocabulary.newline]).tobytes()}
        self._memory = 0
        if self._opened is not None:
            self._opened.clear_cache()


def map_tensor(path: Path, name: str) -> Halves:
    """Map a float16 tensor from a safetensors file: eight bytes of length, a JSON header, then the numbers. Raises
    KeyError or ValueError for other content."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(size))[name]
    if entry["dtype"] != "F16":
        raise ValueError(f"{path} holds {entry['dtype']}, not F16")
    first, _ = entry["data_offsets"]
    return np.asarray(np.memmap(path, "<f2", mode="r", offset=8 + size + first, shape=tuple(entry["shape"])))


def _open_tokenizer(path: Path) -> Any:
    """The tokenizer of a `tokenizer.json`, with the steps before and after its model as `_PLAIN` says."""
    from splintr import from_json_bytes  # imported only to embed many words

    content = path.read_bytes()
    added, steps, model = (content.index(key) for key in (b'"added_tokens"', b'"normalizer"', b'"model"'))
    return from_json_bytes(b"{" + content[added:steps] + _PLAIN + content[model:])


def _split(text: str) -> list[str]:
    """Split a text into words with their leading spaces, newlines, and the tokenizer's special tokens. The text after a
    special token is split like a new text."""
    text = text[:MAX_TEXT].replace("▁", " ")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    split: list[str] = []
    for at, section in enumerate(_marks.split(text)):
        split += [section] if at % 2 else _words.findall(f" {section}") if section else []
    return split
