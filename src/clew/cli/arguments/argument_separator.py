"""The position of `--` on the command line, which the parser does not report."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


def remember_typed(words: Sequence[str]) -> None:
    """Keep the words of the command that runs."""
    _typed.set(tuple(words))


def words_before_dashes(arguments: Sequence[str]) -> tuple[str, ...]:
    """The trailing arguments of a command that came before `--`; none if there was no `--`."""
    words = _typed.get()
    if "--" not in words:
        return ()
    behind = len(words) - words.index("--") - 1
    return tuple(arguments[: max(len(arguments) - behind, 0)])
