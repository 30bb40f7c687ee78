"""Imports of packages and subclasses of classes that others wrote, as languages write them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from clew.app import App, open_app
from clew.config import Config, HygieneConfig
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.doors import PATIENCE, ask

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = {
    "one.py": "import redis\n\nredis.get()\n",
    "two.py": "from redis import (\n    Redis,\n)\n\nRedis()\n",
    "flags.go": 'package a\n\nimport (\n\t"fmt"\n\tflag "github.com/spf13/pflag"\n)\n\nvar all map[*pflag.Flag]bool\n',
    "parser.js": "var parser = require('body-parser')\nvar other = require('parser')\n",
    "till.ts": "import {\n  a,\n} from 'shop/till'\nconst shop = 1\n",
    "bytes.rs": "use {\n    bstr::Bytes,\n    pcre2::bytes::Regex,\n};\n\nfn f() { pcre2::escape() }\n",
    "inflate.c": "#include <zlib.h>\n\nint zlib = 1;\n",
    "web.rb": "require 'rack'\n\nrack = 1\n",
    "bowl.py": "class Bowl(Kitchen, other.Sink, metaclass=A):\n    pass\n\n\nclass Pot(Sinker):\n    pass\n",
    "bowl.rs": "impl crate::Sink for Bytes {\n}\n\nimpl<S: Sink> Matcher for Box<S> {\n}\n",
    "Bowl.java": "public final class Bowl extends Thing implements Sink, Other {\n}\n",
    "bowl.ts": "export class Tub extends Sink {\n}\n",
    "bowl.rb": "class Cup < Sink\nend\n",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    root: Path = make_repository(tmp_path_factory.mktemp("foreign") / "shop", FILES)
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as found:
        await found.bootstrap()
        found.knowledge().patience = PATIENCE
        await found.knowledge().gather()
        yield found


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("redis", ["one.py:1", "two.py:2"]),
        ("pflag", ["flags.go:5"]),
        ("github.com/spf13/pflag", ["flags.go:5"]),
        ("body-parser", ["parser.js:1"]),
        ("pcre2", ["bytes.rs:3"]),
        ("zlib", ["inflate.c:1"]),
        ("rack", ["web.rb:1"]),
    ],
)
async def test_imports_of_a_foreign_package_are_listed(app: App, name: str, places: list[str]) -> None:
    found = (await ask(app, f"which files import {name}?")).known
    assert [f"{item.path}:{item.start}" for item in found] == places


@pytest.mark.req("SYL-89")
async def test_classes_that_inherit_from_a_foreign_class_are_listed(app: App) -> None:
    found = (await ask(app, "which classes extend Sink?")).known
    places = {f"{item.path}:{item.start}" for item in found}
    assert places == {"bowl.py:1", "bowl.rs:1", "Bowl.java:1", "bowl.ts:1", "bowl.rb:1"}
