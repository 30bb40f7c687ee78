"""Linking in a process of its own: what it keeps in memory for a large project is much, and it takes all of a core for
a while, during which questions are to be answered. The process ends with its input, so it outlives nobody."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from pathlib import Path

from clew.errors import ClewError, Corrupted, StorageError
from clew.knowledge.code.links import Links
from clew.knowledge.code.pool import end_process
from clew.knowledge.code.store import CodeStore

APART_FROM = 200
"""Smaller projects are linked here: starting a process takes longer."""

_START = "import sys; from clew.knowledge.code.link_worker import serve; serve(*sys.argv[1:])"
_DONE, _DAMAGED = "done", "damaged: "


class LinksApart:
    """The edges of one store, found here or elsewhere, as its size demands: in a small project values are followed at
    once. Not for several threads at once, but for `close`."""

    def __init__(self, store: CodeStore, root: str) -> None:
        self._store = store
        self._root = root
        self._here = Links(store, root)
        self._process: subprocess.Popen[str] | None = None
        self._era = store.era
        self._turn = threading.Lock()

    def prepare(self, files: int) -> None:
        """Start the process if so many files will be linked there: it takes a while until it can begin."""
        if files >= APART_FROM:
            self._running()

    def link(self) -> None:
        """As `Links.link`. Raises StorageError when the process ends early."""
        self._do("link")

    def follow(self) -> None:
        """As `Links.follow`. Raises StorageError when the process ends early."""
        self._do("follow")

    def close(self) -> None:
        """End the process, in the middle of its work too."""
        with self._turn:
            process, self._process = self._process, None
            if process is not None:
                end_process(process)

    def _do(self, what: str) -> None:
        with self._store.reading() as sql:
            files = sql.execute("SELECT count(*) FROM files").fetchone()[0]
        if files < APART_FROM:
            self._here.follow()
            return
        answer = self._ask(what)
        if answer != _DONE:
            self.close()
        if answer.startswith(_DAMAGED):
            raise Corrupted(answer.removeprefix(_DAMAGED))
        if answer != _DONE:
            raise StorageError(f"code was not linked: {answer or 'the process for it ended'}", hint="Try again")

    def _ask(self, what: str) -> str:
        """The answer of the process, empty when it is gone."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(f"{what}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()
        return ""

    def _running(self) -> subprocess.Popen[str]:
        """The process. One of before the store was built again has another file, and is ended."""
        if self._era != self._store.era:
            self.close()
            self._era = self._store.era
        with self._turn:
            if self._process is None:
                self._process = _start(self._store.path, self._root)
            return self._process


def _start(path: Path, root: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _START, str(path), root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def serve(path: str, root: str) -> None:
    """The process: does what each line of its input asks, and answers each with a line."""
    store = CodeStore(Path(path))
    links = Links(store, root)
    gc.disable()  # what is linked stays, in millions of objects: looking for cycles among them while working is slow
    for line in sys.stdin:
        try:
            links.link() if line.strip() == "link" else links.follow()
            answer = _DONE
        except Corrupted as error:
            answer = _DAMAGED + " ".join(str(error).split())
        except ClewError as error:
            answer = " ".join(str(error).split())
        except Exception as error:  # the process is a task: who asked is told, and may ask again
            answer = f"unforeseen {type(error).__name__}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()
    store.close()
