"""The part of a catalog that the MCP server uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clew.access import Principal
from clew.adapters.mcp.calls import Report
from clew.catalog.operations.answers import CatalogAnswer, CatalogEntry, Item, MalformedItem, Question, Results
from clew.catalog.skills.files import SkillFiles


class CatalogInterface(Protocol):
    """The part of `clew.catalog.catalog.Catalog` that MCP clients can use."""

    async def ask(self, question: Question, *, by: Principal) -> CatalogAnswer: ...

    async def get(
        self,
        items: Sequence[Item | MalformedItem],
        *,
        by: Principal,
        handle: str | None = None,
        report: Report | None = None,
    ) -> Results: ...

    async def rules(self, *, by: Principal, handle: str) -> str:
        """Return the rules of the folder that this handle has not delivered to `by` yet, as markdown; may be empty."""
        ...

    async def instructions(self, *, by: Principal) -> str:
        """Return the instructions for a model that connects as `by`."""
        ...

    async def list_resources(self, *, by: Principal, limit: int = 100) -> Sequence[CatalogEntry]:
        """Return the newest resources that `by` may see."""
        ...

    async def skill_files(self, *, by: Principal) -> SkillFiles | None:
        """Return the files of skills that `by` may use; None without any."""
        ...
