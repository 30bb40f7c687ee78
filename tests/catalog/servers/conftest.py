"""Real servers for the tests: written with two SDKs and one from npm, over both transports, and hostile ones."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.servers import McpServerConfig, ServerRegistry, open_registry
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.store import Trail

FIXTURES = Path(__file__).parent / "fixtures"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
PATIENCE = 60.0


def program(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(FIXTURES / name), *arguments)


def stdio(id: str, *command: str, **more: Any) -> McpServerConfig:
    return McpServerConfig(id=id, transport="stdio", command=command, **{"timeout_seconds": PATIENCE, **more})


def hostile(mode: str, *arguments: str, **more: Any) -> McpServerConfig:
    return stdio("hostile", *program("hostile.py", mode, *arguments), **more)


@contextmanager
def over_http(name: str) -> Iterator[str]:
    """A fixture server behind a socket that already listens, so that tests need not wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        fd = listening.fileno()
        running = subprocess.Popen(program(name, "http", str(fd)), pass_fds=(fd,), stderr=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            running.terminate()
            running.wait(PATIENCE)


@pytest.fixture(scope="session")
def sdk_url() -> Iterator[str]:
    with over_http("sdk_server.py") as url:
        yield url


@pytest.fixture(scope="session")
def fast_url() -> Iterator[str]:
    with over_http("fast_server.py") as url:
        yield url


@pytest.fixture(scope="session")
def everything() -> tuple[str, ...]:
    """The command of npm's server-everything, installed once beside the Python packages."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("NODE IS MISSING: server-everything was not tried")
    folder = Path(sys.prefix) / "node" / "server-everything"
    script = folder / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    if not script.exists():
        command = [
            npm,
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--fetch-retries=0",
            "--prefix",
            str(folder),
            EVERYTHING,
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"NPM CANNOT INSTALL {EVERYTHING}: no answer within 40 seconds")
        if done.returncode != 0:
            pytest.skip(f"NPM CANNOT INSTALL {EVERYTHING}: {done.stderr[-200:]}")
    return (node, str(script))


@pytest.fixture(scope="session")
def everything_url(everything: tuple[str, ...]) -> Iterator[str]:
    for _ in range(5):
        running, port = _start_everything(everything)
        assert running.stderr is not None
        try:
            if any("listening" in line.lower() for line in running.stderr):
                yield f"http://127.0.0.1:{port}/mcp"
                return
        finally:
            running.terminate()
            running.wait(PATIENCE)
            running.stderr.close()
    raise AssertionError("it ended without listening")


def _start_everything(command: tuple[str, ...]) -> tuple[subprocess.Popen[str], int]:
    """The server on a port that is free just now; somebody else may take it before the server does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    environ = {"PORT": str(port), "PATH": "/usr/bin:/bin"}
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen((*command, "streamableHttp"), env=environ, stdout=none, stderr=pipe, text=True), port


@pytest.fixture
async def meaning(tmp_path: Path) -> AsyncIterator[Trail]:
    """A trail whose search knows what words mean."""
    opened = await open_trail(f"sqlite://{tmp_path}/meaning.db", embedder=open_embedder("wordllama"))
    yield opened
    await opened.close()


Opened = Callable[..., Any]


@pytest.fixture
async def open_with(meaning: Trail, me: Principal) -> AsyncIterator[Opened]:
    """Opens registries on one trail, and closes them after the test."""
    opened: list[ServerRegistry] = []

    async def open_one(*configs: McpServerConfig, **given: Any) -> ServerRegistry:
        registry = await open_registry(meaning, configs, by=given.pop("by", me), **given)
        opened.append(registry)
        return registry

    yield open_one
    for registry in opened:
        await registry.close()
