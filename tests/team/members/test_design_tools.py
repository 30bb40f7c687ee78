"""Tools of the Designer: enums, accessibility, tokens and previews."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.members.toolkit.markup import check_accessibility, contrast_ratio, layout_facts, outline, raw_values
from clew.trail.store import Trail
from tests.team.members.kit import Kit, open_kit
from tests.team.members.test_member_tools import play

PAGE = """<main>
  <h1>Orders</h1>
  <h3>Open</h3>
  <img src="a.png">
  <label for="name">Name</label><input id="name">
  <input type="text">
  <button onClick={close}></button>
  <a href="/x">here</a>
</main>
"""
BUTTON = 'export function Button() {\n  return <button className="primary">{label}</button>;\n}\n'


@pytest.fixture
async def kit(trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path) -> Kit:
    return await open_kit(trail, clock, me, tmp_path)


@pytest.mark.req("SYL-25")
@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("A", ["1.1.1", "3.3.2", "4.1.2"]),
        ("AA", ["2.4.6", "1.1.1", "3.3.2", "4.1.2"]),
        ("AAA", ["2.4.6", "1.1.1", "3.3.2", "4.1.2", "2.4.9"]),
    ],
)
def test_a_higher_level_finds_more(level: Any, expected: list[str]) -> None:
    assert [each.rule for each in check_accessibility(PAGE, level)] == expected


@pytest.mark.req("SYL-25")
def test_contrast_is_measured_within_a_rule() -> None:
    assert round(contrast_ratio("#000", "#ffffff")) == 21
    grey = ".a { color: #777777; background: #fff; }"
    assert [each.level for each in check_accessibility(grey, "AAA")] == ["AA", "AAA"]
    assert check_accessibility(".a { color: #000; background: #fff; }", "AAA") == []


def test_an_outline_shows_elements_with_classes_and_texts() -> None:
    assert outline(BUTTON) == "- button .primary '{}'"


def test_raw_values_leave_tokens_out() -> None:
    assert raw_values(".a {\n  color: #3B82F6;\n  margin: var(--space);\n}\n") == [(2, "#3B82F6")]
    assert layout_facts("@media (min-width: 1px) { .a { display: grid; width: 300px } }")["breakpoints"] == 1


@pytest.mark.req("SYL-25")
async def test_a_designer_builds_and_checks_a_component(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    created, again, preview, issues, styled = await play(
        trail,
        clock,
        me,
        kit,
        "designer",
        {"create_component": {"name": "Button", "path": "ui/Button.tsx", "content": BUTTON, "framework": "react"}},
        {"get_design_tokens": {}},
        {"preview_ui": {"path": "ui/Button.tsx"}},
        {"check_accessibility": {"component": "ui/Button.tsx", "level": "AAA"}},
        {
            "style_component": {
                "component": "Button",
                "path": "ui/b.module.css",
                "content": ".b {}",
                "approach": "css-modules",
            }
        },
    )
    assert "Wrote ui/Button.tsx" in created
    assert again == []
    assert "button" in preview
    assert issues == []
    assert "Wrote" in styled
    assert (kit.tree / "ui/Button.tsx").exists()


@pytest.mark.req("SYL-25")
@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"create_component": {"name": "B", "path": "B.tsx", "content": "B", "framework": "angular"}}, "svelte"),
        ({"create_component": {"name": "B", "path": "B.vue", "content": "B", "framework": "react"}}, ".tsx"),
        ({"style_component": {"component": "B", "path": "b.css", "content": "", "approach": "sass"}}, "tailwind"),
        ({"check_accessibility": {"component": "B.tsx", "level": "AAAA"}}, "AAA"),
        ({"get_design_tokens": {"category": "smells"}}, "spacing"),
    ],
)
async def test_unknown_values_are_refused_with_the_choices(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit, call: dict[str, Any], named: str
) -> None:
    [error] = await play(trail, clock, me, kit, "designer", call)
    assert named in error


@pytest.mark.req("SYL-25")
async def test_contextual_tools_of_a_designer_work(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    (kit.tree / "a.css").write_text(".a {\n  display: flex;\n  color: #123456;\n}\n")
    layout, motion, audit, variants = await play(
        trail,
        clock,
        me,
        kit,
        "designer",
        {"analyze_layout": {"path": "a.css"}},
        {"suggest_animation": {"component": "drawer", "motion": "slide"}},
        {"audit_consistency": {"path": "a.css"}},
        {"generate_variants": {"component": "Button", "variants": ["large", "disabled"]}},
        text="Animate the layout, audit it, and add a variant",
    )
    assert layout["flex"] == 1
    assert "prefers-reduced-motion" in motion
    assert audit == [{"line": 3, "value": "#123456", "tokens": []}]
    assert [each["property"] for each in variants] == ["size=large", "disabled"]
