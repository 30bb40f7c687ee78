"""The part of a catalog that the MCP door uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clew.access import Principal
from clew.adapters.mcp.calls import Report
from clew.catalog.operations.answers import CatalogAnswer, CatalogEntry, Item, MalformedItem, Question, Results
from clew.catalog.skills.files import SkillFiles


class CatalogInterface(Protocol):
    """The part of `clew.catalog.catalog.Catalog` that is offered over MCP."""

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
        """The rules of the folder that `by` was not given under this handle, as markdown; empty where there are
        none."""
        ...

    async def instructions(self, *, by: Principal) -> str:
        """The instructions for a model that connects as `by`, from the present catalog."""
        ...

    async def list_resources(self, *, by: Principal, limit: int = 100) -> Sequence[CatalogEntry]:
        """The newest resources that `by` may see."""
        ...

    async def skill_files(self, *, by: Principal) -> SkillFiles | None:
        """The files of skills that `by` may have; None where there are no skills for it."""
        ...
