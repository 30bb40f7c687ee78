"""The work of every contender: a step takes a small JSON payload and writes one. Nothing else is imported here, so that
the start time of a process includes only its own imports."""

from __future__ import annotations

import json
import os
import signal
from typing import Any, Protocol

Payload = dict[str, Any]
TEXT = "The next step gets the output of this one: about as large as the arguments of a call or a short answer. " * 2


class Stepper(Protocol):
    """Runs sessions of steps, each step durable before the next begins."""

    def run(self, sessions: list[str], steps: int) -> None:
        """All sessions side by side, each of so many steps; returns when the last is done."""

    def resume(self, session: str) -> None:
        """Go on with a session whose process was killed; returns when it is done."""

    def close(self) -> None: ...


def first_payload() -> Payload:
    return {"n": 0, "text": TEXT}


def payload_bytes() -> int:
    return len(json.dumps(first_payload(), separators=(",", ":")))


class Step:
    """The work of a step. At `die_at` the process kills itself, as a power cut would."""

    def __init__(self, die_at: int | None = None) -> None:
        self._die_at = die_at

    def take(self, payload: Payload) -> Payload:
        if payload["n"] == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"n": payload["n"] + 1, "text": payload["text"]}
