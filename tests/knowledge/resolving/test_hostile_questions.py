"""No question, however it is built, keeps those who read it busy: all of them are read in a process that is given up
after a while."""

from __future__ import annotations

import subprocess
import sys

import pytest

PATIENCE = 120
READ = """
import sys
from clew.catalog.text import inline
from clew.knowledge.resolving.about_commits import read_authors, read_sha, read_thing
from clew.knowledge.resolving.about_origins import read_origin, speaks_of
from clew.knowledge.resolving.about_versions import read_version
from clew.knowledge.resolving.aspects import are_at_odds, aspect_of
from clew.knowledge.resolving.choices import read_choice, says_choice
from clew.knowledge.resolving.definitions import read_names
from clew.knowledge.resolving.excerpts import excerpt
from clew.knowledge.resolving.intents import classify
from clew.knowledge.resolving.noted import read_notes_question
from clew.knowledge.resolving.loosely import are_loosely_the_same
from clew.knowledge.resolving.periods import read_period
from clew.knowledge.resolving.phrases import Intent
from clew.knowledge.resolving.rewording import reword
from clew.knowledge.resolving.worded import asks_for_default
from clew.knowledge.project.questions import asks_for_people, categories_in, read_question
from clew.secrecy import mask_keys
from datetime import UTC, datetime

start = sys.argv[1]
now = datetime(2026, 11, 1, tzinfo=UTC)
origin = read_origin("which version introduced the kettle")
choice = read_choice("which database does shop use", "shop")
readers = [
    inline, categories_in, read_question, read_authors, read_sha, read_thing, read_version, aspect_of, read_names,
    classify, reword, mask_keys, read_notes_question, read_origin, asks_for_default, asks_for_people,
    lambda text: read_choice(text, "a"), lambda text: speaks_of(origin, text), lambda text: says_choice(choice, text),
    lambda text: read_period(text, now), lambda text: excerpt(text, text, 160),
    lambda text: are_at_odds(text, text[1:]),
    lambda text: are_loosely_the_same(text, text[1:], Intent.EXPLAIN),
]
parts = (
    ".", "-", "/", "../", "@", "a", "a ", "a.", "'", '"', "`", "(", "[", "<", "*", "_", "1", "1.", "1 ", ":", ", ",
    "# ", "\\n", "of ", "the ", "and ", "a b ", "last ", "in ", "by ", "-a ", "v1.", "A", "aB", "é", "\\u200b",
)
for part in parts:
    for length in (60, 1_000):
        for end in ("", " x"):
            question = start + (part * length)[:length] + end
            for read in readers:
                read(question)
print("read")
"""


@pytest.mark.parametrize(
    "start",
    [
        "",
        "what ",
        "which version of ",
        "who changed ",
        "explain how ",
        "when was ",
        "who are the ",
        "which database does ",
    ],
)
def test_every_question_is_read_in_time(start: str) -> None:
    done = subprocess.run([sys.executable, "-c", READ, start], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "read\n", done.stderr
