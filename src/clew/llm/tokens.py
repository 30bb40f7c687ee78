"""Token counts: a quick upper estimate for budgets, exact counts for reports."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

ENCODING = "o200k_base"


_PLAIN = b"abcdefghijklmnopqrstuvwxyz "
"""Characters of which several usually form one token. Capitals, digits and punctuation mostly start a new token."""


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens for budgets, without tokenizer tables. The estimate is up to a third too high for
    prose, code and routes. It is too low only for text without words, such as random letters."""
    encoded = text.encode(errors="replace")
    size = len(encoded)
    plain = size - len(encoded.translate(None, _PLAIN))
    known = size if text.isascii() else sum(map(str.isascii, text))
    return -(-(plain * 22 + (known - plain) * 60 + (size - known) * 50) // 100)


def count_tokens(text: str) -> int:
    """Count the tokens with the tokenizer of recent OpenAI models. The first call loads its tables."""
    return len(_tokenizer().encode(text))


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    # its tables take a quarter of a second to load, and budgets do not need them
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(ENCODING)
