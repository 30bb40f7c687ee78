"""Ctrl-C at a prompt, and readers that close their end: a command ends at once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.app import App
from clew.catalog.indexing.pipeline import WINDOW
from clew.cli import INTERRUPTED, PIPE_CLOSED
from tests.cli.conftest import COMMAND, PATIENCE, Clew, start
from tests.cli.terminal import answer_on_terminal

Put = Callable[..., str]


def test_ctrl_c_at_the_question_removes_nothing_and_ends(clew: Clew, put: Put) -> None:
    id = put("Keep me")
    code, shown = answer_on_terminal("[y/N]", "\x03", "trail", "rm", id)
    assert (code, "Traceback" in shown) == (INTERRUPTED, False)
    assert clew("trail", "show", id).code == 0


def test_ctrl_c_at_a_secret_keeps_nothing_and_ends(clew: Clew, folder: Path) -> None:
    code, shown = answer_on_terminal("Value of key", "\x03", "secret", "put", "key")
    assert (code, "Traceback" in shown) == (INTERRUPTED, False)
    assert clew("secret", "ls").out == ""


SLOW = '''
"""A source with one document that does not arrive before a signal."""

import asyncio
from pathlib import Path

from clew.catalog.domain import Domain
from clew.catalog.formats import ALL
from clew.catalog.resource import DocumentListing, Pipeline, RawContent, RawDocument


class Slow:
    name, id, is_local = "slow", "slow:pages", True

    async def list_documents(self):
        names = [f"{number:03}.md" for number in range(150)]
        documents = [RawDocument(id=name, name=name, content_type="text/markdown", version="1") for name in names]
        return DocumentListing(documents=documents, skipped=[])

    async def fetch_content(self, id):
        if id == "140.md" and not Path("go").exists():
            await asyncio.Event().wait()
        body = f"# Page {id}\\n\\nText.\\n".encode()
        return RawContent(id=id, name=id, content_type="text/markdown", body=body)

    async def close(self):
        pass


pages = Domain(name="pages", description="Pages", extractors=(Pipeline(source=Slow(), formats=ALL),))
'''


@pytest.mark.req("ERN-24")
@pytest.mark.parametrize("command", [["refresh"], ["ask", "page"]])
def test_ctrl_c_while_documents_are_read_keeps_what_was_written_and_the_next_run_goes_on(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch, in_trail: Callable[..., Any], command: list[str]
) -> None:
    (folder.parent / "slow_pages.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    monkeypatch.syspath_prepend(str(folder.parent))
    folder.mkdir()
    (folder / "config.toml").write_text("[catalog]\nrepository = false\ndomains = ['slow_pages:pages']\n")
    clew("trust", "--yes")
    assert clew("domains").code == 0

    async def written(app: App) -> int:
        stats = await app.trail.upkeep.stats(by=app.me)
        return stats.schemas.get("resource.v1", 0)

    async def wait_for_some(app: App) -> None:
        async with asyncio.timeout(PATIENCE):
            while await written(app) < WINDOW:
                await app.trail.log.wait(await app.trail.log.head(), 1.0)

    process = start(*command)
    in_trail(wait_for_some)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (INTERRUPTED, "")
    assert err == "Interrupted. The next run continues from here.\n"
    assert in_trail(written) == WINDOW

    (folder.parent / "go").touch()
    (report,) = clew("refresh", "slow:pages", "--json").json
    assert (report["documents"], report["nodes_written"]) == (150, 50)
    assert in_trail(written) == 150


def test_tail_ends_when_nobody_reads_although_nothing_happens(put: Put) -> None:
    put("One event")
    with subprocess.Popen([*COMMAND, "trail", "tail", "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"created" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == PIPE_CLOSED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trail", "search", "two", "words"), "too many arguments: words. Put a text of several words in quotes."),
        (("--folder", "x", "trail", "ls"), "--folder belongs behind the command."),
    ],
)
def test_arguments_in_the_wrong_place_are_explained(clew: Clew, arguments: tuple[str, ...], said: str) -> None:
    result = clew(*arguments)
    assert (result.code, said in result.err) == (2, True), result.err
