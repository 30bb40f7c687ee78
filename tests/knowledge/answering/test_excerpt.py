"""An answer shows the part of a long section that matches the question."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.app import open_app
from clew.config import Config
from clew.knowledge.answering.sources import excerpt
from tests.knowledge.doors import known

FILLER = "The shop opens at eight and closes at six, on every day but Sunday, when it is shut all day long. "
MORE = FILLER.replace("shop", "bakery") + FILLER.replace("shop", "market")
SECTION = f"## Deliveries\n\n{FILLER}{MORE}\n\n- Parcels above 30 kilos go by freight.\n- Letters go by post.\n"


@pytest.mark.parametrize(
    ("text", "question", "shown"),
    [
        ("", "what", ""),
        ("One.", "", "One."),
        ("# Limits\n\nUp to 100 euros. Then two.", "how many euros", "Limits Up to 100 euros. Then two."),
        (SECTION, "how do parcels above 30 kilos go", "Deliveries … Parcels above 30 kilos go by freight."),
        (SECTION, "what of elephants", "Deliveries The shop opens at eight"),
        (f"{MORE}Parcels wait.", "where do parcels wait", "… Parcels wait."),
    ],
)
def test_it_begins_where_the_question_is_spoken_of(text: str, question: str, shown: str) -> None:
    assert excerpt(text, question, 160).startswith(shown)


def test_a_text_without_any_breaks_is_taken_whole() -> None:
    assert excerpt("x" * 50_000, "x", 160) == "x" * 20_000
    assert excerpt("?! " * 10_000, "what", 160)


async def test_ask_shows_the_sentence_that_answers(tmp_path: Path) -> None:
    (tmp_path / "shop.md").write_text(f"# Shop\n\n{SECTION}", encoding="utf-8")
    async with open_app(Config(folder=tmp_path / ".clew")) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        lines = await known(app, "how do parcels above 30 kilos go")
    assert any("Parcels above 30 kilos go by freight." in line for line in lines)
