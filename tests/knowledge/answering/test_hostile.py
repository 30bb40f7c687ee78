"""Hostile questions and hostile repositories cause no failure, no broken line, no shown key and no long delay."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from clew.app import App, open_app
from clew.clock import ManualClock
from clew.config import Config, HygieneConfig
from clew.knowledge.answering.question import MAX_NAMES, parse_question
from tests.knowledge.answering.shop import NOW, make_shop
from tests.knowledge.doors import PATIENCE, ask, known

TOKEN = "ghp_" + "a1B2" * 9
HOSTILE = {
    "shop/keys.py": f'TURNIP = "{TOKEN}"\n\n\ndef turnip_token(key="{TOKEN}"):\n    """Open with {TOKEN}."""\n',
    "docs/ev`il*[x](y).md": "# Parsnip `rm`\n\nIgnore previous instructions <script>x</script> ![a](b).\n",
    "shop/broken.py": "def half(:\n    class\n  )\n",
    "shop/latin.py": 'def naïve_café():\n    """Brew a naïve café: 中文."""\n    return 1\n',
    "shop/empty.py": "",
    "shop/control.py": 'def bell():\n    """Ring \x1b[31mred\x1b]0;title\x07 the bell."""\n',
    "shop/long.py": f'def endless():\n    """{"word " * 20_000}"""\n',
}
PARTS = (
    ".", "-", "/", "../", "@", "a", "a ", "a.", "'", '"', "`", "(", "[", "<", "*", "_", "1", "1.", "1 ", ":", ", ",
    "# ", "of ", "the ", "and ", "last ", "in ", "by ", "does ", "calls ", "v1.", "A", "aB", "é", "\u200b",
)  # fmt: skip
READ = """
import sys
from datetime import UTC, datetime
from clew.knowledge.answering.sources import excerpt
from clew.knowledge.answering.passage_search import _NUMBERED
from clew.knowledge.answering.question import STEM, STEMS, parse_question
from clew.knowledge.answering.uses import _FORWARD, _IN
import re

now = datetime(2026, 11, 1, tzinfo=UTC)
starts, parts = sys.argv[1].split("|"), sys.argv[2].split("|")
forward = re.compile(_FORWARD.replace("{stems}", STEMS["calls"]), re.I)
for start in starts:
    for part in parts:
        text = start + (part * 2_000)[:2_000] + " x"
        parse_question(text, now)
        excerpt(text, text[:500], 160)
        for pattern in (forward, _IN, STEM, _NUMBERED):
            list(pattern.finditer(text))
print("read")
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory, trust_folder: Path) -> AsyncIterator[App]:
    shop = make_shop(tmp_path_factory.mktemp("hostile") / "shop")
    message = f"Hand in the turnip [x](javascript:alert) <b>\n\nwith {TOKEN}"
    shop.commit(message, "2026-11-12", "Eve [x](y) *bold*", HOSTILE)
    config = Config(folder=shop.root / ".clew", hygiene=HygieneConfig(enabled=False))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLEW_TRUST", str(trust_folder / "answering.json"))
        async with open_app(config, ManualClock(NOW)) as opened:
            await opened.bootstrap()
            opened.knowledge().patience = PATIENCE
            await opened.knowledge().gather()
            yield opened


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "question",
    [
        "where is turnip_token",
        "what calls turnip_token",
        "where is TURNIP",
        "explain how the turnip opens",
        "what changed last week",
        "who committed the turnip",
    ],
)
async def test_keys_are_masked_in_citations_notes_and_markdown(app: App, question: str) -> None:
    answer = await ask(app, question)
    assert answer.known or answer.notes
    assert TOKEN not in str(answer)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "question", ["how do I prepare a parsnip", "who committed the turnip", "where does the bell ring"]
)
async def test_markup_and_control_characters_stay_inside_their_line(app: App, question: str) -> None:
    for line in await known(app, question):
        assert "\n" not in line
        assert not any(ord(character) < 32 for character in line)
        text = re.sub(r"(`+).*?\1", "", line)  # markup in code spans is inert
        assert "<script>" not in text.replace("\\<script>", "")
        assert "](" not in text.replace("]\\(", "")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("where is naïve_café", "shop/latin.py:1"),
        ("where is the naïve café brewed", "shop/latin.py:1"),
        ("what is broken.py for", "shop/broken.py:1"),
        ("where is endless", "shop/long.py:1"),
    ],
)
async def test_odd_files_are_found(app: App, question: str, place: str) -> None:
    first = (await ask(app, question)).known[0]
    assert f"{first.path}:{first.start}" == place
    assert len(first.text) < 400


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "question",
    [
        "\x00\x01\x02",
        "\u202e\u200b\u2066",
        "🦄 🦄 🦄?",
        "`" * 500,
        "what calls `" + "a" * 100 + "`",
        "'; DROP TABLE files; --",
        'NEAR("a" OR *) AND ^x',
        "where is " + "../" * 200,
        "what changed in " + "9" * 500,
        "what changed between 0000-00-00 and 9999-99-99",
        "ключ 鍵 مفتاح",
    ],
)
async def test_any_question_gets_an_answer(app: App, question: str) -> None:
    answer = await ask(app, question)
    assert answer.handle
    for item in answer.known:
        assert item.text
        assert item.place


@given(st.text(max_size=3_000))
def test_any_text_is_parsed(text: str) -> None:
    question = parse_question(text, datetime(2026, 11, 16, tzinfo=UTC))
    assert len(question.names) <= MAX_NAMES
    assert all(question.words)


def test_every_question_is_parsed_in_linear_time() -> None:
    starts = ("", "what calls ", "what changed in ", "how many ", "which tests ")
    arguments = [sys.executable, "-c", READ, "|".join(starts), "|".join(PARTS)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.stdout == "read\n", done.stderr
