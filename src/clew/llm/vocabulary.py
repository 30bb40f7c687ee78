"""The vocabulary of a tokenizer, and words cut into its tokens in Python.

The tokenizer takes four times as long to load, which counts where one question is all that is embedded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_SPACE = "▁"
_BYTES = "<0x{:02X}>"


class TokenVocabulary:
    """Tokens with their numbers, of a `tokenizer.json` with one token a line. Raises ValueError for another one.

    The tokenizer joins the two parts of a word whose token has the lowest number, until there are no such parts. That
    is so for all words but those with several spaces.
    """

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        section = content[content.index(b'"vocab"') : content.index(b'"merges"')].decode()
        names = re.findall(r'\n *"(.*)": ', section)
        if not section.rstrip(", \n").removesuffix("}").rstrip().endswith(f": {len(names) - 1}"):
            raise ValueError(f"{path} does not list the tokens by their numbers, one a line")
        plain = [json.loads(f'"{name}"') if "\\" in name else name for name in names]
        self._numbers = dict(zip(plain, range(len(plain)), strict=True))
        self.newline = self._numbers[_BYTES.format(ord("\n"))]

    def has_simple(self, words: Sequence[str]) -> bool:
        """Whether `tokens` cuts all of these words as the tokenizer does."""
        return not any("  " in word for word in words)

    def tokens(self, word: str) -> list[int]:
        parts = list(word.replace(" ", _SPACE))
        while len(parts) > 1:
            joined = [self._numbers.get(first + second) for first, second in pairwise(parts)]
            lowest = min((number for number in joined if number is not None), default=None)
            if lowest is None:
                break
            at = joined.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [number for part in parts for number in self._numbers_of(part)]

    def _numbers_of(self, part: str) -> list[int]:
        """The number of a token, or those of its bytes."""
        number = self._numbers.get(part)
        return [number] if number is not None else [self._numbers[_BYTES.format(byte)] for byte in part.encode()]
