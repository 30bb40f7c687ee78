"""Warnings of the libraries and of background work, as lines beside the result."""

from __future__ import annotations

import logging

from clew.cli.terminal.output import clean


class CleanFormatter(logging.Formatter):
    """Formats log lines without control characters, because a line may quote untrusted text."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


def start_logging() -> None:
    """Show warnings on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(CleanFormatter("clew: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
