"""A suite of Qase with its cases as children; a case alone is read as well."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.json_body import decode_body
from clew.catalog.formats.prose import describe, join_blocks
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import QASE_CASE, QASE_SUITE, media_type
from clew.catalog.resource import RawContent, ResourceNode
from clew.catalog.route import join_path
from clew.trail.model.tags import path_part


class QaseStep(msgspec.Struct, frozen=True, kw_only=True):
    action: str | None = None
    data: str | None = None
    expected_result: str | None = None

    def __str__(self) -> str:
        given = f" (with {self.data.strip()})" if self.data else ""
        expected = f" → {self.expected_result.strip()}" if self.expected_result else ""
        return f"{(self.action or '').strip()}{given}{expected}"


class QaseTag(msgspec.Struct, frozen=True, kw_only=True):
    title: str | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    id: int | str
    title: str
    description: str | None = None
    preconditions: str | None = None
    postconditions: str | None = None
    steps: list[QaseStep] | None = None
    tags: list[QaseTag | str] | None = None


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    id: int | str
    title: str
    description: str | None = None
    preconditions: str | None = None
    cases: list[Case] = []


class QaseSuite:
    """The path of a case is `cases/ID` below its suite."""

    name = "qase-suite"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) in (QASE_SUITE, QASE_CASE)

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        if media_type(content.content_type) == QASE_CASE:
            case = decode_body(content, Case, "a case of Qase")
            return build_tree(content, base_path, _grow_case(case))
        suite = decode_body(content, Suite, "a suite of Qase with its cases")
        return build_tree(content, base_path, _grow_suite(suite))


def _grow_suite(suite: Suite) -> Branch:
    children = [
        msgspec.structs.replace(_grow_case(case), path=join_path("cases", path_part(str(case.id))))
        for case in suite.cases
    ]
    return Branch(
        name=suite.title,
        text=join_blocks(f"Test suite: {suite.title}", suite.description, _under("Given", suite.preconditions)),
        description=describe(suite.description or "") or f"Test suite {suite.title}, {len(children)} cases",
        type="suite",
        metadata={"suite": suite.id, "cases": len(children)},
        children=children,
    )


def _grow_case(case: Case) -> Branch:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(case.steps or (), 1))
    tags = ", ".join(tag if isinstance(tag, str) else tag.title or "" for tag in case.tags or ())
    return Branch(
        name=case.title,
        text=join_blocks(
            f"Test case {case.id}: {case.title}",
            case.description,
            _under("Given", case.preconditions),
            _under("Steps", steps),
            _under("Afterwards", case.postconditions),
            _under("Tags", tags),
        ),
        description=describe(case.description or "") or f"Test case: {case.title}",
        type="case",
        metadata={"case": case.id},
    )


def _under(word: str, text: str | None) -> str:
    return f"{word}:\n{text.strip()}" if text and text.strip() else ""
