"""The features of a message: words, pairs of words, first words and runs of letters, hashed into a fixed number of
columns. Training and classification use the same function, so a change here needs new weights."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from zlib import crc32

COLUMNS = 8_192
MAX_TEXT = 600
"""The number of leading characters that are used. A message usually starts with the request; logs and code follow."""
MAX_EMBEDDED = 2_000
"""The number of characters for the embedder."""
RUNS = (3, 4, 5)
FLAG_WEIGHT = 0.3

_TOKEN = re.compile(r"[^\W_]+|[?!/<>]")
_DIGITS = re.compile(r"\d+")
_GROUPS = {"word": 1.0, "pair": 1.0, "first": 1.0, "run": 1.0}


def hashed_features(text: str) -> dict[int, float]:
    """Return the values of the columns. Each group of features has length 1 before hashing, so long and short messages
    weigh the same. A random sign lets features that share a column cancel out on average."""
    columns: defaultdict[int, float] = defaultdict(float)
    for group, counted in _counted(text).items():
        values = {feature: 1.0 + math.log(many) for feature, many in counted.items()}
        length = math.sqrt(sum(value * value for value in values.values()))
        for feature, value in values.items():
            mark = crc32(f"{group}:{feature}".encode("utf-8", "replace"))
            sign = 1.0 if mark & 0x8000_0000 else -1.0
            columns[mark % COLUMNS] += sign * _GROUPS.get(group, FLAG_WEIGHT) * value / length
    return columns


def _counted(text: str) -> dict[str, Counter[str]]:
    words = [_DIGITS.sub("0", token) for token in _TOKEN.findall(text[:MAX_TEXT].lower())]
    groups = {
        "word": Counter(words),
        "pair": Counter(f"{first} {second}" for first, second in pairwise(words)),
        "first": Counter(" ".join(words[:many]) for many in (1, 2, 3)),
        "run": Counter(run for word in words for run in _runs(word)),
        "size": Counter([str(min(6, int(math.log2(len(words) + 1))))]),
        "asks": Counter(["?"] if text.rstrip().endswith("?") else []),
        "lines": Counter(["many"] if "\n" in text.strip() else []),
    }
    return {name: counted for name, counted in groups.items() if counted}


def _runs(word: str) -> Iterator[str]:
    padded = f"<{word}>"
    for size in RUNS:
        if len(padded) > size:
            yield from (padded[at : at + size] for at in range(len(padded) - size + 1))
