"""A project with skills: a ferry line whose agents refund and announce."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.operations.answers import CatalogAnswer, Item, Question, Result, Results
from clew.catalog.workspace.workspace import Workspace, open_workspace
from clew.clock import Clock
from clew.config import read_config
from clew.tools import tool
from clew.trail.store import Trail
from tests.consent import trust_all
from tests.skills.definition_trees import markdown, write

ME = Principal(owner_id="acme", agent_id="ann")
REFUND, CANCEL, LOOK = "ledger://tools/hidden/refund", "ledger://tools/hidden/cancel", "ledger://tools/look"
FIND, LOAD = "skills://tools/find", "skills://tools/hidden/load"
UNLOAD, LIST = "skills://tools/hidden/unload", "skills://tools/hidden/list"
REFERENCE = "skills://tools/hidden/reference"

FILES = {
    ".clew/skills/refunding/SKILL.md": markdown(
        "# Refunding\n\nLook the payment up first. See the [letter templates](references/templates.md).\n",
        name="refunding",
        description="Give passengers their money back after a cancelled crossing",
        toolsets="[money]",
    ),
    ".clew/skills/refunding/references/templates.md": "# Templates\n\nDear passenger, your crossing was cancelled.\n",
    ".clew/skills/cancelling.md": markdown(
        "# Cancelling\n\nTell the harbour, then the passengers.\n",
        name="cancelling",
        description="Call off a crossing because of storm or engine trouble",
        toolsets="[money, crossings]",
    ),
    ".clew/toolsets/money.md": markdown("Amounts are in cents.", description="Money", tools=f'["{REFUND}"]'),
    ".clew/toolsets/crossings.md": markdown(description="Crossings", tools=f'["{CANCEL}"]'),
    ".claude/skills/announcing/SKILL.md": markdown(
        "# Announcing\n\nShort sentences, the harbour first.\n",
        name="announcing",
        description="Write announcements for the loudspeakers on board",
    ),
}


def write_project(root: Path, files: dict[str, str] | None = None, settings: str = "") -> Path:
    """The files of a project; its folder `.clew`."""
    write(root, FILES if files is None else files)
    write(root, {".clew/config.toml": settings})
    return root / ".clew"


def ledger() -> Domain:
    @tool(searchable=False)
    async def refund(amount: int) -> str:
        """Give money back."""
        return f"{amount} cents are on their way."

    @tool(searchable=False)
    async def cancel(crossing: str) -> str:
        """Call off a crossing."""
        return f"{crossing} is called off."

    @tool
    async def look() -> str:
        """Look at the ledger of payments."""
        return "All is paid."

    return Domain(name="ledger", description="Payments and crossings", tools=(refund, cancel, look))


@asynccontextmanager
async def open_project(
    trail: Trail, clock: Clock, folder: Path, *, trusting: bool = True, by: Principal = ME
) -> AsyncIterator[Workspace]:
    """The workspace of a project, its skills indexed, and the ledger beside them."""
    if trusting:
        trust_all(folder)
    workspace = await open_workspace(trail, clock, read_config(folder, {}), by)
    try:
        await workspace.catalog.add(ledger())
        await workspace.look_again()
        yield workspace
    finally:
        await workspace.close()


class Caller:
    """Somebody who asks and gets, and passes the handle on."""

    def __init__(self, workspace: Workspace, by: Principal = ME, handle: str | None = None) -> None:
        self.workspace = workspace
        self.by = by
        self.handle = handle

    async def ask(self, query: str, **more: Any) -> CatalogAnswer:
        answer = await self.workspace.catalog.ask(Question(query=query, handle=self.handle, **more), by=self.by)
        self.handle = answer.handle
        return answer

    async def get_all(self, *items: Item) -> Results:
        results = await self.workspace.catalog.get(items, by=self.by, handle=self.handle)
        self.handle = results.handle
        return results

    async def get(self, route: str, **params: Any) -> Result:
        (result,) = (await self.get_all(Item(route=route, params=params))).results
        return result

    async def text(self, route: str, **params: Any) -> str:
        """The result of a route. Fails where it is refused."""
        result = await self.get(route, **params)
        assert result.data is not None, result.error
        return result.data.content

    async def code(self, route: str, **params: Any) -> str:
        """The code of the refusal, empty where there is none."""
        result = await self.get(route, **params)
        return result.error.code if result.error is not None else ""
