"""Files are found by the words of a question: through the index, over a real store, with the real extractor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.knowledge.code import rows
from clew.knowledge.code.file_content import FileContent, ParseJob, blob_id
from clew.knowledge.code.index import advance
from clew.knowledge.code.models import FileFacts, FileStatus, Symbol
from clew.knowledge.code.pool import run_job
from clew.knowledge.code.search.passages import encode_text
from clew.knowledge.code.search.search_index import SearchIndex
from clew.knowledge.code.store import CodeStore
from clew.llm import HashEmbedder

ROUTER = '''"""Routes of the application."""

TRAILING = "/"


class Router:
    """Sends a request to its handler."""

    # Slashes at the end are dropped.
    def match(self, path):
        """Find the handler of a path."""
        if path.endswith(TRAILING):
            raise ValueError("the trailing slash is not allowed here")
        return self.handlers[path]

    def add(self, path, handler):
        self.handlers[path] = handler
'''
MAILER = '''def send_mail(address, text):
    """Deliver a letter to an address."""
    connection = open_smtp()
    connection.deliver(address, text)
'''
TESTS = """from app.router import Router

def test_match_drops_the_trailing_slash():
    assert Router().match("/trailing/slash/")
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CodeStore]:
    opened = CodeStore(tmp_path / "code.db")
    yield opened
    opened.close()


@pytest.fixture
def index(store: CodeStore) -> SearchIndex:
    index = SearchIndex(store)
    put(store, "app/router.py", ROUTER)
    put(store, "app/mail/mailer.py", MAILER)
    put(store, "tests/test_router.py", TESTS)
    return index


def put(store: CodeStore, path: str, text: str, language: str = "python") -> None:
    body = text.encode("utf-8", errors="replace")
    content, parsed = (
        FileContent(path, FileStatus(0, 0, 0, 0), 0, blob_id(body), body),
        run_job(ParseJob(body, language)),
    )
    with store.writing() as sql:
        rows.write_parsed(sql, content.blob, language, parsed, 0)
        rows.write_file(sql, content, language, rows.decode_facts(parsed.facts))
        advance(sql)


def drop(store: CodeStore, path: str) -> None:
    with store.writing() as sql:
        rows.drop_file(sql, path)
        advance(sql)


def paths(index: SearchIndex, query: str, limit: int = 10) -> list[str]:
    return [hit.path for hit in index.search(query, limit=limit)]


def test_a_question_finds_the_file_and_the_symbol_in_it(index: SearchIndex) -> None:
    best = index.search("trailing slash is not allowed when a path is matched")[0]
    assert (best.path, best.name, best.line) == ("app/router.py", "Router.match", 10)
    assert best.blob == blob_id(ROUTER.encode())
    assert {"slash", "trailing"} <= set(best.why.split(", "))


def test_other_forms_of_a_word_and_short_forms_find_it(index: SearchIndex) -> None:
    assert paths(index, "delivering mails")[0] == "app/mail/mailer.py"
    assert paths(index, "conn is opened twice")[0] == "app/mail/mailer.py"


def test_a_test_comes_after_the_code_unless_it_is_asked_for(index: SearchIndex) -> None:
    assert paths(index, "match drops the slash")[0] == "app/router.py"
    assert paths(index, "test of match drops the slash fails")[0] == "tests/test_router.py"


def test_the_name_of_a_component_finds_its_file(index: SearchIndex) -> None:
    assert paths(index, "fix(mailer): wrong result")[0] == "app/mail/mailer.py"


def test_a_traceback_finds_its_innermost_file(index: SearchIndex) -> None:
    frames = '  File "/x/app/router.py", line 9, in match\n  File "/x/app/mail/mailer.py", line 3, in send_mail\n'
    assert paths(index, f"crash\n{frames}")[0] == "app/mail/mailer.py"


def test_a_path_or_a_module_that_is_named_comes_first(index: SearchIndex) -> None:
    assert paths(index, "wrong output in app/mail/mailer.py")[0] == "app/mail/mailer.py"
    assert paths(index, "the handler of app.mail.mailer.send is wrong")[0] == "app/mail/mailer.py"


def test_symbols_are_found_by_their_words(index: SearchIndex) -> None:
    hits = index.search("deliver a letter", symbols=True)
    assert [(hit.path, hit.name) for hit in hits[:1]] == [("app/mail/mailer.py", "send_mail")]
    assert all(hit.name for hit in hits)


def test_passages_without_a_word_of_the_question_are_not_found(index: SearchIndex) -> None:
    assert paths(index, "kangaroo") == []
    assert index.search("kangaroo", symbols=True) == []


def test_the_limit_holds_and_the_best_come_first(index: SearchIndex) -> None:
    hits = index.search("path handler slash address", limit=2)
    assert len(hits) == 2
    assert hits[0].score >= hits[1].score
    assert index.search("path", limit=0) == []


def test_a_changed_file_is_found_by_its_new_words_only(index: SearchIndex, store: CodeStore) -> None:
    assert paths(index, "smtp")
    put(store, "app/mail/mailer.py", "def send_pigeon(address):\n    return address\n")
    assert paths(index, "smtp") == []
    assert paths(index, "pigeon") == ["app/mail/mailer.py"]


def test_a_dropped_file_is_not_found(index: SearchIndex, store: CodeStore) -> None:
    assert paths(index, "smtp")
    drop(store, "app/mail/mailer.py")
    drop(store, "never/there.py")
    assert paths(index, "smtp") == []


def test_two_files_of_one_content_are_both_found(store: CodeStore, index: SearchIndex) -> None:
    put(store, "lib/post.py", MAILER)
    assert sorted(paths(index, "smtp")) == ["app/mail/mailer.py", "lib/post.py"]
    drop(store, "app/mail/mailer.py")
    assert paths(index, "smtp") == ["lib/post.py"]


def test_another_index_over_the_same_file_sees_every_change(index: SearchIndex, store: CodeStore) -> None:
    other_store = CodeStore(store.path)
    other = SearchIndex(other_store)
    assert paths(other, "pigeon") == []
    put(store, "app/pigeon.py", "def fly(): pass\n")
    assert paths(other, "pigeon") == ["app/pigeon.py"]
    drop(store, "app/pigeon.py")
    assert paths(other, "pigeon") == []
    other_store.close()


def test_the_index_begins_anew_with_its_store(index: SearchIndex, store: CodeStore) -> None:
    assert paths(index, "smtp")
    store.rebuild(store.era)
    assert paths(index, "smtp") == []
    put(store, "app/mail/mailer.py", MAILER)
    assert paths(index, "smtp") == ["app/mail/mailer.py"]


def test_many_changes_after_the_first_search_are_all_found(index: SearchIndex, store: CodeStore) -> None:
    assert paths(index, "slash")
    with store.writing():
        for number in range(300):
            put(store, f"many/part{number}.py", f"def quokka{number}(): return {number}\n")
    assert paths(index, "quokka271")[0] == "many/part271.py"
    assert len(paths(index, "many part", limit=500)) == 300
    assert paths(index, "smtp") == ["app/mail/mailer.py"]


def test_rows_of_a_failed_transaction_are_not_found(index: SearchIndex, store: CodeStore) -> None:
    def fail() -> None:
        with store.writing():
            put(store, "app/lost.py", "def wombat(): pass\n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert paths(index, "wombat") == []


def test_searches_beside_writes_see_whole_files(index: SearchIndex, store: CodeStore) -> None:
    done = threading.Event()
    found: list[list[str]] = []

    def search() -> None:
        while not done.is_set():
            found.append(paths(index, "numbat"))

    reader = threading.Thread(target=search)
    reader.start()
    for number in range(40):
        put(store, "app/numbat.py", f"def numbat(): return {number}\n")
    done.set()
    reader.join()
    assert paths(index, "numbat") == ["app/numbat.py"]
    assert all(one in ([], ["app/numbat.py"]) for one in found)


def test_vectors_are_made_once_and_bring_symbols_that_share_no_word(store: CodeStore) -> None:
    index = SearchIndex(store, HashEmbedder())
    put(store, "app/mailer.py", MAILER)
    assert index.embed() == 1
    assert index.embed() == 0
    hits = index.search("mailing addresses", symbols=True)
    assert hits[0].name == "send_mail"
    put(store, "app/router.py", ROUTER)
    assert index.embed() == 1


def test_without_an_embedder_there_are_no_vectors(index: SearchIndex) -> None:
    assert index.embed() == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0" * 100,
        "x" * 300_000,
        "/*" * 50_000,
        '"""' * 20_001,
        "'" * 9_999,
        "def f(" * 5_000,
        "é漢字\ud800" * 100,
        "\r\n\x0c\u2028a",
    ],
)
def test_any_text_can_be_put_and_the_others_are_still_found(index: SearchIndex, text: str, store: CodeStore) -> None:
    for language in ("python", "rust", "java", ""):
        put(store, f"odd/{language}", text, language)
    assert paths(index, "smtp") == ["app/mail/mailer.py"]


def test_facts_that_do_not_fit_the_text_do_no_harm() -> None:
    symbols = [
        Symbol("function", "f", "f", 90, 10),
        Symbol("class", "C", "C", -5, 400),
        Symbol("method", "m", "C.m", 2, 10**9),
    ]
    assert encode_text(FileFacts(language="python", symbols=symbols), "a\nb \ud800\nc")


def test_an_empty_index_finds_nothing(store: CodeStore) -> None:
    assert SearchIndex(store).search("anything") == []


def test_why_names_the_part_of_a_name_that_was_found(index: SearchIndex, store: CodeStore) -> None:
    put(store, "boost.py", "def boosting():\n    return 1\n")
    hit = next(hit for hit in index.search("HistGradientBoostingRegressor fails") if hit.path == "boost.py")
    assert hit.why == "boosting"
