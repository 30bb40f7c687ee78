"""The default embedder: WordLlama's 256 dimensions, a table of one vector per token, averaged.

Only the files in the `wordllama` wheel are read; importing that package takes a second. Vectors equal its own
`embed(norm=True)`, several times faster: no padding, and the tokens of a word are remembered.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError

Floats = NDArray[np.float32]
TokenIds = NDArray[np.uint16]

MAX_TEXT = 40_000
"""Characters of a text that count; an average over more says little about any of it."""

_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"

_BLOCK = 256
_WORDS_A_LINE = 64
_ROWS = 4_096
_MEMORY = 16_000_000
_WORD_COST = 250

_marks = re.compile("(<s>|</s>|<unk>)")
_words = re.compile(r"\n| *[^ \n]+| +")


class WordLlamaEmbedder:
    """Unit vectors of 256 numbers. A text without any token gets a vector of zeros, which means: no vector.

    May be used from several threads. The weights are loaded by the first call, which raises ConfigError where
    they are not installed.
    """

    name = "wordllama-256"
    dimension = 256

    def __init__(self) -> None:
        self._lock = Lock()
        self._model: _Model | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """For each text its vector as little-endian float32. Same text, same bytes, in whatever company."""
        return [row.tobytes() for row in pool(self.matrix, self.tokens(texts)).astype("<f4", copy=False)]

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """For each text the numbers of its tokens: rows of `matrix`."""
        model = self._loaded()
        return [ids for at in range(0, len(texts), _BLOCK) for ids in model.tokens(texts[at : at + _BLOCK])]

    @property
    def matrix(self) -> Floats:
        """The table: one row for each of the 32,000 tokens. Not to be written to."""
        return self._loaded().matrix

    def _loaded(self) -> _Model:
        if self._model is None:
            with self._lock:
                self._model = self._model or _Model(find_weights())
        return self._model


def find_weights() -> Path:
    """The folder of the installed `wordllama`, found without importing it. Raises ConfigError."""
    spec = find_spec("wordllama")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / _WEIGHTS).is_file() and (Path(folder) / _TOKENIZER).is_file():
            return Path(folder)
    raise ConfigError("the weights of WordLlama are not installed: pip install wordllama")


def pool(matrix: Floats, tokens: Sequence[TokenIds], weights: Floats | None = None) -> Floats:
    """For each list of tokens the mean of their rows, scaled to length 1; zeros where there are none.

    `weights` says how much each row of the matrix counts. A result depends on its own tokens only.
    """
    pooled = np.zeros((len(tokens), matrix.shape[1]), np.float32)
    for mean, ids in zip(pooled, tokens, strict=True):
        for at in range(0, len(ids), _ROWS):
            part = ids[at : at + _ROWS]
            rows = matrix.take(part, axis=0)
            if weights is not None:
                rows *= weights.take(part)[:, None]
            mean += rows.sum(axis=0)
    lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
    np.divide(pooled, lengths, out=pooled, where=lengths > 0)
    return pooled


class _Model:
    """The table and the tokenizer in memory.

    No token spans a space or a line end, so a text is cut into words and each word is tokenized once. Words
    that take too much memory are forgotten together: the map is replaced, not emptied, because others may be
    reading it.
    """

    def __init__(self, folder: Path) -> None:
        # Here and not at the top: these imports cost more than this module, and only embedding needs them.
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer, normalizers

        self.matrix: Floats = load_file(folder / _WEIGHTS)["embedding.weight"].astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.normalizer = normalizers.Replace(" ", "▁")
        self._newline = self._tokenizer.encode("\n", add_special_tokens=False).ids[0]
        self._forget()

    def tokens(self, texts: Sequence[str]) -> Iterator[TokenIds]:
        known, split = self._known, [_split(text) for text in texts]
        self._learn(known, list({word for words in split for word in words if word not in known}))
        if self._memory > _MEMORY:
            self._forget()
        return (np.frombuffer(b"".join(map(known.__getitem__, words)), np.uint16) for words in split)

    def _learn(self, known: dict[str, bytes], new: list[str]) -> None:
        """Tokenize words, many in one line: a call for each would cost more than the words."""
        groups = [new[at : at + _WORDS_A_LINE] for at in range(0, len(new), _WORDS_A_LINE)]
        lines = ["".join(f"{word}\n" for word in group) for group in groups]
        encoded = self._tokenizer.encode_batch_fast(lines, add_special_tokens=False)
        for group, ids in zip(groups, (line.ids for line in encoded), strict=True):
            start = 0
            for word in group:
                end = ids.index(self._newline, start)
                known[word] = array("H", ids[start:end]).tobytes()
                self._memory += _WORD_COST + len(word)
                start = end + 1

    def _forget(self) -> None:
        self._known = {"\n": array("H", [self._newline]).tobytes()}
        self._memory = 0


def _split(text: str) -> list[str]:
    """Words with the spaces before them, line ends, and the tokenizer's marks, each of which starts anew."""
    text = text[:MAX_TEXT].replace("▁", " ")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    split: list[str] = []
    for at, section in enumerate(_marks.split(text)):
        split += [section] if at % 2 else _words.findall(f" {section}") if section else []
    return split
