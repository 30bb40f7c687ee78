"""The content types that sources produce and formats read, and the body of each custom type. A JSON type holds the
response of the service's API, with related lists added beside the fields of the main object.
"""

from __future__ import annotations

from typing import Final

MARKDOWN: Final = "text/markdown"
PLAIN_TEXT: Final = "text/plain"
RESTRUCTURED_TEXT: Final = "text/x-rst"
SOURCE_CODE: Final = "text/x-source"
NOTEBOOK: Final = "application/x-ipynb+json"
OPENAPI: Final = "application/vnd.oai.openapi"
"""An OpenAPI or Swagger document, in YAML or JSON; `…+json` is read as well."""

GITHUB_PR: Final = "application/vnd.clew.github-pr+json"
"""A pull request object of GitHub; `files` (as of its files list) and `discussion` (a list of comments and reviews) may
stand beside its fields."""

GITHUB_COMMIT: Final = "application/vnd.clew.github-commit+json"
"""A commit object of GitHub, with `files` if it was fetched alone."""

GITHUB_ISSUE: Final = "application/vnd.clew.github-issue+json"
"""An issue object of GitHub; `discussion` (a list of comments) may stand beside its fields."""

QASE_SUITE: Final = "application/vnd.clew.qase-suite+json"
"""A suite object of Qase with `cases`, a list of its case objects."""

QASE_CASE: Final = "application/vnd.clew.qase-case+json"
"""A case object of Qase."""

CLICKUP_DOC: Final = "application/vnd.clew.clickup-doc+json"
"""A doc object of ClickUp with `pages`, a list of page objects, which may have `pages` themselves."""

CLICKUP_TASK: Final = "application/vnd.clew.clickup-task+json"
"""A task object of ClickUp; `comments` may stand beside its fields."""

CLICKUP_LIST: Final = "application/vnd.clew.clickup-list+json"
"""A list object of ClickUp with `tasks`, a list of its task objects."""

TABLE_SCHEMA: Final = "application/vnd.clew.table-schema+json"
"""`{"table", "schema", "description", "columns": [{"name", "type", "nullable", "description"}]}`."""


def media_type(content_type: str) -> str:
    """A content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()
