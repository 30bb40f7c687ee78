"""Token counts: a quick upper estimate for budgets, exact counts for reports."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

ENCODING = "o200k_base"


_PLAIN = b"abcdefghijklmnopqrstuvwxyz "
"""Characters of which several make one token; capitals, digits and signs mostly start one."""


def estimate_tokens(text: str) -> int:
    """A count for budgets that needs no tables. On prose, code and routes it is up to a third too high; only on text
    without any words, such as random letters, is it too low."""
    encoded = text.encode(errors="replace")
    size = len(encoded)
    plain = size - len(encoded.translate(None, _PLAIN))
    known = size if text.isascii() else sum(map(str.isascii, text))
    return -(-(plain * 22 + (known - plain) * 60 + (size - known) * 50) // 100)


def count_tokens(text: str) -> int:
    """The count of a real tokenizer, that of recent OpenAI models. The first call loads its tables."""
    return len(_tokenizer().encode(text))


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    # its tables take a quarter of a second to get ready, and budgets do without
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(ENCODING)
