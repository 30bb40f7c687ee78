"""Names, and where documents say something."""

from __future__ import annotations

import re

import pytest

from clew.app import App
from clew.knowledge.answering.finder import NOTHING as UNKNOWN
from tests.knowledge.doors import known, store


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
