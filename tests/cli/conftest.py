"""The command line in this process, on a folder of its own; in another process where signals or pipes matter."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from clew.app import App, open_app
from clew.cli import main
from clew.config import read_config

PATIENCE = 60.0
COMMAND = [sys.executable, "-m", "clew"]


@dataclass(frozen=True)
class Result:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table, without its head."""
        return [line.split("\t") for line in self.lines[1:]]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Clew(Protocol):
    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Result: ...


class OnTerminal(Protocol):
    def __call__(self, *arguments: str, **environment: str) -> str: ...


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust_file: Path) -> Iterator[Path]:
    """A folder that all commands of a test work on, also those in other processes. `clew chat` sets the level of a
    logger for its process, which here is that of further tests."""
    for name in [name for name in os.environ if name.startswith("CLEW_") and name != "CLEW_TRUST"]:
        monkeypatch.delenv(name)
    place = tmp_path / ".clew"
    monkeypatch.setenv("CLEW_FOLDER", str(place))
    monkeypatch.setenv("CLEW_EMBEDDER", "hash")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.chdir(tmp_path)
    yield place
    logging.getLogger("clew.agents").setLevel(logging.NOTSET)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for the user who runs commands."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def clew(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Clew:
    """Run one command and return what it answered. Tests that do not read the exit code expect success."""

    def run(*arguments: str, stdin: bytes | None = None) -> Result:
        given = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", given)
        capsys.readouterr()
        code = main(arguments)
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def on_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> OnTerminal:
    """Run a successful command at a terminal of 100 columns, or of COLUMNS, and return its output."""

    def run(*arguments: str, **environment: str) -> str:
        leader, follower = pty.openpty()
        with ThreadPoolExecutor(1) as readers, monkeypatch.context() as patch:
            reading = readers.submit(_read_to_the_end, leader)
            for name, value in ({"TERM": "xterm-256color", "COLUMNS": "100"} | environment).items():
                patch.setenv(name, value)
            with ExitStack() as streams:
                for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
                    stream = streams.enter_context(open(os.dup(follower), mode, encoding="utf-8"))
                    patch.setattr(sys, name, stream)
                os.close(follower)
                code = main(arguments)
            shown = reading.result(PATIENCE)
        assert code == 0, shown
        return shown.decode()

    return run


def _read_to_the_end(terminal: int) -> bytes:
    shown = b""
    with suppress(OSError):  # nobody has the other end any more
        while chunk := os.read(terminal, 65_536):
            shown += chunk
    os.close(terminal)
    return shown


@pytest.fixture
def put(clew: Clew) -> Callable[..., str]:
    """Write a breadcrumb by the command line; its id."""

    def write(title: str, *arguments: str, context: dict[str, Any] | None = None) -> str:
        result = clew("trail", "put", "--title", title, "--context", json.dumps(context or {}), *arguments)
        assert result.code == 0, result.err
        return result.out.strip()

    return write


@pytest.fixture
def in_trail(folder: Path) -> Callable[[Callable[[App], Awaitable[Any]]], Any]:
    """Do something on the trail that no command does."""

    def run(work: Callable[[App], Awaitable[Any]]) -> Any:
        async def open_and_work() -> Any:
            async with open_app(read_config(folder)) as app:
                return await work(app)

        return asyncio.run(open_and_work())

    return run


def start(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    """A command in a process of its own, with pipes."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | more
    return subprocess.Popen([*COMMAND, *arguments], text=True, **pipes)
