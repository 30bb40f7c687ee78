"""Secrets on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.app import App
from tests.cli.conftest import Clew

VALUE = "hunter2-ü\n with a second line"


def test_a_secret_goes_in_and_only_its_name_comes_out(clew: Clew, folder: Path, in_trail: Callable[..., Any]) -> None:
    clew("trail", "put", "--title", "makes the trail")
    kept = clew("secret", "put", "api-key", stdin=VALUE.encode() + b"\n")
    assert (kept.code, kept.out, kept.err) == (0, "", "api-key is stored.\n")
    assert clew("secret", "ls").lines == ["api-key"]
    assert clew("secret", "ls", "--json").json == {"items": ["api-key"]}
    assert clew("trail", "export").out.count("hunter2") == 0

    async def reveal(app: App) -> str:
        return await app.trail.secrets.reveal("api-key", by=app.me)

    assert in_trail(reveal) == VALUE
    assert all(b"hunter2" not in file.read_bytes() for file in folder.iterdir() if file.is_file())


def test_a_secret_is_replaced_and_removed(clew: Clew) -> None:
    for value in (b"one", b"two"):
        assert clew("secret", "put", "key", "--json", stdin=value).json == {"kept": "key"}
    assert clew("secret", "rm", "key", "--json").json == {"removed": ["key"]}
    gone = clew("secret", "rm", "key")
    assert (gone.code, gone.err) == (1, "clew: no secret 'key'. `clew secret ls` lists them\n")
    assert clew("secret", "rm").code == 2


@pytest.mark.parametrize(
    ("name", "stdin", "code"),
    [("key", b"", 1), ("key", b"\n", 1), ("key", b"\xff", 1), ("a b", b"x", 2), ("", b"x", 2)],
)
def test_a_value_or_name_that_cannot_be_is_refused_without_repeating_it(
    clew: Clew, name: str, stdin: bytes, code: int
) -> None:
    result = clew("secret", "put", name, stdin=stdin)
    assert (result.code, result.out) == (code, "")
    assert len(result.err.splitlines()) == 1
