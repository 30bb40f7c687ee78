"""Which version, when and by whom something came or went: what is asked, and which lines tell it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.history.changelog import ChangeNote, read_changelog
from clew.knowledge.resolving.about_origins import commits_on, notes_on, read_origin
from tests.knowledge.nodes import HISTORY, node

CHANGELOG = b"""# Changelog

## 2.0.0 (6th December, 2024)

- The deprecated `proxies` argument has now been removed.

### Removed

- Drop support for Python 3.7. (#2813)
- Remove pipes of clay.

### Deprecated

- `app.del()` -- use `app.delete()` instead

### Added

- Event hooks are now also called for redirects.

## 1.2.0

- [FEATURE #7](https://example.org/7): Add a new `--json` flag that prints lines.
- Make `--replace` work with `--json`.
- Allow annotated parsing with a subclass of a path.
- Support "prior knowledge" of HTTP/2.

## 1.1.0

- Added support for event hooks. (Pull #12)
- \xf0\x9f\x94\xa5 Remove support for pipes.
- Fixed a crash of event hooks.
"""


def told(question: str) -> list[tuple[str, int]]:
    asked = read_origin(question)
    assert asked is not None
    notes: list[ChangeNote] = notes_on(read_changelog("CHANGELOG.md", CHANGELOG), asked)
    return [(note.version, note.line) for note in notes]


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "version"),
    [
        ("which version introduced event hooks", "1.1.0"),
        ("in which release were the event hooks added?", "1.1.0"),
        ("since which version is the --json flag available", "1.2.0"),
        ("which version removed the proxies argument", "2.0.0"),
        ("when was the proxies argument removed", "2.0.0"),
        ("which version dropped Python 3.7", "2.0.0"),
        ("which version removed pipes", "1.1.0"),
    ],
)
def test_the_line_whose_object_it_is_tells_its_version(question: str, version: str) -> None:
    assert told(question)[0][0] == version


@pytest.mark.parametrize(
    "question",
    [
        "which version dropped Python 3.8",
        "which version introduced replacing",
        "which version introduced HTTP/2",
        "when was the annotated support added",
        "which version removed event hooks",
        "which version removed app.del",
        "which version introduced --js",
    ],
)
def test_a_line_that_only_mentions_it_tells_nothing(question: str) -> None:
    assert told(question) == []


@pytest.mark.parametrize(
    ("subject", "is_told"),
    [
        ("Add flag groups (#12)", True),
        ("Support flag groups", True),
        ("cli: add initial support for flag groups", True),
        ("Add 'one required flag' group", False),
        ("Flag groups for the tunnel", False),
        ("Add a test of flag groups", False),
        ("Remove flag groups", False),
        ("Deprecate flag groups", False),
    ],
)
def test_a_commit_tells_a_version_only_of_what_is_all_of_its_object(subject: str, is_told: bool) -> None:
    asked = read_origin("which version introduced flag groups")
    assert asked is not None
    assert bool(commits_on([node(HISTORY, subject)], asked)) is is_told


@pytest.mark.parametrize(
    "question",
    ["which version of numpy is needed", "when is the next release", "who maintains it", "what changed in 2.0.0", ""],
)
def test_other_questions_ask_for_no_origin(question: str) -> None:
    assert read_origin(question) is None


@given(st.text(max_size=1_000))
def test_any_text_may_be_asked(text: str) -> None:
    asked = read_origin(f"which version introduced {text}")
    assert asked is None or asked.words
