"""The first questions in a folder are answered before everything is indexed."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.cli.terminal.answer import NOTHING
from clew.knowledge import base
from tests.cli.conftest import Clew
from tests.knowledge.code.repositories import make_repository

FILES = {
    "src/retry.py": 'def backoff(attempt):\n    """Seconds before the next attempt."""\n    return 2**attempt\n',
    "docs/decisions/0001-retry.md": "# 1. Retry twice\n\n## Decision\n\nA payment is retried twice.\n",
    ".gitignore": ".clew/\n",
}


@pytest.mark.req("BEY-11")
def test_answers_wait_for_no_indexing_and_say_that_it_is_not_complete(
    clew: Clew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path, FILES)
    monkeypatch.setattr(base, "BRIEF_SECONDS", 0.0)
    monkeypatch.setattr(base, "FEW_FILES", 0)
    first = clew("ask", "where are the seconds before the next attempt")
    assert "src/retry.py:1" in first.out
    assert base.PARTIAL in first.out

    second = clew("ask", "where is backoff")
    assert "src/retry.py:1" in second.out
    assert base.PARTIAL in second.out

    monkeypatch.setattr(base, "BRIEF_SECONDS", 600.0)
    third = clew("ask", "what did we decide about retry of a payment")
    assert base.PARTIAL not in third.out
    assert "0001-retry.md:1" in third.out


@pytest.mark.req("BEY-11")
def test_a_small_folder_is_indexed_before_its_first_answer(
    clew: Clew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path, FILES)
    monkeypatch.setattr(base, "BRIEF_SECONDS", 0.0)
    first = clew("ask", "what did we decide about retry of a payment")
    assert base.PARTIAL not in first.out
    assert "0001-retry.md:1" in first.out


def test_a_question_that_nothing_is_close_to_says_so_while_indexing_goes_on(
    clew: Clew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path, FILES)
    monkeypatch.setattr(base, "BRIEF_SECONDS", 0.0)
    monkeypatch.setattr(base, "FEW_FILES", 0)
    answer = clew("ask", "xylophagous quasar brinkmanship")
    assert base.PARTIAL in answer.out
    assert NOTHING in answer.out


def test_an_answer_that_the_files_do_not_have_is_not_padded_with_their_sections(clew: Clew, tmp_path: Path) -> None:
    texts = {"docs/support.md": "# Support\n\nThe current version of the program is supported for two years.\n"}
    make_repository(tmp_path, {**FILES, **texts})
    answer = clew("ask", "does it support rate limiting")
    assert "Nothing in this folder answers that" in answer.out
    assert "repo://resources" not in answer.out


@pytest.mark.parametrize("question", ["%s", "zz/qq.py"])
def test_a_question_without_words_that_finds_nothing_says_so(clew: Clew, tmp_path: Path, question: str) -> None:
    make_repository(tmp_path, FILES)
    assert NOTHING in clew("ask", question).out
