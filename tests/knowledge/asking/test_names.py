"""Names, and where documents say something."""

from __future__ import annotations

import re

import pytest

from clew.app import App
from tests.knowledge.doors import known


async def test_inheritance_can_be_asked_in_two_ways(app: App) -> None:
    (app.knowledge().root / "src/shop.ts").write_text(
        "import { Base as ShopBase } from './base'\n\nexport class Shop extends ShopBase {\n  open() {}\n}\n"
    )
    await app.knowledge().gather()
    told = await known(app, "what extends ShopBase")
    assert "src/shop.ts:3" in told[0], told
    assert await known(app, "who inherits from ShopBase") == told


async def test_importers_of_an_external_package_are_listed_with_their_lines(app: App) -> None:
    (app.knowledge().root / "src/till.py").write_text("import os\nfrom redis.client import Redis\n\n\ntill = Redis()\n")
    await app.knowledge().gather()
    [line] = await known(app, "what imports redis")
    assert re.match(r"- \[1\] src/till\.py:2@\w+: `src/till\.py` imports `redis`", line), line


@pytest.mark.req("SYL-89")
async def test_importers_of_a_package_are_listed_though_another_symbol_has_its_name(app: App) -> None:
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
async def test_importers_of_a_module_of_the_project_are_listed_with_their_lines(app: App) -> None:
    root = app.knowledge().root
    (root / "src/transports").mkdir()
    (root / "src/transports/__init__.py").write_text("")
    (root / "src/transports/default.py").write_text("class Transport:\n    pass\n")
    (root / "src/till.py").write_text("import os\nfrom .transports.default import Transport\n")
    await app.knowledge().gather()
    for question in ["What imports default?", "which files import transports.default"]:
        [line] = await known(app, question)
        assert re.match(r"- \[1\] src/till\.py:2@\w+: `src/till\.py` imports `src/transports/default\.py`", line), line


async def test_importers_of_a_package_are_listed_though_a_file_has_its_name(app: App) -> None:
    root = app.knowledge().root
    (root / "src/redis.py").write_text("def connect():\n    pass\n")
    (root / "src/till.py").write_text("from .redis import connect\n")
    (root / "src/shop.go").write_text('package shop\n\nimport "example.org/redis"\n')
    await app.knowledge().gather()
    lines = await known(app, "what imports redis")
    assert sorted(re.sub(r"^- \[\d\] ([^@]+)@.*", r"\1", line) for line in lines) == ["src/shop.go:3", "src/till.py:1"]


async def test_a_function_that_is_assigned_is_defined_there_and_has_its_callers(app: App) -> None:
    root = app.knowledge().root
    (root / "src/site.js").write_text(
        "var site = exports = module.exports = {}\n\nsite.open = function open(fn) {\n  this.shut(fn)\n}\n"
        "site.shut = function shut(fn) {\n  fn()\n}\n"
    )
    await app.knowledge().gather()
    [line, *_] = await known(app, "where is site.open defined")
    assert re.match(r"- \[1\] src/site\.js:3-5@\w+: `site\.open = function open\(fn\)`", line), line
    [line] = await known(app, "what calls site.shut")
    assert re.match(r"- \[1\] src/site\.js:4@\w+: `site\.open` calls `site\.shut`$", line), line
