"""The estimate is slightly above the exact count for all texts with words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.llm.tokens import count_tokens, estimate_tokens

ROOT = Path(__file__).parents[2]
ROUTES = ", ".join(f"`system-{at}://tools/tool-{at}`" for at in range(40))
TEXTS = {
    "prose": (ROOT / "docs/architecture.md").read_text(),
    "code": (ROOT / "src/clew/tools/tool.py").read_text(),
    "routes": ROUTES,
    "camel": ", ".join(f"getUser{name}ById" for name in ("Order", "Invoice", "Payment", "Device")),
    "cyrillic": "Проверка качества поиска по каталогу инструментов. " * 10,
    "german": "Größenänderungen über alle Schließfächer hinweg prüfen. " * 10,
    "chinese": "数据仓库中的订单和用户分析工具。" * 10,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_an_estimate_is_not_below_the_real_count_of_text_with_words(kind: str) -> None:
    text = TEXTS[kind]
    assert estimate_tokens(text) >= count_tokens(text) * 0.98


@pytest.mark.parametrize("kind", ["prose", "code", "routes", "camel"])
def test_an_estimate_is_at_most_half_too_high(kind: str) -> None:
    text = TEXTS[kind]
    assert estimate_tokens(text) <= count_tokens(text) * 1.5


@given(st.text(max_size=200), st.text(max_size=200))
def test_an_estimate_grows_with_the_text_and_parts_never_cost_less_than_the_whole(one: str, other: str) -> None:
    both = estimate_tokens(one + other)
    assert estimate_tokens(one) <= both <= estimate_tokens(one) + estimate_tokens(other)


def test_no_text_takes_no_tokens_and_half_a_character_can_be_counted() -> None:
    assert (estimate_tokens(""), count_tokens("")) == (0, 0)
    assert estimate_tokens("\ud800") > 0
    assert count_tokens("hello world") == 2
