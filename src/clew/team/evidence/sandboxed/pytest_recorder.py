"""A plugin of pytest that reports every test to `recorder_host` while the tests run. `-p` loads it before the
conftest files of the project; plugins that its `addopts` name come earlier.

The tests run in the same process, so code that targets this plugin can still forge reports. The plugin blocks the usual
ways: it keeps its own references to functions, and events cannot be withdrawn after they were sent. It compares every
exception with the reported outcome. After the tests it runs a failing test in each module and checks that pytest
reports the failure.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import importlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

PIPES = "CLEW_TEST_PIPES"
LOWEST_DESCRIPTOR = 200
MAX_TEXT = 2_000
Send = Callable[[dict[str, Any]], None]

pytest: Any = importlib.import_module("pytest")  # the one of the project
Hook = TypeVar("Hook", bound=Callable[..., Any])


def wrapper(function: Hook) -> Hook:
    """Mark a hook as a wrapper around the hooks of all other plugins."""
    return cast("Hook", pytest.hookimpl(hookwrapper=True, tryfirst=True)(function))


def optional(function: Hook) -> Hook:
    """Mark a hook that exists only if another plugin is installed."""
    return cast("Hook", pytest.hookimpl(optionalhook=True)(function))


def pytest_addoption(parser: Any, pluginmanager: Any) -> None:
    """Start to record. Workers of xdist have no pipe and record nothing."""
    pipes = os.environ.pop(PIPES, "")
    if pipes:
        pluginmanager.register(TestRecorder(open_channel(pipes)), "clew-recorder")


def open_channel(pipes: str) -> Send:
    """A function that sends an event. Child processes do not inherit the pipe, and a fork cannot use it."""
    key_source, target = map(int, pipes.split(","))
    key = os.read(key_source, 64)
    os.close(key_source)
    descriptor = fcntl.fcntl(target, fcntl.F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR)
    os.close(target)
    write, new_mac, sha256, encode = os.write, hmac.new, hashlib.sha256, json.JSONEncoder().encode
    get_process, own, count = os.getpid, os.getpid(), 0

    def send(event: dict[str, Any]) -> None:
        nonlocal count
        if get_process() != own:
            return
        text = encode([count, event]).encode()
        line = new_mac(key, text, sha256).hexdigest().encode() + b" " + text + b"\n"
        count += 1
        try:
            while line:
                line = line[write(descriptor, line) :]
        except OSError:
            pass  # the host reports an incomplete run

    return send


class TestRecorder:
    """The hooks."""

    __test__ = False

    def __init__(self, send: Send) -> None:
        self._send = send
        self._session: Any = None
        self._failed: set[tuple[str, str]] = set()
        self._reports: dict[str, list[Any]] = {}
        self._is_remote = False

    @wrapper
    def pytest_collection_finish(self, session: Any) -> Iterator[None]:
        yield
        self._session = session
        self._send({"event": "collected", "tests": [item.nodeid for item in session.items]})

    @optional
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        if not self._is_remote:
            self._is_remote = True
            self._send({"event": "collected", "tests": list(ids)})

    @wrapper
    def pytest_collectreport(self, report: Any) -> Iterator[None]:
        if report.outcome == "failed":
            self._send({"event": "test", "state": "failed", **describe(report)})
        yield

    @wrapper
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        if call.excinfo is not None and not is_skip(call.excinfo.value):
            self._failed.add((item.nodeid, call.when))
        elif call.excinfo is None:  # even after a failure, because a plugin may run tests again
            self._failed.discard((item.nodeid, call.when))
        yield

    @wrapper
    def pytest_runtest_logreport(self, report: Any) -> Iterator[None]:
        self._reports.setdefault(report.nodeid, []).append(report)
        if (report.nodeid, report.when) in self._failed and report.outcome == "passed":
            self._send({"event": "overruled", "test": report.nodeid})
        yield

    @wrapper
    def pytest_runtest_logfinish(self, nodeid: str) -> Iterator[None]:
        reports = self._reports.pop(nodeid, [])
        states = [each.outcome for each in reports if each.outcome != "rerun"]
        bad = next((each for each in reports if each.outcome == "failed"), None)
        state = "failed" if bad or not states else "skipped" if "skipped" in states else "passed"
        about = describe(bad) if bad else {"file": "", "message": "", "trace": ""}
        self._send({"event": "test", "state": state, "is_collected": True, **about, "test": nodeid})
        yield

    @wrapper
    def pytest_runtestloop(self, session: Any) -> Iterator[None]:
        yield
        modules = {id(each): each for each in (item.getparent(pytest.Module) for item in session.items) if each}
        for module in modules.values():
            if passes_although_it_fails(module):
                self._send({"event": "blind", "test": module.nodeid})

    @wrapper
    def pytest_unconfigure(self, config: Any) -> Iterator[None]:
        yield
        status = self._session.exitstatus if self._session is not None else None
        self._send({"event": "end", "status": int(status) if status is not None else None})


def is_skip(error: BaseException) -> bool:
    return isinstance(error, (pytest.skip.Exception, pytest.exit.Exception)) or type(error).__name__ == "SkipTest"


def describe(report: Any) -> dict[str, str]:
    """A failure as text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    trace = str(report.longrepr or "")
    message = str(getattr(crash, "message", "") or trace.strip().rpartition("\n")[2])
    file = report.nodeid.partition("::")[0]
    return {"test": report.nodeid, "file": file, "message": message[:500], "trace": trace[-MAX_TEXT:]}


def passes_although_it_fails(module: Any) -> bool:
    """Whether pytest reports a failing test of this module as passed. The check runs such a test, without fixtures."""

    def check() -> None:
        raise AssertionError("this test must fail")

    try:
        runner, logs = importlib.import_module("_pytest.runner"), importlib.import_module("_pytest.logging")
        item = pytest.Function.from_parent(module, name="test_must_fail", callobj=check)
        item.stash[logs.caplog_records_key] = {}
        call = runner.CallInfo.from_call(lambda: item.ihook.pytest_runtest_call(item=item), when="call")
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    except Exception:  # another version of pytest, or a hook that takes only real tests
        return False
    return call.excinfo is None or report.outcome == "passed"
