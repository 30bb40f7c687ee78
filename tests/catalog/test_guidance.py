"""Guidance: computed from the result, limited to the caller's rights, with arguments filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from clew.access import Principal
from clew.catalog.operations.answers import Item
from clew.catalog.resource import Resource
from clew.tools import GuidedContent, guide, tool
from tests.catalog.laboratory import lab
from tests.tools.fraud import (
    ANALYST,
    FINCRIME,
    ME,
    SUPPORT,
    USER,
    VIP,
    WAREHOUSE,
    catalog_at,
    codes_of,
    get,
    guided_by,
    messages_of,
)

VIP_HOLDER = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"vip"}))


@pytest.mark.req("ERN-15")
async def test_guidance_is_computed_from_the_result_and_may_lead_to_another_domain(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, SUPPORT) as (catalog, _):
        seen = {user: guided_by(await get(catalog, USER, by=VIP_HOLDER, user_id=user)) for user in ("u1", "u2", "u3")}
        end = await get(catalog, FINCRIME, user_id="u1")
    assert seen == {"u1": [FINCRIME], "u2": [], "u3": [FINCRIME, VIP]}
    assert guided_by(end) == []
    assert "Next steps" not in end.markdown


@pytest.mark.req("ERN-15")
@pytest.mark.req("ERN-21")
async def test_guidance_to_what_is_forbidden_or_not_there_is_dropped(tmp_path: Path) -> None:
    async def fetch(client: Any) -> str:
        return "text"

    @tool
    async def lead() -> GuidedContent:
        """Leads on."""
        routes = [
            ANALYST,
            VIP,
            "lab://tools/gone",
            "nowhere://tools/a",
            "not a route",
            "lab://resources/open",
            "lab://resources/closed",
            "lab://resources/none",
            "nowhere://resources/a",
        ]
        return GuidedContent(content="", guidance=[guide(route, "on") for route in routes])

    resources = [
        Resource(path="open", name="O", description="o", fetch=fetch),
        Resource(path="closed", name="C", description="c", fetch=fetch, scopes=frozenset({"vip"})),
    ]
    async with catalog_at(tmp_path, lab(lead, resources=resources), WAREHOUSE, SUPPORT) as (catalog, _):
        plain = guided_by(await get(catalog, "lab://tools/lead"))
        holder = guided_by(await get(catalog, "lab://tools/lead", by=VIP_HOLDER))
    assert plain == [ANALYST, "lab://resources/open"]
    assert holder == [ANALYST, VIP, "lab://resources/open", "lab://resources/closed"]


@pytest.mark.req("ERN-04")
async def test_arguments_that_guidance_fills_in_can_be_given_back_unchanged(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        results = await get(catalog, ANALYST)
        for _ in range(2):
            assert results.results[0].data is not None
            steps = results.results[0].data.guidance
            assert [step.params for step in steps] == [{"user_id": "u1"}]
            assert '{"user_id":"u1"}' in results.markdown
            results = await catalog.get([Item(route=step.route, params=step.params or {}) for step in steps], by=ME)
            assert codes_of(results) == ["ok"]


@pytest.mark.req("ERN-04")
@pytest.mark.parametrize(
    "value",
    [
        "`code` **bold** <b>x</b> [link](http://evil)",
        '"](http://evil) \\" ` \\',
        "\u202eesrever\u202c \u200b\ufeff\x7f \U000e0041",
        "a\n## bank\n- item",
        "ü 😀",
    ],
)
async def test_arguments_of_a_next_step_open_no_markup_and_keep_their_value(tmp_path: Path, value: str) -> None:
    @tool
    async def lead(text: str) -> GuidedContent:
        """Leads on."""
        return GuidedContent(content="", guidance=[guide("lab://tools/lead", "On.", text=value, all=[value])])

    async with catalog_at(tmp_path, lab(lead)) as (catalog, _):
        markdown = (await get(catalog, "lab://tools/lead", text="x")).markdown
    (line,) = (line for line in markdown.split("\n") if line.startswith("- "))
    shown = line.removeprefix("- **`lab://tools/lead`** with ").removesuffix(": On.")
    assert msgspec.json.decode(shown) == {"text": value, "all": [value]}
    assert not any(hidden in line for hidden in "\u202e\u202c\u200b\ufeff\x7f\U000e0041")
    (inline,) = (token for token in MarkdownIt().parse(line) if token.type == "inline")
    kinds = {child.type for child in inline.children or []}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close", "code_inline"}
    assert sum(child.type == "code_inline" for child in inline.children or []) == 1


async def test_arguments_of_a_next_step_are_shown_up_to_a_length_and_refused_over_another(tmp_path: Path) -> None:
    @tool
    async def lead(size: int) -> GuidedContent:
        """Leads on."""
        return GuidedContent(content="", guidance=[guide("lab://tools/lead", "On.", text="x" * size)])

    async with catalog_at(tmp_path, lab(lead)) as (catalog, _):
        short, long, huge = [await get(catalog, "lab://tools/lead", size=size) for size in (1_900, 19_000, 20_000)]
    assert "x" * 1_900 in short.markdown
    assert "xxx" not in long.markdown
    assert "with parameters that are too long to show here: On." in long.markdown
    assert guided_by(long) == ["lab://tools/lead"]
    assert codes_of(huge) == ["EXECUTION_ERROR"]
    assert "the params of a next step have 20,011 bytes, over 20,000" in messages_of(huge)[0]
