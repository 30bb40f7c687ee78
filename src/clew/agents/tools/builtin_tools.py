"""The tools that agents have in a folder: files, commands, pages, the catalog, and code that comes as breadcrumbs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.agents.tools.catalog_tools import OpenCatalog, catalog_tools
from clew.agents.tools.toolbox import FromRecord
from clew.clock import Clock
from clew.tools.code import tool_from_record
from clew.tools.fetch import fetch_tools
from clew.tools.files.edit_journal import EditJournal
from clew.tools.files.file_tools import FileToolHook, file_tools
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.path_denials import Denials
from clew.tools.files.snapshots import Snapshots
from clew.tools.permissions.policy import Policy
from clew.tools.sandbox import Sandbox
from clew.tools.search.search_tools import search_tools
from clew.tools.shell import DENIED_AS, shell_tools
from clew.tools.tool import Tool
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.store import Trail

JOURNAL = "edits"
"""The name of the journal of started edits, in the folder of the trail."""


def folder_tools(
    folder: WorkingFolder,
    own: Path,
    clock: Clock,
    *,
    sandbox: Sandbox,
    policy: Policy,
    open_catalog: OpenCatalog,
    hook: FileToolHook | None = None,
) -> tuple[Tool, ...]:
    """The tools of the program for the files of a folder; `own` is the folder of the trail."""
    return (
        *catalog_tools(open_catalog),
        *file_tools(folder, Snapshots(clock), hook, EditJournal(own / JOURNAL)),
        *search_tools(folder, policy=policy),
        *shell_tools(folder, sandbox, denials=Denials(policy, *DENIED_AS)),
        *fetch_tools(policy),
    )


def code_tools(trail: Trail, root: Path, sandbox: Sandbox, *, by: Principal) -> FromRecord:
    """A factory that builds a tool from a record, with the secrets that its configuration names."""

    async def reveal(name: str) -> str:
        return await trail.secrets.reveal(name, by=by)

    async def from_record(record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
        return tool_from_record(
            record.context, sandbox, reveal, config=config, environ=os.environ, cwd=str(root.absolute())
        )

    return from_record
