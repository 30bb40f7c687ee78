"""The design tokens of a project, wherever it writes them down, and which one a value is."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import InvalidInput
from clew.knowledge.project.tokens import Colour, find_design_token, get_design_tokens, read_colour
from tests.knowledge.project.samples import REACT, line_at, project

W3C = """\
{
  "color": {
    "$type": "color",
    "primary": { "$value": "#3B82F6" },
    "link": { "$value": "{color.primary}" },
    "space": { "$value": { "colorSpace": "srgb", "components": [0, 0, 0], "hex": "#010203" } }
  },
  "gap": { "$type": "dimension", "small": { "$value": { "value": 4, "unit": "px" } } },
  "font-family": { "$value": ["Inter", "sans-serif"] }
}
"""
DICTIONARY = """\
{
  "color": { "brand": { "base": { "value": "#3b82f6" }, "text": { "value": "{color.brand.base.value}" } } },
  "size": { "font": { "small": { "value": "12px", "type": "fontSize" } } }
}
"""
SCSS = "// $old: #000;\n$primary: #3B82F6 !default;\n$border-radius-sm: 4px;\n$accent: $primary;\n"


@pytest.mark.req("SYL-110")
async def test_a_value_is_found_as_colors_primary(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        for value in ("#3B82F6", "#3b82f6", "rgb(59, 130, 246)", "rgb(59 130 246 / 100%)", " #3B82F6FF "):
            answer = await find_design_token(code, value)
            assert answer.found, value
            first = answer.matches[0]
            assert (first.path, first.value, first.source) == ("colors.primary", "#3B82F6", "src/styles/theme.css:3")
            assert [each.path for each in answer.matches] == ["colors.primary", "colors.link"]


@pytest.mark.req("SYL-110")
async def test_tokens_come_by_category_with_their_lines(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        everything = await get_design_tokens(code)
        colours = await get_design_tokens(code, "colors")
    assert [(each.path, each.value) for each in everything] == [
        ("colors.primary", "#3B82F6"),
        ("colors.text", "#1F2937"),
        ("colors.link", "#3B82F6"),
        ("spacing.md", "16px"),
        ("radii.lg", "12px"),
        ("shadows.card", "0 1px 2px rgba(0, 0, 0, 0.1)"),
        ("typography.font-size-body", "1rem"),
    ]
    assert {each.category for each in colours} == {"colors"}
    for each in everything:
        assert f"-{each.name}:" in line_at(REACT, each.source)


@pytest.mark.req("SYL-110")
@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "design/brand.tokens.json",
            W3C,
            {
                "colors.primary": "#3B82F6",
                "colors.link": "#3B82F6",
                "colors.space": "#010203",
                "spacing.small": "4px",
                "typography.font-family": "Inter, sans-serif",
            },
        ),
        (
            "tokens/base.json",
            DICTIONARY,
            {
                "colors.brand-base": "#3b82f6",
                "colors.brand-text": "#3b82f6",
                "typography.size-font-small": "12px",
            },
        ),
        ("styles/_vars.scss", SCSS, {"colors.primary": "#3B82F6", "radii.sm": "4px", "colors.accent": "#3B82F6"}),
    ],
)
async def test_each_kind_of_source_is_read(tmp_path: Path, path: str, text: str, expected: dict[str, str]) -> None:
    async with project(tmp_path, {path: text}) as code:
        found = await get_design_tokens(code)
        match = (await find_design_token(code, "#3B82F6")).matches[0]
    assert {each.path: each.value for each in found} == expected
    assert "3b82f6" in line_at({path: text}, match.source).lower()


@pytest.mark.req("SYL-110")
async def test_a_value_without_a_token_is_not_found(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        assert not (await find_design_token(code, "#00FF00")).found
        length = await find_design_token(code, "16PX")
    assert [each.path for each in length.matches] == ["spacing.md"]


async def test_an_empty_value_is_refused(tmp_path: Path) -> None:
    async with project(tmp_path, {"a.py": "x = 1\n"}) as code:
        assert await get_design_tokens(code) == []
        with pytest.raises(InvalidInput, match="value"):
            await find_design_token(code, " ")


async def test_hostile_sources_raise_nothing(tmp_path: Path) -> None:
    deep = '{"a":' * 3_000 + "1" + "}" * 3_000
    files = {
        "tokens.json": deep,
        "a/tokens.json": "[" * 60_000,
        "b/tokens.json": '{"x": {"$value": {"a": [[[[]]]]}, "$type": 3}, "y": {"$value": null}, "$value": 1}',
        "c.css": "--a: var(--b);--b: var(--a);" + "--c: " * 5_000 + "/*" * 5_000,
        "d.scss": "$a: $a $a $a $a;\n" * 200,
    }
    async with project(tmp_path, files) as code:
        found = await get_design_tokens(code)
    assert all(len(each.value) <= 300 for each in found)


async def test_keys_are_masked(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 10
    async with project(tmp_path, {"a.css": f":root {{ --note: '{key}'; --color-a: #fff; }}\n"}) as code:
        found = await get_design_tokens(code)
    assert "colors.a" in {each.path for each in found}
    assert key not in repr(found)


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("#fff", Colour(255, 255, 255)),
        ("#0008", Colour(0, 0, 0, 136)),
        ("rgba(0,0,0,.5)", Colour(0, 0, 0, 128)),
        ("#ggg", None),
        ("rgb(1, 2)", None),
        ("rgb(a b c)", None),
        ("16px", None),
        ("", None),
    ],
)
def test_colours_are_read_by_value(text: str, colour: Colour | None) -> None:
    assert read_colour(text) == colour
