"""A real nats-server on a free port of this machine, which can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

SERVER = Path(sys.executable).with_name("nats-server")
PATIENCE = 60.0


class NatsServer:
    """One server process. `options` are those of its command line."""

    def __init__(self, *options: str, scheme: str = "nats") -> None:
        self.port = _free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return when it accepts connections."""
        command = [str(SERVER), "-a", "127.0.0.1", "-p", str(self.port), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
                return
            except OSError:
                assert self._process.poll() is None, "nats-server did not start"
                assert time.monotonic() < until, "nats-server does not answer"
                time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process = None

    def __enter__(self) -> NatsServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
