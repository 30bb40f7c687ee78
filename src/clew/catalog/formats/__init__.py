"""Formats: how the documents of a source become nodes.

To add one, write a module with a class that is a ContentFormat, and put an instance of it into ALL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clew.catalog.formats.clickup_doc import ClickUpDoc
from clew.catalog.formats.github.commit import GithubCommit
from clew.catalog.formats.github.issue import Issue
from clew.catalog.formats.github.pull_request import PullRequest
from clew.catalog.formats.markdown import Markdown
from clew.catalog.formats.notebook import Notebook
from clew.catalog.formats.openapi import OpenApi
from clew.catalog.formats.plain_text import PlainText
from clew.catalog.formats.qase_suite import QaseSuite
from clew.catalog.formats.restructured_text import ReStructuredText
from clew.catalog.formats.table_schema import TableSchema
from clew.catalog.resource import ContentFormat

ALL: Final[tuple[ContentFormat, ...]] = (
    Markdown(),
    ReStructuredText(),
    Notebook(),
    OpenApi(),
    PullRequest(),
    GithubCommit(),
    Issue(),
    TableSchema(),
    QaseSuite(),
    ClickUpDoc(),
    PlainText(),
)
"""All formats in the order in which they are tried. Plain text takes the documents that no other format takes."""


def find_format(content_type: str, formats: Iterable[ContentFormat]) -> ContentFormat | None:
    """The first format that can handle the type; None when there is none."""
    return next((each for each in formats if each.can_handle(content_type)), None)


__all__ = [
    "ALL",
    "ClickUpDoc",
    "GithubCommit",
    "Issue",
    "Markdown",
    "Notebook",
    "OpenApi",
    "PlainText",
    "PullRequest",
    "QaseSuite",
    "ReStructuredText",
    "TableSchema",
    "find_format",
]
