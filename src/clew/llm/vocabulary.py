"""The vocabulary of a tokenizer, and a tokenization of words in Python.

The real tokenizer takes four times as long to load, which matters if only one question is embedded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_SPACE = "▁"
_BYTES = b"<0x%02X>"
_ESCAPES = {"\\": b"\\u005c", '"': b"\\u0022"}
"""Characters that the file escapes; a text without them needs no decoding."""


class TokenVocabulary:
    """The tokens and their ids, read from a `tokenizer.json` with one token per line. Raises ValueError for another
    layout.

    Tokenization repeatedly joins the two adjacent parts of a word whose joined token has the lowest id. The result
    equals that of the tokenizer for all words except those with several spaces.
    """

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        section = content[content.index(b'"vocab": {') + 10 : content.index(b'"merges"')]
        for sign, escape in _ESCAPES.items():
            section = section.replace(b"\\" + sign.encode(), escape)
        # the tokens stay as the file spells them: decoding all of them takes twice as long
        spelled = section.split(b'"')[1::2]
        if not section.rstrip(b", \n").removesuffix(b"}").rstrip().endswith(b": %d" % (len(spelled) - 1)):
            raise ValueError(f"{path} does not list the tokens by their numbers, one a line")
        self._numbers = dict(zip(spelled, range(len(spelled)), strict=True))
        self.newline = self._numbers[_BYTES % ord("\n")]

    def has_simple(self, words: Sequence[str]) -> bool:
        """Whether `tokens` splits all of these words like the real tokenizer."""
        return not any("  " in word for word in words)

    def tokens(self, word: str) -> list[int]:
        parts = [_spell(letter) for letter in word.replace(" ", _SPACE)]
        while len(parts) > 1:
            joined = [self._numbers.get(first + second) for first, second in pairwise(parts)]
            lowest = min((number for number in joined if number is not None), default=None)
            if lowest is None:
                break
            at = joined.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [number for part in parts for number in self._numbers_of(part)]

    def _numbers_of(self, part: bytes) -> list[int]:
        """The id of a token, or the ids of its bytes if a letter is not a token."""
        number = self._numbers.get(part)
        if number is not None:
            return [number]
        return [self._numbers[_BYTES % byte] for byte in json.loads(b'"%b"' % part).encode()]


def _spell(letter: str) -> bytes:
    """A letter as the file spells it, with `_ESCAPES`."""
    return _ESCAPES.get(letter) or json.dumps(letter, ensure_ascii=False)[1:-1].encode()
