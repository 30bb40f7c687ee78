"""Consent on disk: bound to content, safe with concurrent processes, never guessed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.errors import ConfigError, InvalidInput, ReadOnly
from clew.trust import MAX_SUMMARY, Trust, Wish, digest_files, digest_parts, printable, real_folder, user_file

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATIENCE = 60.0


def wish(folder: str = "/shop", kind: str = "server", name: str = "geo", content: str = "python3 geo.py") -> Wish:
    return Wish(folder=folder, kind=kind, name=name, digest=digest_parts([content.encode()]), summary=f"runs {content}")


@pytest.fixture
def trust(trust_file: Path) -> Trust:
    return Trust.open(now=lambda: NOW)


def test_consent_is_to_one_content_of_one_name_in_one_folder(trust: Trust) -> None:
    assert not trust.holds(wish())
    trust.grant([wish()])
    assert trust.holds(wish())
    for other in (wish("/shop2"), wish(kind="domain"), wish(name="geo2"), wish(content="python3 evil.py")):
        assert not trust.holds(other)


def test_new_consent_takes_the_place_of_the_old(trust: Trust) -> None:
    trust.grant([wish()])
    trust.grant([wish(content="new")])
    assert (trust.holds(wish()), trust.holds(wish(content="new"))) == (False, True)
    (grant,) = trust.grants()
    assert (grant.when, grant.summary, grant.name) == (NOW, "runs new", "geo")


def test_consent_given_elsewhere_counts_at_once_and_so_does_taking_it_back(trust: Trust) -> None:
    other = Trust.open()
    assert not trust.holds(wish())
    other.grant([wish()])
    assert trust.holds(wish())
    assert other.revoke("/shop") == 1
    assert not trust.holds(wish())


def test_consent_is_taken_back_by_folder_kind_and_name(trust: Trust) -> None:
    wishes = [wish(), wish(name="b"), wish(kind="domain"), wish("/other")]
    trust.grant(wishes)
    assert trust.revoke("/nowhere") == 0
    assert trust.revoke("/shop", "server", "b") == 1
    assert [trust.holds(each) for each in wishes] == [True, False, True, True]
    assert trust.revoke("/shop", name="geo") == 2
    assert [each.folder for each in trust.grants()] == ["/other"]
    assert trust.grants("/shop") == []


def test_a_folder_is_the_same_through_every_link(trust: Trust, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    trust.grant([wish(real_folder(tmp_path / "link"))])
    assert trust.holds(wish(real_folder(tmp_path / "real")))
    assert len(trust.grants(tmp_path / "link")) == 1
    assert trust.revoke(tmp_path / "link") == 1


def test_nobody_else_can_read_or_write_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "clew" / "trust.json"
    before = os.umask(0)
    try:
        Trust.open(path).grant([wish()])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is damaged"),
        (b"{", "is damaged"),
        (b"[]", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b'{"version": 1, "grants": [{"folder": "/shop"}]}', "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b'{"version": 2, "grants": []}', "has the format 2"),
    ],
)
def test_an_unreadable_file_is_reported_and_gives_no_consent(trust_file: Path, content: bytes, said: str) -> None:
    trust_file.write_bytes(content)
    trust_file.chmod(0o600)
    trust = Trust.open()
    for ask in (
        lambda: trust.holds(wish()),
        trust.grants,
        lambda: trust.grant([wish()]),
        lambda: trust.revoke("/shop"),
    ):
        with pytest.raises(ConfigError, match=said) as told:
            ask()
        assert "\n" not in str(told.value)
    assert trust_file.read_bytes() == content


def test_a_file_that_others_can_write_gives_no_consent(trust: Trust) -> None:
    trust.grant([wish()])
    trust.path.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by others"):
        trust.holds(wish())


def test_a_folder_in_its_place_is_reported(trust_file: Path) -> None:
    trust_file.mkdir()
    with pytest.raises(ConfigError, match="is not a file"):
        Trust.open().holds(wish())


def test_without_write_access_nothing_is_granted_and_the_error_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trust = Trust.open(tmp_path / "file" / "trust.json")
    with pytest.raises(ReadOnly, match=r"cannot be written to .*Nothing was changed") as told:
        trust.grant([wish()])
    assert "CLEW_TRUST" in str(told.value)
    assert trust.revoke("/shop") == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_configuration_folder_that_is_read_only_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ReadOnly, match="Permission denied"):
        Trust.open(tmp_path / "trust.json").grant([wish()])
    tmp_path.chmod(0o700)


GRANT = """
import sys
from clew.trust import Trust, Wish
trust = Trust.open()
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    trust.grant([Wish(folder="/shop", kind="server", name=f"{sys.argv[1]}-{number}", digest="0" * 64)])
"""


def test_processes_that_write_at_once_lose_nothing(trust: Trust) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([sys.executable, "-c", GRANT, name], **pipes) for name in "abc"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("go\n", timeout=PATIENCE)
        assert writer.returncode == 0
    assert {each.name for each in trust.grants()} == {f"{name}-{number}" for name in "abc" for number in range(20)}


KILLED = """
import os, signal
from pathlib import Path
from clew.trust import Trust, Wish
def end(self, target): os.kill(os.getpid(), signal.SIGKILL)
Path.replace = end
Trust.open().grant([Wish(folder="/shop", kind="server", name="late", digest="0" * 64)])
"""


def test_a_process_that_is_killed_during_a_write_leaves_the_old_file_and_no_lock(trust: Trust) -> None:
    trust.grant([wish()])
    killed = subprocess.run([sys.executable, "-c", KILLED], timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    assert [each.name for each in trust.grants()] == ["geo"]
    trust.grant([wish(name="next")])
    assert [each.name for each in trust.grants()] == ["geo", "next"]
    assert not trust.path.with_name(f"{trust.path.name}.new").exists()


def test_a_file_behind_a_link_is_written_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    link = tmp_path / "trust.json"
    link.symlink_to("dotfiles/trust.json")
    Trust.open(link).grant([wish()])
    assert link.is_symlink()
    assert json.loads((tmp_path / "dotfiles" / "trust.json").read_text())["grants"][0]["name"] == "geo"


def test_it_is_kept_in_the_configuration_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_file() == Path(os.environ["CLEW_TRUST"])
    monkeypatch.delenv("CLEW_TRUST")
    monkeypatch.setenv("HOME", str(tmp_path))
    for base, expected in (("", ".config"), ("relative", ".config"), (str(tmp_path / "xdg"), "xdg")):
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
        assert user_file() == tmp_path / expected / "clew" / "trust.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where there is no home
    with pytest.raises(ConfigError, match="no home folder"):
        user_file()


@pytest.mark.parametrize(
    "given",
    [
        {"folder": "relative"},
        {"kind": "A kind"},
        {"name": " "},
        {"name": "a\x1b[2J"},
        {"digest": "x"},
        {"summary": "a\nb"},
    ],
)
def test_a_wish_can_be_shown_and_compared(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        Wish(**{"folder": "/shop", "kind": "server", "name": "geo", "digest": "0" * 64} | given)


def test_a_reader_waits_for_a_file_that_is_being_created(trust: Trust) -> None:
    made = wish("/shop")
    assert not trust.holds_once_made(made)
    with ThreadPoolExecutor(1) as pool:
        with trust.making():
            asked = pool.submit(Trust.open().holds_once_made, made)
            trust.grant([made])
        assert asked.result(60)
    assert not Trust.open().holds_once_made(wish("/other"))


def test_a_digest_tells_names_contents_and_places_apart(tmp_path: Path) -> None:
    assert digest_parts([b"ab", b"c"]) != digest_parts([b"a", b"bc"])
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text("a")
    two.write_text("b")
    before = digest_files([one, two], tmp_path)
    assert digest_files([two, one], tmp_path) == before
    one.write_text("b")
    two.write_text("a")
    assert digest_files([one, two], tmp_path) != before


def test_a_digest_waits_for_no_pipe_and_fails_for_no_missing_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert len(digest_files([tmp_path / "pipe", tmp_path / "gone"], tmp_path)) == 64


def test_a_summary_hides_nothing_and_says_what_is_cut() -> None:
    assert printable("a\nb\x1b[2J\u202e") == r"a\nb\x1b[2J\u202e"
    long = printable("x" * 10_000)
    assert (len(long) <= MAX_SUMMARY, long.endswith("characters more")) == (True, True)


def test_folders_and_names_of_any_script_are_kept(trust: Trust) -> None:
    strange = wish(real_folder(os.fsdecode(b"/caf\xe9/\xff")), name="größe-名前")
    trust.grant([strange])
    assert Trust.open().holds(strange)
