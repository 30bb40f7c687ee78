"""Citations lead to exactly one file, for any file name."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from clew.app import open_app
from clew.config import Config, HygieneConfig
from clew.knowledge.evidence.trust import on_one_line
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.doors import known

PLAIN = [
    "src/a.py",
    "-rf.py",
    "app/[slug]/(group)/page.tsx",
    "a b.py",
    "ключ/鍵.py",
    "#1.md",
    "https://example.com/a?b=c#d",
]


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_that_can_be_seen_is_shown_as_it_is(name: str) -> None:
    assert on_one_line(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("auth\u200b.py", "auth\\u200b.py"),
        (" lead.py", "\\x20lead.py"),
        ("end.py ", "end.py\\x20"),
        ("two  spaces.py", "two \\x20spaces.py"),
        ("esc\x1b[31m.py", "esc\\x1b[31m.py"),
        ("\u202eyp.a", "\\u202eyp.a"),
        ("line\nbreak.py", "line\\x0abreak.py"),
        ("hard\xa0space.py", "hard\\xa0space.py"),
        ("tag\U000e0041.py", "tag\\U000e0041.py"),
        ("back\\slash.py", "back\\\\slash.py"),
        ("# head.md", "\\x23 head.md"),
        ("- item.md", "\\x2d item.md"),
        ("1. first.md", "\\x31. first.md"),
        ("[a](b).md", "[a]\\x28b).md"),
        ("[a]", "\\x5ba]"),
        ("`a` <b> *c*.md", "\\x60a\\x60 \\x3cb\\x3e \\x2ac\\x2a.md"),
    ],
)
def test_invisible_characters_and_markup_are_escaped(name: str, shown: str) -> None:
    assert on_one_line(name) == shown


NAMES = st.text(alphabet="ab \\x20u\u200b\n\t\xa0`*<[](#-", max_size=12)


@given(st.lists(NAMES | st.text(max_size=20), unique=True, max_size=6))
def test_no_two_names_look_the_same_and_none_is_markup(names: list[str]) -> None:
    shown = [on_one_line(name) for name in names]
    assert not [pair for pair in combinations(shown, 2) if pair[0] == pair[1]]
    for each in filter(None, shown):
        assert each == " ".join(each.split())
        tokens = [token for token in MarkdownIt("commonmark").parse(f"- {each}:1") if not token.type.startswith("list")]
        assert [token.type for token in tokens][1:-1] == ["paragraph_open", "inline", "paragraph_close"]
        inner = {child.type for token in tokens for child in token.children or ()}
        assert not inner & {"link_open", "image", "html_inline", "code_inline"}


async def test_an_answer_distinguishes_files_with_look_alike_names(tmp_path: Path) -> None:
    files = {
        "auth.py": "def check_password():\n    pass\n",
        "auth\u200b.py": "def check_password():\n    return True\n",
    }
    config = Config(folder=make_repository(tmp_path / "shop", files) / ".clew", hygiene=HygieneConfig(enabled=False))
    async with open_app(config) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        lines = "\n".join(await known(app, "where is check_password"))
    assert "] auth.py:1-2@" in lines
    assert "] auth\\u200b.py:1-2@" in lines
