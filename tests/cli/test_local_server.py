"""`clew ask` beside a running `clew up`: the same output, from a process that loads almost nothing."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.cli.commands.catalog import ask
from clew.cli.local_server.protocol import VARIABLE, socket_name
from clew.cli.options import Here
from clew.cli.parser import build_parser
from clew.cli.plain_question import read_arguments
from tests.cli.conftest import PATIENCE, Clew, OnTerminal, Result, start
from tests.cli.test_mcp import INITIALIZE
from tests.cli.test_up import running
from tests.knowledge.code.repositories import make_repository
from tests.servers import give_key

QUESTION = "where are the seconds before the next attempt"
FILES = {
    "src/retry.py": 'def backoff(attempt):\n    """Seconds before the next attempt."""\n    return 2**attempt\n',
    "docs/decisions/0001-retry.md": "# 1. Retry twice\n\n## Decision\n\nA payment is retried twice.\n",
    ".gitignore": ".clew/\n",
}
HEAVY = {"apsw", "asyncio", "cyclopts", "httpx", "jsonschema_rs", "mcp", "numpy", "rich", "starlette", "tree_sitter"}
OWN = {"clew.app", "clew.catalog.catalog", "clew.knowledge.base", "clew.trail.store"}
PROGRAM = """
import json, sys
from clew.cli import main
from clew.cli.local_server import client
client.ACKNOWLEDGE_SECONDS = 60.0
code = main(sys.argv[1:])
names = {name.partition(".")[0] for name in sys.modules} | {name for name in sys.modules if name.startswith("clew.")}
sys.stderr.write(json.dumps(sorted(names)))
sys.exit(code)
"""


@pytest.fixture
def project(clew: Clew, folder: Path, tmp_path: Path) -> Path:
    """A repository whose files are indexed."""
    make_repository(tmp_path, FILES)
    give_key(folder)
    assert clew("index").code == 0
    return tmp_path


@pytest.fixture
def served(project: Path) -> Iterator[Path]:
    """The project, with a running server."""
    with running():
        yield project


def loaded_by(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """The output of a command in a process of its own, and the modules that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | environment,
        check=True,
    )
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


def lasting(result: Result) -> tuple[int, str, str]:
    """A result without the parts that differ from call to call: the handle with its tokens, and scores, which depend on
    time."""
    return result.code, re.sub(r'clew-[\w-]{16}|,?"(?:score|tokens)":[\d.e-]+', "", result.out), result.err


@pytest.mark.req("BEY-11")
def test_a_command_beside_a_server_of_the_same_settings_loads_no_heavy_library(served: Path, folder: Path) -> None:
    out, loaded = loaded_by("ask", QUESTION)
    assert "src/retry.py:1" in out
    assert not loaded & (HEAVY | OWN)
    for environment in ({VARIABLE: "1"}, {"CLEW_EMBEDDER": "none"}):
        out, loaded = loaded_by("ask", QUESTION, **environment)
        assert "src/retry.py:1" in out
        assert "clew.app" in loaded, environment
    (folder / "config.toml").write_text("catalog.strict = true\n")
    assert "clew.app" in loaded_by("ask", QUESTION)[1], "settings that changed since the start count"


def test_a_running_mcp_server_answers_too(project: Path) -> None:
    with start("mcp", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(INITIALIZE)}\n")
        process.stdin.flush()
        assert "result" in json.loads(process.stdout.readline())
        assert not loaded_by("ask", QUESTION)[1] & (HEAVY | OWN)
        process.stdin.close()


ARGUMENTS = [
    [],
    ["--agent"],
    ["--json"],
    ["--agent", "--budget", "400", "--per-domain=2"],
    ["--domain", "nowhere"],
    ["--handle", "clew-unknown"],
    ["--budget", "1"],
    ["--owner", "ann"],
    ["--owner", "local"],
    ["--scopes", "a,b"],
    ["--cached"],
]


def test_the_output_is_the_same_with_and_without_a_server(clew: Clew, on_terminal: OnTerminal, served: Path) -> None:
    for arguments in ARGUMENTS:
        by_server = clew("ask", QUESTION, *arguments)
        assert lasting(by_server) == lasting(clew("ask", QUESTION, "--no-server", *arguments)), arguments
    assert on_terminal("ask", QUESTION) == on_terminal("ask", QUESTION, **{VARIABLE: "1"})


def test_notes_about_the_folder_are_shown_as_without_a_server(clew: Clew, served: Path) -> None:
    skill = served / ".claude/skills/release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: Make a release\n---\n# Release\n\nTag it.\n")
    for form in ("--agent", "--json"):
        by_server, by_itself = clew("ask", QUESTION, form), clew("ask", QUESTION, form, "--no-server")
        assert by_server.err == by_itself.err


def test_a_file_changed_just_now_is_read_before_the_answer(clew: Clew, served: Path) -> None:
    clew("ask", QUESTION)
    (served / "src/retry.py").write_text('\n\ndef wait(attempt):\n    """Seconds before the next attempt."""\n')
    assert "src/retry.py:3" in clew("ask", QUESTION).out


def test_the_socket_is_for_its_user_only_and_goes_with_the_server(project: Path, folder: Path) -> None:
    with running() as (process, _):
        (found,) = folder.glob("server-*")
        assert found.name == socket_name(folder, os.environ)
        assert stat.S_IMODE(found.stat().st_mode) == 0o600
        process.terminate()
        process.wait(PATIENCE)
        assert not found.exists()
    with running() as (process, _):
        process.kill()
        process.wait(PATIENCE)
        assert found.exists()
    assert "src/retry.py:1" in loaded_by("ask", QUESTION)[0]
    (folder / "config.toml").write_text("catalog.strict = true\n")
    with running():
        assert [path.name for path in folder.glob("server-*")] == [socket_name(folder, os.environ)] != [found.name]


def test_uninstall_removes_the_socket_of_a_server_that_was_killed(clew: Clew, project: Path, folder: Path) -> None:
    with running() as (process, _):
        process.kill()
        process.wait(PATIENCE)
    assert clew("uninstall", "--yes").code == 0
    assert not folder.exists()


def test_the_later_of_two_servers_answers_and_stays(project: Path, folder: Path) -> None:
    with running() as (first, _), running():
        first.terminate()
        first.wait(PATIENCE)
        assert "clew.app" not in loaded_by("ask", QUESTION)[1]


@pytest.mark.parametrize("reply", [b"", b"\n", b"\n{}", b'\n{"answer": 1, "notes": [], "root": "/"', b"HTTP/1.1 200"])
def test_a_socket_without_a_right_answer_is_left(clew: Clew, project: Path, folder: Path, reply: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        path = folder / socket_name(folder, os.environ)
        os.chdir(folder)  # the path of a socket is short
        listener.bind(path.name)
        os.chdir(project)
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(reply)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert "src/retry.py:1" in clew("ask", QUESTION).out
        thread.join(PATIENCE)


def test_a_socket_that_came_with_a_cloned_folder_is_not_used(project: Path, folder: Path, tmp_path: Path) -> None:
    path = folder / socket_name(folder, os.environ)
    for kind in ["file", "link"]:
        if kind == "file":
            path.write_text("127.0.0.1:80")
        else:
            path.unlink(missing_ok=True)
            path.symlink_to(tmp_path / "elsewhere")
        assert "src/retry.py:1" in loaded_by("ask", QUESTION)[0]


def test_a_folder_with_a_long_path_has_a_socket_too(
    clew: Clew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    make_repository(deep, FILES)
    monkeypatch.setenv("CLEW_FOLDER", str(deep / ".clew"))
    monkeypatch.chdir(deep)
    assert clew("index").code == 0
    with running():
        assert "clew.app" not in loaded_by("ask", QUESTION)[1]
    shutil.rmtree(deep)


@pytest.mark.parametrize(
    "arguments",
    [
        ["where", "is", "it"],
        ["where is it?", "--json"],
        ["--agent", "what", "calls", "x", "--budget", "500"],
        ["x", "--domain=repo", "--per-domain", "3", "--handle", "clew-abc", "--cached"],
        ["x", "--folder", "a/.clew", "--owner", "ann", "--scopes", "a,b"],
        ["x = 1", "a=b"],
        ["x", "--no-server"],
    ],
    ids=" ".join,
)
def test_plain_arguments_mean_what_the_parser_says(arguments: list[str]) -> None:
    _, bound, _ = build_parser().parse_args(["ask", *arguments], print_error=False, exit_on_error=False)
    bound.apply_defaults()
    expected = {name: value for name, value in bound.arguments.items() if name not in ("here", "query")}
    here: Here = bound.arguments["here"]
    expected |= {"query": " ".join(bound.arguments["query"]), "owner": here.owner, "scopes": here.scopes}
    expected["folder"] = here.folder and str(here.folder)
    found = read_arguments(arguments)
    assert found is not None
    assert {
        name: found.get(name, type(value)() if value is not None else None) for name, value in expected.items()
    } == (expected)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--json"],
        ["x", "--nonsense"],
        ["x", "--budget", "many"],
        ["x", "--domain"],
        ["x", "--", "--json"],
        ["x", "--domain", "a", "--domain", "b"],
        ["-h"],
        ["x", "--json=true"],
        ["x", "--handle", "--json"],
        ["x", "--budget", "-5"],
    ],
    ids=" ".join,
)
def test_other_arguments_are_left_to_the_parser(arguments: list[str]) -> None:
    assert read_arguments(arguments) is None


def test_every_option_of_ask_is_known_here() -> None:
    options = {name for name, each in inspect.signature(ask).parameters.items() if each.kind is each.KEYWORD_ONLY}
    given = [part for name in options - {"here"} for part in _as_typed(name)]
    found = read_arguments(["x", *given])
    assert found is not None
    assert found.keys() == options - {"here"} | {"query"}


def _as_typed(name: str) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    return [option] if name in ("agent", "json", "cached", "no_server") else [option, "7"]
