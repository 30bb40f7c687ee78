"""Tokens from the command line."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from clew.access import ROLES
from clew.adapters.rest import open_keys
from clew.clock import SystemClock
from tests.cli.conftest import Clew
from tests.servers import give_key


@pytest.fixture
def keyed(folder: Path) -> Path:
    give_key(folder)
    return folder


@pytest.mark.req("RCR-17")
def test_nothing_but_a_token_that_the_server_accepts_is_printed(clew: Clew, keyed: Path) -> None:
    result = clew("token")
    assert (result.code, result.err, len(result.lines)) == (0, "", 1)
    caller = open_keys(keyed, SystemClock()).verify(result.out.strip())
    assert (caller.principal.owner_id, caller.principal.agent_id, caller.principal.roles) == ("local", "cli", ROLES)


def test_a_token_says_who_it_is_for_and_what_it_may_do(clew: Clew, keyed: Path) -> None:
    result = clew(
        *("token", "--owner", "acme", "--agent", "bot", "--role", "emitter", "--role", "subscriber"),
        *("--scopes", "hr,ops", "--session", "s1"),
    )
    principal = open_keys(keyed, SystemClock()).verify(result.out.strip()).principal
    assert (principal.owner_id, principal.agent_id, principal.session) == ("acme", "bot", "s1")
    assert (principal.roles, principal.scopes) == ({"emitter", "subscriber"}, {"hr", "ops"})


def test_a_token_lasts_as_long_as_asked(clew: Clew, keyed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clew("token", "--minutes", "10", "--json").json["expires_in"] == timedelta(minutes=10).total_seconds()
    monkeypatch.setenv("CLEW_SERVER_TOKEN_MINUTES", "5")
    assert clew("token", "--json").json["expires_in"] == 300


def test_the_credential_is_shown_as_a_place_and_not_as_a_value(clew: Clew, keyed: Path) -> None:
    result = clew("token", "--credential")
    assert Path(result.out.strip()) == keyed / "credential"
    assert clew("token", "--credential", "--json").json == {"credential": str(keyed / "credential")}
    assert (keyed / "credential").read_text().strip() not in result.out


@pytest.mark.parametrize(
    "arguments",
    [["--role", "king"], ["--minutes", "0"], ["--minutes", "99999999"], ["--agent", "a b"], ["--scopes", "a b"]],
)
def test_a_token_that_cannot_be_is_refused(clew: Clew, keyed: Path, arguments: list[str]) -> None:
    result = clew("token", *arguments)
    assert (result.code, result.out) == (2, "")


def test_a_key_that_changed_is_refused_with_the_next_step(clew: Clew, keyed: Path) -> None:
    (keyed / "keys" / "private.pem").write_text("nonsense")
    result = clew("token")
    assert (result.code, result.out) == (1, "")
    assert "private.pem was not made by you" in result.err
    assert "and the next start makes a new one" in result.err


def test_keys_that_are_made_are_private(clew: Clew, folder: Path, put: Callable[..., str]) -> None:
    put("here")
    assert clew("token").code == 0
    for name in ("keys/private.pem", "credential"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_keys_and_trails_are_made_on_a_file_system_without_hard_links(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert clew("trail", "put", "--title", "the first").code == 0
    assert clew("secret", "put", "api-key", stdin=b"a value").code == 0
    assert clew("token").code == 0
    assert clew("trust").err == "Nothing here needs your consent.\n"
    assert (folder / "credential").stat().st_mode & 0o777 == 0o600
    assert not [each for each in folder.rglob(".*") if each.name != ".gitignore"]
