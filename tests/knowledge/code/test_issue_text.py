"""The parts of the text of an issue: title, names, paths, tracebacks, and parts with little weight."""

from __future__ import annotations

import pytest

from clew.knowledge.code.search.words import parse_issue_text, split_zones, terms_of

ISSUE = """Table.read fails for lower case commands
### Description
The reader in `astropy/io/ascii/qdp.py` assumes upper case, see `_line_type`.
<!-- Please remove this template text about kangaroos -->
```python
>>> Table.read('test.qdp', format='ascii.qdp')
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/astropy/io/ascii/core.py", line 26, in io_write
  File "/usr/lib/python3/site-packages/astropy/io/ascii/qdp.py", line 70, in _line_type
ValueError: Unrecognized QDP line: read serr 1 2
```
### Versions
Python 3.10.9
numpy 1.24.1
"""


def weight(text: str, word: str) -> float:
    return parse_issue_text(text).terms.get(terms_of(word)[0], 0.0)


def test_names_paths_and_frames_are_kept_as_written() -> None:
    question = parse_issue_text(ISSUE)
    assert "_line_type" in question.names
    assert "astropy/io/ascii/qdp.py" in question.paths
    assert [frame.rpartition("/")[2] for frame in question.frames] == ["core.py", "qdp.py"]
    assert {"Table", "read"} <= question.names


def test_the_title_counts_more_than_prose_and_prose_more_than_versions() -> None:
    assert weight(ISSUE, "commands") > weight(ISSUE, "assumes") > weight(ISSUE, "numpy") > 0


def test_comments_left_by_a_template_do_not_count() -> None:
    assert weight(ISSUE, "kangaroos") == 0


def test_headings_of_templates_count_nothing() -> None:
    assert weight("broken\n### Describe the bug\nit crashes\n### Expected behavior\nno crash", "behavior") == 0


def test_the_message_of_an_error_counts_beyond_the_code_around_it() -> None:
    assert weight(ISSUE, "Unrecognized") > weight(ISSUE, "python3")


def test_a_block_of_versions_is_dull() -> None:
    text = "crash\n\nVersions:\n```\nnumpy 1.2.3\n```\n"
    assert "numpy" in split_zones(text)["dull"]


def test_an_identifier_is_found_by_its_parts_and_as_a_whole() -> None:
    assert set(terms_of("score_lexical")) == {*terms_of("score"), *terms_of("lexical"), *terms_of("scoreLexical")[-1:]}


def test_a_short_form_is_the_word_it_stands_for() -> None:
    assert terms_of("str") == terms_of("string")
    assert terms_of("idx") == terms_of("index")


def test_the_name_of_a_language_says_little_in_a_question_of_one_line() -> None:
    assert weight("reverse a string in python", "python") < weight("reverse a string in python", "reverse")
    assert weight("crash\nwhen python starts", "python") == weight("crash\nwhen linux starts", "linux")


def test_a_commit_message_is_a_title() -> None:
    question = parse_issue_text("fix(router): allow trailing slash")
    assert question.title == "fix(router): allow trailing slash"
    assert question.terms[terms_of("router")[0]] == question.terms[terms_of("trailing")[0]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\n",
        "?!",
        "the of and",
        "\0\ud800",
        "日本語の質問",
        "```",
        "`" * 5_000,
        '"""',
        "<details>",
        "\u2028".join("abc"),
    ],
)
def test_no_text_is_refused(text: str) -> None:
    question = parse_issue_text(text)
    assert all(amount > 0 for amount in question.terms.values())


@pytest.mark.parametrize(
    "piece", ["a", " ", "*", "/a", "a.", "_", "(", "`", "# ", "1.", 'File "', "<!--", "\n\n", "a-"]
)
def test_hostile_repetition_is_read_in_bounded_work(piece: str) -> None:
    """A million equal characters: the text is cut first, and no expression backtracks; otherwise this would not end."""
    assert len(parse_issue_text(piece * (1_000_000 // len(piece))).terms) < 100
