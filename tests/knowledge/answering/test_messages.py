"""Messages in a question, or instead of one: the answer is the line of code that produced them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.catalog.operations.answers import Cited
from clew.config import Config, HygieneConfig
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.doors import ask

FILES = {
    "mail/spool.py": 'def read_the_spool(path: str) -> str:\n    """Read the spool. It cannot fail."""\n',
    "mail/queue.py": 'def drain(jobs: list[str]) -> None:\n    raise OSError("cannot read the spool")\n',
    "cli/args.go": (
        "package cli\n\nfunc legacyArgs(name string, app string) error {\n\tif len(name) > 0 {\n"
        '\t\treturn fmt.Errorf("unknown command %q for %q\\n", name, app)\n\t}\n\treturn nil\n}\n'
    ),
    "cli/command.go": "package cli\n\nfunc knownCommands(app string) []string {\n\treturn commands[app]\n}\n",
    "files/lookup.py": (
        "def look_up(name: str, tried: list[str]) -> None:\n    if not tried:\n        return\n"
        "    raise LookupError(f'File \"{name}\" not found (tried {len(tried)} places)')\n"
    ),
    "files/old.py": 'def refuse(name):\n    raise ValueError("the owner of {} may not be {who!r}".format(name))\n',
    "web/route.js": "function route(path) {\n\n  throw new Error(`Route ${path} was declared twice`)\n}\n",
    "web/config.rb": 'def load(file)\n  warn "no settings were read from #{file}"\nend\n',
}


@asynccontextmanager
async def opened(tmp_path: Path, files: Mapping[str, str]) -> AsyncIterator[App]:
    root = make_repository(tmp_path / "repo", dict(files))
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        yield app


async def first_of(tmp_path: Path, files: Mapping[str, str], question: str) -> Cited:
    async with opened(tmp_path, files) as app:
        return (await ask(app, question)).known[0]


@pytest.mark.req("BEY-13")
@pytest.mark.parametrize(
    "question",
    [
        'where does "cannot read the spool" come from',
        "who raises 'cannot read the spool'?",
        "where does “cannot read the spool” come from",
        "OSError: cannot read the spool",
    ],
)
async def test_a_quoted_message_is_found_in_its_line(tmp_path: Path, question: str) -> None:
    first = await first_of(tmp_path, FILES, question)
    assert (first.path, first.start, first.end) == ("mail/queue.py", 2, 2)
    assert "cannot read the spool" in first.text


@pytest.mark.req("BEY-13")
@pytest.mark.parametrize(
    ("message", "place"),
    [
        ('unknown command "serv" for "app"', "cli/args.go:5"),
        ('Error: unknown command "serv" for "app"', "cli/args.go:5"),
        ('why do I get `unknown command "serv" for "app"`?', "cli/args.go:5"),
        ('File "src/a-1.txt" not found (tried 3 places)', "files/lookup.py:4"),
        ("ValueError: the owner of lamp-3 may not be 'Ada'", "files/old.py:2"),
        ("Route GET:/lamps/7 was declared twice", "web/route.js:3"),
        ("no settings were read from /etc/lamps.yml", "web/config.rb:2"),
    ],
)
async def test_a_message_with_values_is_found_at_its_literal(tmp_path: Path, message: str, place: str) -> None:
    first = await first_of(tmp_path, FILES, message)
    assert f"{first.path}:{first.start}" == place
    assert first.start == first.end


async def test_the_line_of_a_message_has_the_name_of_its_function(tmp_path: Path) -> None:
    first = await first_of(tmp_path, FILES, 'unknown command "serv" for "app"')
    assert (first.kind, first.owner) == ("line", "legacyArgs")
    assert "unknown command %q for %q" in first.text


async def test_the_literal_of_a_message_comes_before_a_test_with_the_message(tmp_path: Path) -> None:
    test = 'def test_unknown():\n    assert run("serv") == \'unknown command "serv" for "app"\'\n'
    async with opened(tmp_path, {**FILES, "tests/test_cli.py": test}) as app:
        found = (await ask(app, 'unknown command "serv" for "app"')).known
    assert [f"{each.path}:{each.start}" for each in found[:2]] == ["cli/args.go:5", "tests/test_cli.py:2"]


async def test_a_text_with_few_words_of_a_literal_is_no_message_of_it(tmp_path: Path) -> None:
    first = await first_of(tmp_path, FILES, "the list of all commands that an app knows")
    assert first.path == "cli/command.go"
