"""Questions through the catalog of an app: what comes first, what uses what, what was decided, what the documents say,
and that what is not known is not made up."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.catalog.answers import Question
from clew.catalog.ask import NOTHING_CLOSE
from clew.config import Config, HygieneConfig
from clew.knowledge.base import UNKNOWN
from clew.knowledge.code import links_apart
from tests.knowledge.code.repositories import git, make_repository
from tests.knowledge.doors import get, known, store

FILES = {
    "src/factory.py": (
        '"""Makes places."""\n\n\n'
        'class PlaceFactory:\n    """Makes places to work in."""\n\n'
        "    def __init__(self, *places: list[str], **more: int) -> None:\n        self.places = places\n\n"
        '    def base_place(self) -> str:\n        """The place of all places."""\n        return "/"\n\n'
        "    def make(self) -> str:\n        return self.base_place()\n"
    ),
    "src/user.py": (
        "from src.factory import PlaceFactory\n\n\n"
        'def build(*names: list[str], depth: int = 1) -> dict[str, str]:\n    """Build it all."""\n'
        "    return {name: PlaceFactory().base_place() for name in names}\n\n\n"
        "class SpecialFactory(PlaceFactory):\n    pass\n\n\ndef idle() -> None:\n    return None\n"
    ),
    "src/Adapter.java": (
        "package shop;\n\n/** Turns one thing into another. */\npublic abstract class Adapter<T> {\n"
        "  public Adapter() {}\n\n  public T adapt(T value) { return value; }\n}\n"
    ),
    "tests/test_factory.py": (
        "from src.factory import PlaceFactory\n\n\nclass Adapter:\n    pass\n\n\n"
        "def test_skip_a_place():\n    PlaceFactory().base_place()\n\n\n"
        "def test_how_to_skip_places():\n    assert True\n\n\ndef test_buy_bananas():\n    assert 'banana'\n"
    ),
    "docs/skipping.md": "# How to skip a place\n\nMark a place with the word `skip` and it is not visited.\n",
    "docs/other.md": "# Colours\n\nPlaces are green.\n",
    "README.md": "# Shop\n\nA shop of kettles.\n",
    ".gitignore": ".clew/\n",
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    root = make_repository(tmp_path / "shop", FILES)
    config = Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))
    async with open_app(config) as opened:
        await opened.bootstrap()
        await opened.knowledge().gather()
        yield opened


async def test_all_edges_are_found_while_commits_and_documents_are_read(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_apart, "APART_FROM", 0)  # as in a project where following values takes long
    knowledge = app.knowledge()
    (knowledge.root / "src/late.py").write_text(
        "def late():\n    pass\n\n\ndef give(what):\n    what()\n\n\ngive(late)\n"
    )
    told: list[str] = []
    gathered = await knowledge.gather(lambda done, total, what: told.append(what))
    assert "following" in told
    assert gathered.code.changed == ["src/late.py"]
    callers = await knowledge.code.dependents("src/late.py#late", edge_type="calls")
    assert [(link.node.name, link.is_guess) for link in callers] == [("give", False)]


# -- where something is ----------------------------------------------------------------------------------------


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("where is PlaceFactory", r"src/factory\.py:4-"),
        ("where is the class PlaceFactory defined?", r"src/factory\.py:4-"),
        ("where is Adapter", r"src/Adapter\.java:4-"),
        ("where is the class Adapter", r"src/Adapter\.java:4-"),
        ("where is PlaceFactory.base_place", r"src/factory\.py:10-"),
        ("which file defines base_place", r"src/factory\.py:10-"),
        ("where is placefactory", r"src/factory\.py:4-"),
        ("where is build", r"src/user\.py:4-"),
    ],
)
async def test_what_defines_a_name_comes_first(app: App, question: str, place: str) -> None:
    [first, *_] = await known(app, question)
    assert re.match(rf"- \[1\] {place}", first), first


async def test_a_type_stands_before_its_constructor_and_the_product_before_its_tests(app: App) -> None:
    lines = await known(app, "where is Adapter")
    places = [re.sub(r"^- \[\d\] ([^:]+):(\d+).*", r"\1:\2", line) for line in lines]
    assert places == ["src/Adapter.java:4", "src/Adapter.java:5", "tests/test_factory.py:4"]


# -- what uses what --------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    "question",
    ["what calls base_place", "base_place callers", "who calls PlaceFactory.base_place?", "callers of base_place"],
)
async def test_what_calls_something_is_told_with_the_line_of_each_call(app: App, question: str) -> None:
    lines = await known(app, question)
    places = [re.match(r"- \[\d\] (\S+?):(\d+)@[0-9a-f]{10}: `([^`]+)` calls", line) for line in lines]
    found = {(place[1], place[3]) for place in places if place is not None}
    assert {("src/factory.py", "PlaceFactory.make"), ("src/user.py", "build")} <= found
    for place in filter(None, places):
        assert "base_place()" in FILES[place[1]].splitlines()[int(place[2]) - 1]
    assert places[-1] is not None
    assert places[-1][1] == "tests/test_factory.py", "tests come last"


@pytest.mark.parametrize(
    ("question", "line"),
    [
        (
            "what does PlaceFactory.make call",
            r"src/factory\.py:15@\w+: `PlaceFactory.make` calls `PlaceFactory.base_place`",
        ),
        ("who inherits from PlaceFactory", r"src/user\.py:9@\w+: `SpecialFactory` inherits from `PlaceFactory`"),
        ("what imports PlaceFactory", r"src/user\.py:1@\w+: `src/user\.py` imports `PlaceFactory`"),
        ("who uses PlaceFactory", r"src/user\.py:\d+@\w+: `\S+` (?:calls|imports|inherits from) `PlaceFactory`"),
    ],
)
async def test_other_uses_are_told_as_well(app: App, question: str, line: str) -> None:
    lines = await known(app, question)
    assert any(re.match(rf"- \[\d\] {line}", each) for each in lines), lines


async def test_that_nothing_calls_something_is_said_with_the_place_of_it(app: App) -> None:
    lines = await known(app, "what calls idle")
    assert lines[0] == "- Nothing that is known here calls idle."
    assert re.match(r"- \[1\] src/user\.py:13-14@\w+: `def idle\(\) -> None`", lines[1]), lines


async def test_a_new_call_is_in_the_next_answer(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 0.0)
    assert len(await known(app, "what calls idle")) == 2
    (app.knowledge().root / "src/late.py").write_text("from src.user import idle\n\n\ndef late():\n    idle()\n")
    assert any("`late` calls `idle`" in line for line in await known(app, "what calls idle"))


# -- history and documents -------------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("why do we retry three times", "three retries"),
        ("what does the user prefer, tabs or spaces", "prefers tabs"),
        ("sqlite or postgres for the cache", "rather than postgres"),
        ("what was decided", "three retries"),
        ("what broke before", "The importer broke"),
    ],
)
async def test_what_was_noted_answers_before_code_that_shares_a_word(app: App, question: str, said: str) -> None:
    await store(app, "We use three retries because the gateway drops the first connection")
    await store(app, "The user prefers tabs over spaces in TypeScript")
    await store(app, "We keep the cache in sqlite rather than postgres")
    await store(app, "The importer broke on empty files", summary_type="failure")
    lines = await known(app, question)
    assert any(said in line for line in (lines if question == "what was decided" else lines[:1])), lines
    assert not any("src/" in line or "tests/" in line for line in lines[:1])


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize("question", ["how do I skip a place", "what do the docs say about skipping a place"])
async def test_documents_answer_how_something_is_done_before_tests_that_have_the_words(app: App, question: str) -> None:
    lines = await known(app, question)
    assert re.match(r"- \[1\] docs/skipping\.md:", lines[0]), lines
    assert "tests/" not in lines[0]


@pytest.mark.parametrize(
    "question", ["what is this project about?", "What does the repository do", "explain this codebase"]
)
async def test_the_readme_tells_what_the_project_is_about(app: App, question: str) -> None:
    assert re.match(r"- \[1\] README\.md:1", (await known(app, question))[0])


async def test_what_was_committed_last_is_told_newest_first(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    root = app.knowledge().root
    for date in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(date, "2035-01-01T12:00:00+00:00")
    git(root, "commit", "-q", "--allow-empty", "-m", "Round totals: customers saw fractions of a cent")
    lines = await known(app, "what was the last commit")
    assert [re.sub(r"^- \[\d\] commit \w{10} [\d-]{10}: ", "", line) for line in lines] == [
        "Round totals: customers saw fractions of a cent",
        "begin",
    ]
    [why, *_] = await known(app, "why are totals rounded")
    assert "customers saw fractions of a cent" in why


# -- notes, and what only a commit tells -----------------------------------------------------------------------


@pytest.mark.req("SYL-96")
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("what broke before with templates", "cleared twice"),
        ("what broke before with template reload", "cleared twice"),
        ("what mistakes did we make", "cleared twice"),
        ("list the mistakes", "cleared twice"),
        ("what failures were noted", "cleared twice"),
        ("what do I prefer for commit messages", "imperative"),
        ("which preferences are noted", "imperative"),
        ("what are my preferences?", "imperative"),
    ],
)
async def test_notes_are_found_by_their_kind_before_all_else(app: App, question: str, said: str) -> None:
    (app.knowledge().root / "docs/templates.md").write_text("# Templates\n\nTemplates broke before a reload.\n")
    git(app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Fix templates that broke on reload")
    content = "The template cache was cleared twice on reload"
    await store(app, content, summary_type="mistake", title="Template reload", outcome="Clear it once")
    await store(app, "Commit messages in the imperative", summary_type="preference")
    await store(app, "Commit messages are checked by a robot")
    lines = await known(app, question)
    assert said in lines[0], lines
    assert "what broke" in question or len(lines) == 1, lines


async def test_what_is_preferred_in_code_is_no_note(app: App) -> None:
    await store(app, "Commit messages in the imperative", summary_type="preference")
    assert not any("imperative" in line for line in await known(app, "where are preferences stored"))


@pytest.mark.parametrize(
    "question", ["why marmalade", "marmalade", "why marmalade over jam", "why was marmalade chosen", "Marmalade?"]
)
async def test_what_only_a_commit_speaks_of_is_told_by_it(app: App, question: str) -> None:
    git(
        app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Choose marmalade over jam because it keeps longer"
    )
    [line] = await known(app, question)
    assert re.match(r"- \[1\] commit \w{10} [\d-]{10}: Choose marmalade over jam", line), line


async def test_what_was_noted_without_a_word_of_the_question_comes_after_the_commits_that_have_it(app: App) -> None:
    git(app.knowledge().root, "commit", "-q", "--allow-empty", "-m", "Choose marmalade over jam")
    await store(app, "Jelly is kept in the cellar")
    found = await get(app, "history://tools/search_history", query="marmalade")
    assert "marmalade" in found
    assert "Jelly" not in found or found.index("marmalade") < found.index("Jelly")


# -- names, and where documents say it ---------------------------------------------------------------------------


async def test_a_name_that_differs_by_a_letter_is_suggested(app: App) -> None:
    lines = await known(app, "where is base_plaec")
    assert lines[0].startswith("- Nothing here is named `base_plaec`. Did you mean "), lines
    assert "base_place" in lines[0]


async def test_two_names_that_are_compared_are_both_shown(app: App) -> None:
    lines = await known(app, "compare PlaceFactory and SpecialFactory")
    assert [line.split(":")[0] for line in lines] == ["- [1] src/factory.py", "- [2] src/user.py"]


async def test_who_inherits_is_the_same_question_as_what_extends(app: App) -> None:
    (app.knowledge().root / "src/shop.ts").write_text(
        "import { Base as ShopBase } from './base'\n\nexport class Shop extends ShopBase {\n  open() {}\n}\n"
    )
    await app.knowledge().gather()
    told = await known(app, "what extends ShopBase")
    assert "src/shop.ts:3" in told[0], told
    assert await known(app, "who inherits from ShopBase") == told


async def test_what_imports_a_package_of_others_is_told_with_the_lines(app: App) -> None:
    (app.knowledge().root / "src/till.py").write_text("import os\nfrom redis.client import Redis\n\n\ntill = Redis()\n")
    await app.knowledge().gather()
    [line] = await known(app, "what imports redis")
    assert re.match(r"- \[1\] src/till\.py:2@\w+: `src/till\.py` imports `redis`", line), line


@pytest.mark.req("SYL-89")
async def test_what_imports_a_package_is_told_though_something_else_has_its_name(app: App) -> None:
    root = app.knowledge().root
    (root / "tests/helper.py").write_text("def redis():\n    return 1\n")
    (root / "src/till.go").write_text('package till\n\nimport (\n\t"fmt"\n\tr "example.org/redis"\n)\n')
    (root / "src/till.js").write_text("var redis = 1\nvar client = require('redis-client')\n")
    await app.knowledge().gather()
    [line] = await known(app, "what imports redis")
    assert "src/till.go:5@" in line, line
    [line] = await known(app, "what imports redis-client")
    assert "src/till.js:2@" in line, line


@pytest.mark.req("SYL-89")
async def test_what_is_only_assigned_is_found_where_that_is_done(app: App) -> None:
    root = app.knowledge().root
    (root / "src/site.js").write_text(
        "var site = exports = module.exports = {}\n\n"
        "function fill(fn) {\n  site.open = wrap(fn)\n  site.shut = wrap(fn)\n}\n"
    )
    (root / "src/use.js").write_text("var site = require('./site')\n\nfunction start() {\n  site.open(start)\n}\n")
    await app.knowledge().gather()
    [line] = await known(app, "where is site.open defined")
    assert re.match(r"- \[1\] src/site\.js:4@\w+: `site\.open = wrap\(fn\)`", line), line
    assert "site.open is assigned" in (await known(app, "what does site.open call"))[0]
    one, other, *_ = await known(app, "difference between site.open and site.shut")
    assert "src/site.js:4@" in one, one
    assert "src/site.js:5@" in other, other


async def test_a_function_that_is_assigned_is_defined_there_and_has_its_callers(app: App) -> None:
    root = app.knowledge().root
    (root / "src/site.js").write_text(
        "var site = exports = module.exports = {}\n\nsite.open = function open(fn) {\n  this.shut(fn)\n}\n"
        "site.shut = function shut(fn) {\n  fn()\n}\n"
    )
    await app.knowledge().gather()
    [line] = await known(app, "where is site.open defined")
    assert re.match(r"- \[1\] src/site\.js:3-5@\w+: `site\.open = function open\(fn\)`", line), line
    [line] = await known(app, "what calls site.shut")
    assert re.match(r"- \[1\] src/site\.js:4@\w+: `site\.open` calls `site\.shut`$", line), line


async def test_what_has_the_words_of_a_question_as_its_name_comes_first(app: App) -> None:
    root = app.knowledge().root
    (root / "src/pool.py").write_text(
        "DEFAULT_WAITING_PERIOD_SECONDS = 20\n\n\nclass TeaPool:\n    pass\n\n\n"
        'class BlockingTeaPool(TeaPool):\n    """A tea pool: the pool of tea that blocks a tea pool."""\n'
    )
    (root / "tests/test_pool.py").write_text("def tea_pool():\n    return 1\n")
    await app.knowledge().gather()
    lines = await known(app, "where is the tea pool implemented")
    assert "`class TeaPool`" in lines[0], lines
    [line] = await known(app, "what is the default waiting period")
    assert "DEFAULT_WAITING_PERIOD_SECONDS = 20" in line


async def test_tests_inside_of_a_file_come_after_its_product(app: App) -> None:
    (app.knowledge().root / "src/lib.rs").write_text(
        "/// Pours the coffee.\npub fn pour_coffee() {}\n\n#[cfg(test)]\nmod tests {\n"
        "    /// The coffee pours: pour the coffee.\n    #[test]\n    fn coffee_pours() {}\n}\n"
    )
    await app.knowledge().gather()
    lines = await known(app, "how does coffee pour")
    assert "pub fn pour_coffee" in lines[0], lines


async def test_what_the_project_uses_is_told_only_by_what_says_it_of_the_project(app: App) -> None:
    root = app.knowledge().root
    (root / "src/store.py").write_text('def connect():\n    """Connect to the database. The database must run."""\n')
    (root / "docs/storing.md").write_text("# Storing\n\nA page may use a database. shop.open() opens the database.\n")
    await app.knowledge().gather()
    for question in (
        "which database does shop use",
        "what database do we use?",
        "which database does it use for orders",
    ):
        assert await known(app, question) == [UNKNOWN], question
    (root / "docs/design.md").write_text("# Design\n\nThere is more. Shop keeps all in one database, SQLite.\n")
    await app.knowledge().gather()
    [line] = await known(app, "which database does shop use")
    assert "docs/design.md" in line, line


async def test_a_class_is_not_taken_for_a_function_of_the_same_word(app: App) -> None:
    root = app.knowledge().root
    (root / "examples").mkdir()
    (root / "examples/pages.py").write_text("def kettle():\n    return 1\n")
    (root / "src/kettle.py").write_text("class Kettle:\n    pass\n")
    await app.knowledge().gather()
    assert "src/kettle.py:1" in (await known(app, "where is the kettle class"))[0]
    assert "examples/pages.py:1" in (await known(app, "where is the kettle function"))[0]


async def test_who_inherits_from_a_class_of_others_is_told_by_its_name(app: App) -> None:
    (app.knowledge().root / "src/errors.py").write_text("class ShopError(LookupError):\n    pass\n")
    await app.knowledge().gather()
    [line] = await known(app, "who inherits from LookupError")
    assert re.match(r"- \[1\] src/errors\.py:1@\w+: .* inherits from `LookupError` \(by its name alone\)", line), line


async def test_what_only_has_the_words_of_a_name_is_not_told_beside_what_has_the_name(app: App) -> None:
    root = app.knowledge().root
    (root / "docs/hooks.md").write_text("# Hooks\n\nSet `onClose` to be told of the end.\n")
    (root / "docs/ends.md").write_text("# Ends\n\nOn close of the day, close all. To be told of a close, listen.\n")
    await app.knowledge().gather()
    [line] = await known(app, "what do the docs say about onClose")
    assert "docs/hooks.md" in line, line


@pytest.mark.parametrize("question", ["which linter", "linter?", "the linter", "what linter?"])
async def test_a_tool_is_told_to_who_asks_in_short(app: App, question: str) -> None:
    (app.knowledge().root / "ruff.toml").write_text("line-length = 100\n")
    assert (await known(app, question))[0].startswith("- ruff, linter for python"), question


async def test_a_decision_whose_title_says_it_comes_first(app: App) -> None:
    await store(app, "Stock is told by the trail, and by the trail alone: the trail", title="Stock")
    await store(app, "What is derived is not on the trail", title="Code is derived")
    assert "What is derived" in (await known(app, "what did we decide about code on the trail"))[0]


async def test_what_the_readme_says_is_told_by_the_readme_or_not_at_all(app: App) -> None:
    root = app.knowledge().root
    (root / "docs/tea.md").write_text("# Tea\n\nTea and coffee are sold. Tea, tea, tea.\n")
    (root / "README.md").write_text("# Shop\n\nA shop of kettles.\n\n## Hours\n\nIt sells coffee at noon.\n")
    await app.knowledge().gather()
    assert "README.md" in (await known(app, "what does the README say about coffee"))[0]
    assert await known(app, "what does the README say about tea") == [UNKNOWN]


async def test_how_to_install_it_is_told_by_the_pages_on_installing_first(app: App) -> None:
    root = app.knowledge().root
    (root / "docs/servers.md").write_text("# Installing\n\nInstall a server: install, install it, install it again.\n")
    (root / "docs/installation.md").write_text("# The shop\n\nThere is a command to install the shop.\n")
    await app.knowledge().gather()
    assert "docs/installation.md" in (await known(app, "how do I install it"))[0]


async def test_that_no_tool_is_known_comes_after_the_document_that_says_how_it_is_done(app: App) -> None:
    (app.knowledge().root / "docs/testing.md").write_text(
        "# Running the tests\n\nRun the tests with `make check-all`.\n"
    )
    await app.knowledge().gather()
    first, *_, last = await known(app, "how do I run the tests?")
    assert "docs/testing.md" in first, first
    assert last.startswith("- Not known: which test framework is used"), last
    assert (await known(app, "which test framework is used"))[0].startswith("- Not known")


# -- what is not known -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    ["how do I use kubernetes with banana bread", "where is the payment gateway", "where is zzqx blorf"],
)
async def test_what_is_not_known_is_not_made_up(app: App, question: str) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query=question), by=app.me)
    assert list(answer.known) == [UNKNOWN]
    found = await app.knowledge().resolver.resolve(question, by=app.me)
    assert (found.status, found.sources) == ("no_matches", ())


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("is there a place limiter", UNKNOWN),
        ("who is the place owner", UNKNOWN),
        ("who maintains the factory", UNKNOWN),
        ("why was the place dropped", UNKNOWN),
        ("which version of bananas is used", "- No manifest here names bananas."),
        ("which banana version is needed?", "- No manifest here names banana."),
        ("what changed in version 9.9.9", "- No changelog and no tag that is known here has 9.9.9."),
        ("what changed in file foo/bar.py", "- No commit that is known here touched foo/bar.py."),
        ("who last changed nowhere.py", "- No commit that is known here touched nowhere.py."),
    ],
)
async def test_of_what_there_is_not_that_is_told_and_nothing_that_is_near(app: App, question: str, told: str) -> None:
    (app.knowledge().root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    await app.knowledge().gather()
    assert await known(app, question) == [told]


async def test_which_of_something_a_class_uses_is_no_question_for_the_graph(app: App) -> None:
    lines = await known(app, "which database does SpecialFactory use")
    assert not any("inherits from" in line for line in lines), lines
    assert "inherits from" in "".join(await known(app, "what does SpecialFactory use"))


async def test_who_wants_something_done_is_not_told_that_nothing_is_known(app: App) -> None:
    assert await known(app, "send a letter to zzqx") == []


async def test_that_nothing_answers_does_not_make_an_answer_close(app: App) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query="where is zzqx blorf"), by=app.me)
    assert not answer.is_relevant
    assert UNKNOWN in answer.markdown


async def test_an_answer_that_has_a_source_is_never_called_far_from_the_question(app: App) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query="where is PlaceFactory"), by=app.me)
    assert answer.known
    assert answer.is_relevant
    assert NOTHING_CLOSE not in answer.markdown


# -- how it is shown -------------------------------------------------------------------------------------------


async def test_code_is_quoted_as_it_is_written_and_once(app: App) -> None:
    [line, *_] = await known(app, "where is build")
    assert line.endswith("`def build(*names: list[str], depth: int = 1) -> dict[str, str]` · Build it all."), line


# -- sources that disagree -------------------------------------------------------------------------------------


@pytest.mark.req("SYL-85")
async def test_notes_that_contradict_each_other_are_told_with_the_one_to_believe(app: App) -> None:
    await store(app, "We use three retries because the gateway drops the first connection")
    assert not any("disagree" in line for line in await known(app, "why do we retry three times"))
    await store(app, "We retry five times, never three")
    lines = await known(app, "why do we retry so many times")
    [told] = [line for line in lines if line.startswith("- Sources disagree: ")]
    assert "three retries" in told
    assert "five times, never three" in told
    assert "; believe " in told
