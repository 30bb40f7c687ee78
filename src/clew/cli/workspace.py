"""The workspace of the folder, as commands open it, bring it up to date and ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from clew.app import App
from clew.background_tasks import beside
from clew.cli.folder_access import FolderAccess, check_readable, open_here
from clew.cli.project import project_root
from clew.cli.terminal.output import note
from clew.cli.terminal.progress import progress

if TYPE_CHECKING:
    from clew.catalog.indexing.pipeline import Report
    from clew.catalog.operations.answers import Question
    from clew.catalog.workspace.workspace import Workspace
    from clew.knowledge.base import GatherReport

ReadDocuments = Callable[[], Awaitable["list[Report]"]]

PATIENCE_SECONDS = 30.0
"""How long a command waits for citations, in seconds. A person prefers a complete answer to a quick one."""


async def answer_question(
    question: Question, here: FolderAccess, *, is_cached: bool, is_for_agents: bool, is_json: bool
) -> None:
    """Answer a question in this process, and print the answer. Raises ClewError."""
    # the catalog takes as long to load as the rest of a short command
    from clew.catalog.operations.ask import check_question
    from clew.cli.terminal.answer import print_answer

    check_question(question)
    async with open_workspace_here(here) as (app, workspace):
        if not is_cached:
            await read_for_answer(app, workspace, workspace.read_sources)
        answer = await workspace.catalog.ask(question, by=app.me, refresh=False, tells_pending=False)
    print_answer(answer, question.query, project_root(app.config), agent=is_for_agents, json=is_json)


@asynccontextmanager
async def open_workspace_here(here: FolderAccess) -> AsyncIterator[tuple[App, Workspace]]:
    """Open the workspace of the folder, and create the trail if it does not exist. Raises ClewError if the folder's
    files may not be read."""
    await check_readable(here)
    async with open_here(here, create=True, patience=PATIENCE_SECONDS) as app:
        workspace = await app.workspace()
        for problem in workspace.tell_problems():
            note(problem)
        yield app, workspace


async def read_for_answer(app: App, workspace: Workspace, documents: ReadDocuments | None = None) -> None:
    """Read changed files of the folder, as far as that is possible within a short time. `documents` reads the catalog's
    documents; by default it reads the skills too."""
    if not app.has_knowledge():
        await look_again(workspace)
        return
    with resumable(), progress("Reading the files of this folder") as shown:
        reports = await app.knowledge().gather_briefly(documents or workspace.look_again, shown.advance)
    _print_failed(reports or ())


async def look_again(workspace: Workspace) -> None:
    """Read changed local files for the catalog, and show the progress on a terminal."""
    with resumable(), progress("Reading the files of this folder") as shown:
        _print_failed(await workspace.look_again(lambda done, total, _: shown.advance(done, total, "documents")))


async def read_all(app: App) -> GatherReport:
    """Index code and history, and at the same time open the workspace and read its offers."""
    with resumable(), progress("Reading the files of this folder") as shown:
        documents = shown.beside()
        async with beside(app.knowledge().gather(shown.advance, is_asked=False)) as gathered:
            workspace = await app.workspace()
            reports = await workspace.look_again(lambda done, total, _: documents.advance(done, total, "documents"))
    for problem in workspace.tell_problems():
        note(problem)
    _print_failed(reports)
    return gathered.result()


def _print_failed(reports: Sequence[Report]) -> None:
    for report in reports:
        if report.outcome == "failed":
            note(f"{report.source_id} was not refreshed: {report.error}")


@contextmanager
def resumable() -> Iterator[None]:
    """Print a note if Ctrl-C interrupts reading: the next run continues where this one stopped."""
    try:
        yield
    except asyncio.CancelledError:
        note("Interrupted. The next run continues from here.")
        raise
