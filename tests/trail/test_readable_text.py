from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.trail.model.readable import (
    MAX_POINTERS,
    MAX_TEXT,
    STATES,
    STOP_WORDS,
    ReadableText,
    count_words,
    pointers,
    readable,
    tag_kind,
)
from clew.trail.templates.hints import apply_hints

BROWSER = {
    "name": "astral",
    "description": "Automates a page: click an element, take a screenshot.",
    "actions": [{"verb": "click", "needs": "selector"}, {"verb": "screenshot"}],
    "limits": {"memory": 64, "fast": True, "none": None},
}


def test_the_description_is_separate_and_other_texts_follow_in_order() -> None:
    shown = readable("Browser tool", BROWSER)

    assert shown == ReadableText(
        title="Browser tool",
        description="Automates a page: click an element, take a screenshot.",
        content="astral\nclick\nselector\nscreenshot",
    )


@pytest.mark.parametrize(
    ("view", "description", "content"),
    [
        ({}, "", ""),
        ({"summary": "s", "a": "t"}, "s", "t"),
        ({"a": "t", "description": "d", "summary": "s"}, "d", "t\ns"),
        ({"description": 5, "summary": "s"}, "s", ""),
        ({"description": ["x"], "summary": None, "a": 1}, "", "x"),
        ({"description": ""}, "", ""),
        ({"a": "", "b": [], "c": {}, "d": "x", "e": [[["y"]]]}, "", "x\ny"),
        ({"n": 1, "f": 1.5, "t": True, "none": None}, "", ""),
        ({"$secret": "name"}, "", "name"),
        ({"key": {"$secret": "billing-key"}, "list": [{"$secret": "other"}, "kept"]}, "", "kept"),
        ({"list": ["$secret", "kept"]}, "", "$secret\nkept"),
    ],
)
def test_only_texts_are_readable(view: dict[str, Any], description: str, content: str) -> None:
    assert readable("T", view) == ReadableText("T", description, content)


@pytest.mark.req("RCR-07")
def test_excluded_fields_do_not_reach_the_text_that_is_embedded() -> None:
    context = {"name": "pay", "code": "const hidden = 1", "note": "for invoices"}
    hints = {"exclude": ["code"]}

    assert readable("T", apply_hints(context, hints)).content == "pay\nfor invoices"
    assert readable("T", apply_hints({**context, "code": "else"}, hints)) == readable("T", apply_hints(context, hints))


@pytest.mark.req("RCR-07")
def test_the_text_is_the_readable_form_and_not_json() -> None:
    shown = readable("T", BROWSER)

    assert not any(mark in shown.content for mark in ('"', "{", "[", "verb", "limits", "64"))


def test_long_texts_are_cut() -> None:
    shown = readable("T", {"description": "d" * 50_000, "a": "x" * (MAX_TEXT - 2), "b": "yz", "c": "never"})

    assert len(shown.description) == MAX_TEXT
    assert shown.content == "x" * (MAX_TEXT - 2) + "\ny"


def test_only_a_bounded_part_of_huge_and_deep_contexts_is_read() -> None:
    deep: Any = "bottom"
    for _ in range(50_000):
        deep = [deep]

    assert readable("T", {"a": [0] * 100_000, "b": "late"}).content == "late"
    assert readable("T", {"a": deep}).content == ""
    assert readable("T", {"a": [[]] * 100_000, "b": "too late"}).content == ""
    assert len(readable("T", {"a": ["words"] * 100_000}).content) == MAX_TEXT


@pytest.mark.req("RCR-09")
@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        ("session:42", "routing"),
        ("workspace:tools", "routing"),
        ("a:b:c", "routing"),
        ("error:timeout", "routing"),
        ("browser-automation", "pointer"),
        ("Playwright", "pointer"),
        ("drafts", "pointer"),
        ("two words", "pointer"),
        ("approved", "state"),
        ("Deprecated", "state"),
        ("status:running", "state"),
        ("state:anything", "state"),
    ],
)
def test_a_tag_is_for_routing_pointing_or_state(tag: str, kind: str) -> None:
    assert tag_kind(tag) == kind


@pytest.mark.req("RCR-08")
def test_a_browser_tool_has_pointers_from_its_tag_and_words() -> None:
    tags = ("workspace:tools", "tool:astral", "browser-automation", "playwright", "approved")
    found = pointers(tags, readable("Browser tool", BROWSER))

    assert found[:2] == ("browser-automation", "playwright")
    assert {"click", "screenshot", "page", "selector", "browser"} <= set(found)
    assert not {"workspace:tools", "tools", "approved", "take", "the"} & set(found)


def test_words_are_sorted_by_count_and_first_occurrence() -> None:
    shown = ReadableText("zebra apple", "mango apple", "zebra apple kiwi")

    assert pointers(("kiwi", "Lime"), shown) == ("kiwi", "lime", "apple", "zebra", "mango")


def test_the_number_of_pointers_is_limited() -> None:
    words = " ".join(f"word{n}x" for n in range(100))

    assert len(pointers((), ReadableText(words, "", ""))) == MAX_POINTERS
    assert pointers([f"tag-{n}" for n in range(100)], ReadableText(words, "", "")) == tuple(
        f"tag-{n}" for n in range(MAX_POINTERS)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a an it 12 2024 99999", []),
        ("getUserName", ["getusername", "user", "name"]),
        ("get_user_name", ["get_user_name", "user", "name"]),
        ("HTTPServer parseXMLDoc", ["httpserver", "http", "server", "parsexmldoc", "parse", "xml", "doc"]),
        ("MAX_SIZE __init__", ["max_size", "max", "size", "__init__", "init"]),
        ("sha256 v2ray", ["sha256", "v2ray"]),
        ("README Deploy", ["readme", "deploy"]),
        ("Straße ÉcoleNormale ДомМир", ["straße", "écolenormale", "école", "normale", "доммир", "дом", "мир"]),
        ("caf\u0065\u0301s", ["cafés"]),
        ("don't can't won't", ["won"]),
        ("the and with without These", []),
        ("x" * 65 + " " + "y" * 64, ["y" * 64]),
        ("日本語の文書", ["日本語の文書"]),
    ],
)
def test_words_are_taken_whole_and_by_their_parts(text: str, expected: list[str]) -> None:
    assert list(count_words(text)) == expected


def test_repeated_words_are_counted_in_any_case() -> None:
    assert count_words("Deploy deploy DEPLOY deployTool") == {"deploy": 4, "deploytool": 1, "tool": 1}


def test_the_word_lists_are_clean() -> None:
    assert all(word == word.lower() and len(word) > 2 for word in STOP_WORDS)
    assert not {"done"} ^ (STATES & STOP_WORDS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), VALUES), st.lists(st.text(min_size=1, max_size=9), max_size=5))
def test_any_context_gives_the_same_text_and_pointers_each_time(context: dict[str, Any], tags: list[str]) -> None:
    shown = readable("Title", context)
    found = pointers(tags, shown)

    assert found == pointers(tags, readable("Title", json.loads(json.dumps(context))))
    assert len(found) == len(set(found)) <= MAX_POINTERS
    assert "$secret" in str(context) or all(text in shown.content for text in _texts(context))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for child in children for text in _texts(child)]
