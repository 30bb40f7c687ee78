"""Results of tools become guided content that every interface can send."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import pytest

from clew.tools import Guidance, GuidedContent, guide
from clew.tools.content import ValueContent, as_content


@dataclass
class Row:
    city: str
    orders: int


@pytest.mark.req("ERN-04")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("# Text", "# Text"),
        ("", ""),
        (None, ""),
        (7, "```json\n7\n```"),
        ({"a": [1]}, '```json\n{\n  "a": [\n    1\n  ]\n}\n```'),
        ([Row("Riga", 2)], '```json\n[\n  {\n    "city": "Riga",\n    "orders": 2\n  }\n]\n```'),
    ],
)
def test_text_stays_and_other_values_are_a_block_of_json(value: Any, content: str) -> None:
    assert as_content(value).content == content


@pytest.mark.req("ERN-04")
def test_a_tool_that_ends_a_path_gives_no_guidance() -> None:
    assert list(as_content("the end").guidance) == []
    assert msgspec.json.encode(as_content("the end")) == b'{"content":"the end","guidance":[]}'


@pytest.mark.req("ERN-04")
def test_guidance_is_a_route_prose_and_maybe_arguments() -> None:
    assert guide("d://tools/a", "Then this") == Guidance(route="d://tools/a", prose="Then this", params=None)
    assert guide("d://tools/a", "Then this", id=1).params == {"id": 1}


@pytest.mark.req("ERN-04")
def test_arguments_that_are_filled_in_become_what_json_holds() -> None:
    given = GuidedContent(content="c", guidance=[guide("d://tools/a", "Then", since=date(2026, 2, 3), row=Row("R", 1))])
    (step,) = as_content(given).guidance
    assert step.params == {"since": "2026-02-03", "row": {"city": "R", "orders": 1}}


@pytest.mark.parametrize(
    "value",
    [
        object(),
        GuidedContent(content=5),  # type: ignore[arg-type]  # what an unchecked tool may do
        GuidedContent(content="c", guidance=None),  # type: ignore[arg-type]  # the same
        GuidedContent(content="c", guidance=["next"]),  # type: ignore[list-item]  # the same
        GuidedContent(content="c", guidance=[guide("d://tools/a", "Then", thing=object())]),
        GuidedContent(content="c", guidance=[guide("d://tools/a", "half \ud800")]),
    ],
)
def test_values_that_json_cannot_represent_are_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        as_content(value)


def test_half_a_character_is_replaced() -> None:
    assert as_content("a\ud800b") == as_content(GuidedContent(content="a\ud800b")) == GuidedContent(content="a?b")


def test_a_value_that_is_not_text_is_kept_beside_how_it_is_shown() -> None:
    found = as_content({"hours": 3.0, "by": (1, 2)})
    assert isinstance(found, ValueContent)
    assert found.value == {"hours": 3.0, "by": [1, 2]}
