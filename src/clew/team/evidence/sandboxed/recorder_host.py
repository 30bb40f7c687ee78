"""The parent process of pytest in a check. It receives the events of `pytest_recorder` through a pipe, and prints their
summary when pytest has ended.

Tests can only append to the pipe, and each event carries a number and a MAC. The last line of the output starts with a
nonce that only this process and Clew know, so that no test can print the summary itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import hmac
import json
import os
import subprocess
import sys
import threading
from typing import Any

PIPES = "CLEW_TEST_PIPES"
"""The variable with the two file descriptors of the recorder: the key to read, the events to write."""
MAX_FAILURES = 50
MAX_TEXT = 2_000
SECONDS_AFTER_END = 5.0
_PR_SET_DUMPABLE = 4


class RecordedEvents:
    """The events of a run, counted."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._count = 0
        self.collected: dict[str, int] = {}
        self.states = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures: list[dict[str, str]] = []
        self.problems: list[str] = []
        self.end: int | None = None
        self.has_ended = False

    def take(self, line: bytes) -> None:
        """Count one event. An event that the recorder did not write is a problem."""
        mac, _, text = line.partition(b" ")
        wanted = hmac.new(self._key, text, hashlib.sha256).hexdigest().encode()
        try:
            number, event = json.loads(text) if hmac.compare_digest(mac, wanted) else (-1, {})
        except (ValueError, TypeError):
            number, event = -1, {}
        if number != self._count or self.has_ended:
            self._problem("something else than pytest wrote to the report of the tests")
            return
        self._count += 1
        self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "collected":
            for name in event["tests"]:
                self.collected[name] = self.collected.get(name, 0) + 1
        elif kind == "test":
            self._test(event)
        elif kind == "overruled":
            self._problem(f"{event['test']} failed and was reported as passed")
        elif kind == "blind":
            self._problem(f"a failing test passes beside {event['test']}, so that passed tests prove nothing")
        elif kind == "end":
            self.has_ended, self.end = True, event["status"]

    def _test(self, event: dict[str, Any]) -> None:
        self.states[event["state"]] += 1
        if event.get("is_collected"):
            left = self.collected.get(event["test"], 0) - 1
            self.collected[event["test"]] = left
            if left < 0:
                self._problem(f"{event['test']} was reported without being collected")
        if event["state"] == "failed" and len(self.failures) < MAX_FAILURES:
            self.failures.append({name: event[name][-MAX_TEXT:] for name in ("test", "file", "message", "trace")})

    def _problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text[:300])

    def conclude(self, code: int) -> dict[str, Any]:
        """The summary of a run whose process ended with `code`."""
        left = sum(count for count in self.collected.values() if count > 0)
        if not self._count:
            self._problem("pytest did not report its tests")
        elif not self.has_ended:
            self._problem("the process of the tests ended before pytest had finished")
        elif self.end is not None and self.end != code:
            self._problem(f"pytest ended with {self.end}, and its process with {code}")
        elif left and not self.states["failed"]:
            self._problem(f"pytest ended before {left} of its tests had run")
        return {"states": self.states, "failures": self.failures, "problems": self.problems[:5]}


def hide_memory() -> None:
    """Prevent other processes of this user from reading the memory of this process."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def read_events(source: int, summary: RecordedEvents) -> None:
    with os.fdopen(source, "rb") as lines:
        for line in lines:
            summary.take(line.rstrip(b"\n"))


def main(argv: list[str]) -> int:
    nonce = sys.stdin.read().strip()
    hide_memory()
    key = os.urandom(32)
    key_source, key_target = os.pipe()
    source, target = os.pipe()
    os.write(key_target, key)
    os.close(key_target)
    summary = RecordedEvents(key)
    environment = {**os.environ, PIPES: f"{key_source},{target}"}
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=environment, pass_fds=(key_source, target))
    os.close(key_source)
    os.close(target)
    reader = threading.Thread(target=read_events, args=(source, summary), daemon=True)
    reader.start()
    code = child.wait()
    reader.join(SECONDS_AFTER_END)
    code = code if code >= 0 else 128 - code
    sys.stdout.write(f"\n{nonce} {json.dumps(summary.conclude(code))}\n")
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
