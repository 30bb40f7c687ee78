"""`clew ask` and the socket of a running server, where the folder is hostile or the server fails."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from clew.app import open_app
from clew.catalog.operations.answers import DEFAULT_BUDGET, DEFAULT_PER_DOMAIN
from clew.cli.commands.catalog import ask
from clew.cli.local_server import client, service
from clew.cli.local_server.protocol import ACKNOWLEDGED, LocalReply, LocalRequest, short_path, socket_name
from clew.cli.local_server.service import answering_commands, bind_socket, remove_stale
from clew.cli.plain_question import read_arguments
from clew.config import read_config
from tests.cli.conftest import PATIENCE, Clew
from tests.cli.test_local_server import HEAVY, OWN, QUESTION, loaded_by, project, served
from tests.cli.test_up import running

__all__ = ["project", "served"]

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from clew.cli import main
sys.exit(main(sys.argv[1:]))
"""
SETTINGS = "from clew.config.define import define_config\n\nconfig = define_config()\n"


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A listener in place of a server, at the path of its socket."""
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)
        listener.listen()
        yield listener


@pytest.mark.parametrize("name", ["config.toml", "config.py"])
@pytest.mark.parametrize("kind", ["device", "pipe", "huge", "folder", "loop"])
def test_hostile_settings_do_not_fill_the_memory_and_do_not_block(
    project: Path, folder: Path, name: str, kind: str
) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(20 << 30)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "ask", QUESTION], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    assert f"{name} cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
    with pytest.raises(OSError, match=r"regular|bytes|directory|symbolic"):
        socket_name(folder, os.environ)


def test_consent_given_since_the_start_of_the_server_counts(clew: Clew, project: Path, folder: Path) -> None:
    (folder / "config.py").write_text(SETTINGS)
    with running():
        assert "clew.app" not in loaded_by("ask", QUESTION)[1]
        clew("trust", "--yes")
        assert "clew.app" in loaded_by("ask", QUESTION)[1]
    with running():
        assert "clew.app" not in loaded_by("ask", QUESTION)[1]
        clew("trust", "--revoke")
        assert "clew.app" in loaded_by("ask", QUESTION)[1]


def test_a_link_to_the_folder_of_another_project_finds_no_server(served: Path, folder: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".clew").symlink_to(folder)
    assert socket_name(clone / ".clew", os.environ) != socket_name(folder, os.environ)
    assert not (clone / ".clew" / socket_name(clone / ".clew", os.environ)).exists()


def test_a_server_that_does_not_notice_the_question_is_left(
    clew: Clew, project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ACKNOWLEDGE_SECONDS", 0.01)
    with listening(folder / socket_name(folder, os.environ)) as listener:
        assert "src/retry.py:1" in clew("ask", QUESTION).out
        connection, _ = listener.accept()
        with connection:
            assert msgspec.json.decode(connection.recv(1 << 16), type=LocalRequest).query == QUESTION


def test_a_server_that_does_not_answer_in_time_is_left(
    clew: Clew, project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ACKNOWLEDGE_SECONDS", PATIENCE)
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.01)
    held: list[socket.socket] = []
    with listening(folder / socket_name(folder, os.environ)) as listener:

        def acknowledge() -> None:
            held.append(listener.accept()[0])
            held[0].sendall(ACKNOWLEDGED)

        thread = threading.Thread(target=acknowledge, daemon=True)
        thread.start()
        assert "src/retry.py:1" in clew("ask", QUESTION).out
        thread.join(PATIENCE)
        held[0].close()


@pytest.mark.parametrize("way", ["endless", "slow"])
def test_a_reply_without_an_end_is_left(
    clew: Clew, project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(client, "MAX_REPLY", 1_000_000 if way == "endless" else 1 << 60)
    monkeypatch.setattr(client, "ANSWER_SECONDS", PATIENCE if way == "endless" else 0.1)
    part = b" " * (1 << 16 if way == "endless" else 1)
    with listening(folder / socket_name(folder, os.environ)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.sendall(ACKNOWLEDGED)
                while True:
                    connection.sendall(part)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert "src/retry.py:1" in clew("ask", QUESTION).out
        thread.join(PATIENCE)
        assert not thread.is_alive()


async def test_a_client_that_sends_nothing_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "REQUEST_SECONDS", 0.01)
    async with open_app(read_config(folder)) as app, answering_commands(app):
        with short_path(folder) as place:
            reader, writer = await asyncio.open_unix_connection(str(place / socket_name(folder, os.environ)))
        writer.write(b'{"query": "it never ends')
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        writer.close()


async def test_a_client_that_does_not_take_its_reply_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(*_: object) -> LocalReply:
        return LocalReply(answer=msgspec.Raw(b"{}"), notes=["x" * 8_000_000], root="")

    monkeypatch.setattr(service, "_answer", answer)
    monkeypatch.setattr(service, "SEND_SECONDS", 0.01)
    hung_up = select.poll()
    async with open_app(read_config(folder)) as app, answering_commands(app):
        with short_path(folder) as place, socket.socket(socket.AF_UNIX) as connection:
            await asyncio.to_thread(connection.connect, str(place / socket_name(folder, os.environ)))
            hung_up.register(connection, 0)
            connection.sendall(msgspec.json.encode(LocalRequest(query="x", per_domain=1, budget=1)) + b"\n")
            assert await asyncio.to_thread(hung_up.poll, PATIENCE * 1_000)


@pytest.mark.parametrize("form", [[], ["--agent"]])
def test_an_answer_that_this_version_does_not_know_is_left(
    clew: Clew, project: Path, folder: Path, form: list[str]
) -> None:
    reply = {"answer": {"text": "of an older version"}, "notes": ["a note"], "root": str(project)}
    with listening(folder / socket_name(folder, os.environ)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(ACKNOWLEDGED + json.dumps(reply).encode())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        found = clew("ask", QUESTION, *form)
        thread.join(PATIENCE)
    assert "src/retry.py:1" in found.out
    assert "a note" not in found.err


def test_a_socket_without_a_process_is_left(clew: Clew, project: Path, folder: Path) -> None:
    with listening(folder / socket_name(folder, os.environ)):
        pass  # the file stays, as in an unpacked archive
    assert "src/retry.py:1" in clew("ask", QUESTION).out


def test_a_server_killed_while_a_command_waits_is_left(
    clew: Clew, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as (process, _):
        process.send_signal(signal.SIGSTOP)  # commands connect, and wait

        def kill(connection: socket.socket) -> bool:
            process.kill()
            process.wait(PATIENCE)
            return True

        monkeypatch.setattr(client, "_is_mine", kill)
        assert "src/retry.py:1" in clew("ask", QUESTION).out
        assert process.returncode == -signal.SIGKILL


REQUESTS = {
    "nothing": b"",
    "empty": b"\n",
    "fields": b"{}\n",
    "binary": b"\xff\xfe\n",
    "deep": b"[" * 100_000 + b"\n",
    "large": b"x" * 2_000_000,
    "types": b'{"query": "x", "budget": "y"}\n',
}


def test_a_request_that_is_none_does_not_disturb_the_server(project: Path, folder: Path) -> None:
    with running() as (process, _):
        for name, request in REQUESTS.items():
            with socket.socket(socket.AF_UNIX) as connection, short_path(folder) as place:
                connection.settimeout(PATIENCE)
                connection.connect(str(place / socket_name(folder, os.environ)))
                with suppress(OSError):  # the server closes before it has read a large request
                    connection.sendall(request)
                    connection.shutdown(socket.SHUT_WR)
                    assert connection.recv(1 << 16) in (b"", ACKNOWLEDGED), name
        assert "clew.app" not in loaded_by("ask", QUESTION)[1]
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_server_that_ends_while_commands_wait_ends_cleanly(project: Path) -> None:
    with running() as (process, _), ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(loaded_by, "ask", QUESTION) for _ in range(6)]
        waiting[0].result(PATIENCE)
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert all("src/retry.py:1" in each.result(PATIENCE)[0] for each in waiting)


def test_eight_commands_at_once_get_the_same_answer(served: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: loaded_by("ask", QUESTION), range(8)))
    assert {out for out, _ in found} == {found[0][0]}
    assert [loaded & (HEAVY | OWN) for _, loaded in found] == [set()] * 8


def test_a_new_socket_accepts_connections_as_soon_as_it_is_there(
    project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    seen: list[bool] = []
    replace = Path.replace

    def watch(self: Path, target: Path) -> Path:
        moved = replace(self, target)
        remove_stale(Path())  # as another server that starts at this moment does
        seen.append(target.exists())
        return moved

    monkeypatch.setattr(Path, "replace", watch)
    listener, made = bind_socket(Path(socket_name(folder, os.environ)))
    with listener:
        assert seen == [True]
        assert os.path.samestat(made, Path(socket_name(folder, os.environ)).lstat())


def test_drafts_of_killed_servers_are_removed_and_new_ones_stay(
    clew: Clew, project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, mine = folder / "server-0a.new", folder / "server-0b.new", folder / "server-notes.md"
    for path in (old, new):
        with listening(path):
            pass
    os.utime(old, (0, 0))
    mine.write_text("# Mine\n")
    with running():
        assert not old.exists()
        assert new.exists()
    assert clew("uninstall", "--yes").code == 0
    assert not new.exists()
    assert mine.exists()


def test_the_defaults_of_ask_are_the_same_everywhere() -> None:
    defaults = {"per_domain": DEFAULT_PER_DOMAIN, "budget": DEFAULT_BUDGET}
    assert ask.__kwdefaults__ is not None
    assert {name: ask.__kwdefaults__[name] for name in defaults} == defaults
    assert read_arguments(["x"]) == {**defaults, "query": "x"}
