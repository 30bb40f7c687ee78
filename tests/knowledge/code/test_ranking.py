"""Every signal of the ranking changes the order as it is meant to."""

from __future__ import annotations

import numpy as np
import pytest

from clew.knowledge.code.files import ASIDE, TEST, TEXT, kind_of
from clew.knowledge.code.languages.extract import extract
from clew.knowledge.code.search.passages import pack
from clew.knowledge.code.search.postings import IndexView, PackedFile, build_segment
from clew.knowledge.code.search.ranking import MAX_TERMS, choose_terms, find_signals, priors, rank, score_passages
from clew.knowledge.code.search.words import parse_issue_text

FILES = {
    "pkg/core/engine.py": "class Engine:\n    def start(self):\n        '''Ignite fuel.'''\n        return spark()\n",
    "pkg/core/fuel.py": "def pour(amount):\n    return amount\n\n\ndef ignite():\n    return pour(1)\n",
    "pkg/util.py": "def pour(amount):\n    return amount * 2\n" + "# filler words of no use\n" * 200,
    "docs/fuel.md": "How to pour fuel and ignite the engine.\n",
    "tests/test_engine.py": "def test_engine_starts_with_fuel():\n    Engine().start()\n",
}


def view_of(files: dict[str, str], dead: tuple[str, ...] = ()) -> IndexView:
    known = [
        PackedFile(path, "0" * 40, "python", pack(extract(text.encode(), "python"), text)[0])
        for path, text in files.items()
    ]
    return IndexView([build_segment(known)], [np.array([file.path in dead for file in known])])


def signals(query: str, view: IndexView) -> dict[str, dict[str, float]]:
    """By the name of a signal, its value for each path, including zeros."""
    question = parse_issue_text(query)
    terms, amounts = choose_terms(question.terms, view)
    matches = view.find(terms)
    found = find_signals(question, view, terms, amounts, matches, score_passages(view, matches, amounts))
    return {name: dict(zip(FILES, signal.tolist(), strict=True)) for name, signal in found.items()}


def best(query: str, view: IndexView) -> str:
    return view.files[int(np.argmax(rank(parse_issue_text(query), view).files))].path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/app/router.py", 0),
        ("src/_pytest/skipping.py", 0),
        ("src/contest/latest.py", 0),
        ("tests/test_router.py", TEST),
        ("src/router_test.go", TEST),
        ("src/router.test.ts", TEST),
        ("src/test/java/RouterTest.java", TEST),
        ("axum-extra/src/lib.rs", 0),
        ("examples/hello/main.go", ASIDE),
        ("deno_dist/router.ts", ASIDE),
        ("api/service_pb2.py", ASIDE),
        ("docs/guide.md", ASIDE | TEXT),
        ("README.md", TEXT),
        ("", TEXT),
    ],
)
def test_a_path_tells_tests_and_what_lies_beside_the_product(path: str, kind: int) -> None:
    assert kind_of(path) == kind


def test_a_test_and_a_document_count_fully_when_they_are_asked_for() -> None:
    view = view_of(FILES)
    plain, of_tests, of_text = (
        dict(zip(FILES, priors(view, parse_issue_text(query)).tolist(), strict=True))
        for query in ("engine", "flaky test of the engine", "typo in the docs")
    )
    assert plain["tests/test_engine.py"] < of_tests["tests/test_engine.py"] == 1.0
    assert plain["docs/fuel.md"] < of_text["docs/fuel.md"] == 1.0
    assert plain["pkg/util.py"] == 1.0


def test_the_better_unit_counts_more_than_the_longer_file() -> None:
    found = signals("pour an amount", view_of(FILES))
    assert found["passages"]["pkg/core/fuel.py"] >= found["passages"]["pkg/util.py"] * 0.9
    assert found["file"]["pkg/core/fuel.py"] > found["file"]["pkg/util.py"]


def test_a_name_that_one_file_defines_points_at_it_more_than_one_that_two_define() -> None:
    found = signals("`ignite` or `pour` fails", view_of(FILES))["defines"]
    assert found["pkg/core/fuel.py"] > found["pkg/util.py"] > found["pkg/core/engine.py"] == 0


def test_folder_and_file_name_count_each_for_itself() -> None:
    found = signals("core fuel is wrong", view_of(FILES))
    assert found["folder"]["pkg/core/engine.py"] > found["folder"]["pkg/util.py"] == 0
    assert found["stem"]["pkg/core/fuel.py"] > found["stem"]["pkg/core/engine.py"] == 0


def test_a_path_that_is_named_may_lack_its_beginning_or_have_another() -> None:
    view = view_of(FILES)
    assert signals("see core/fuel.py", view)["mentioned"]["pkg/core/fuel.py"] == 1.0
    assert signals("see /home/me/site-packages/pkg/core/fuel.py", view)["mentioned"]["pkg/core/fuel.py"] == 1.0


def test_the_innermost_frame_of_a_traceback_counts_most() -> None:
    frames = 'Traceback\n  File "pkg/util.py", line 1, in a\n  File "pkg/core/fuel.py", line 2, in b\n'
    found = signals(f"crash\n{frames}", view_of(FILES))["traced"]
    assert found["pkg/core/fuel.py"] == 1.0 > found["pkg/util.py"] > 0


def test_a_dead_file_has_no_score() -> None:
    assert best("pour the fuel", view_of(FILES)) == "pkg/core/fuel.py"
    ranked = rank(parse_issue_text("pour the fuel"), view_of(FILES, dead=("pkg/core/fuel.py",)))
    assert ranked.files[list(FILES).index("pkg/core/fuel.py")] == 0


def test_the_rarest_of_very_many_terms_are_searched() -> None:
    view = view_of({**FILES, **{f"pkg/n{number}.py": f"common = {number}\n" for number in range(20)}})
    question = parse_issue_text("common " + " ".join(f"ignite{number}x" for number in range(2 * MAX_TERMS)))
    terms, amounts = choose_terms(question.terms, view)
    assert len(terms) == len(amounts) <= MAX_TERMS


def test_a_question_without_words_scores_nothing() -> None:
    ranked = rank(parse_issue_text("???"), view_of(FILES))
    assert not ranked.files.any()
    assert not ranked.passages.any()
