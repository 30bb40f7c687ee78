"""The limit of tokens of a file. A syntax tree has a node of some hundred bytes for each token, so this bounds the
memory and the time for any content."""

from __future__ import annotations

MAX_TOKENS = 600_000
"""What two megabytes of code have. Files of data, which a machine writes, have more."""

_SHAPES = bytes(ord("a") if chr(code).isalnum() or code == ord("_") or code > 127 else ord(" ") for code in range(256))
_SIGNS = b"!%&()*+,-./:;<=>?@[]^{|}~"


def has_more_tokens(content: bytes, limit: int = MAX_TOKENS) -> bool:
    """Whether a content has more words and signs than the limit. Those in strings and comments count too."""
    if len(content) <= limit:
        return False
    words = (b" " + content.translate(_SHAPES)).count(b" a")
    return words + len(content) - len(content.translate(None, _SIGNS)) > limit


def cut_tokens(content: bytes, limit: int = MAX_TOKENS) -> tuple[bytes, bool]:
    """The first lines of a content up to the limit, and whether there are more."""
    if not has_more_tokens(content, limit):
        return content, False
    low, high = limit, len(content)
    while high - low > limit // 100:
        middle = (low + high) // 2
        low, high = (low, middle) if has_more_tokens(content[:middle], limit) else (middle, high)
    return content[: content.rfind(b"\n", 0, low) + 1], True
