"""A team does real work with git, ruff and pytest, and is killed once on the way. Its Engineer first claims to be done
without a change, then fails the linter, then a test, and passes in the end. The models are a script, so that this runs
without a key. With the argument `brief` it shows the main lines alone."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).with_suffix("")
SCRIPT = HERE / "script.yaml"
REQUEST = "add the total fare of a group"
KILLED_AFTER = "F401"
"""The first process is killed as soon as it prints a line with this text."""
NEEDED = ("git", "ruff", "pytest")
AFTERWARDS = ("why done total", "verify total", "code merge")
LEFT_OUT = ("A new trail", "request:", "architect:", "the plan is", "execution", "Add the total", "1. ", "  total ")
"""The beginnings of lines that the brief form leaves out."""


def main(*, is_brief: bool) -> int:
    if reason := missing_part():
        print(reason, flush=True)
        return 0 if is_brief else 1
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        place = Path(folder)
        project = make_project(place)
        started = ["code", REQUEST, "--name", "fares", "--yes", "--script", str(SCRIPT)]
        print(f'$ clew code "{REQUEST}" --name fares --yes', flush=True)
        show(started, project, place, until=KILLED_AFTER, is_brief=is_brief)
        print("  (kill -9; a new process goes on)", flush=True)
        print("$ clew code --resume", flush=True)
        code = show(["code", "--resume", "--script", str(SCRIPT)], project, place, is_brief=is_brief)
        for shown in () if is_brief or code else AFTERWARDS:
            print(f"$ clew {shown}", flush=True)
            code = code or show(shown.split(), project, place)
        if not is_brief and not code:
            run(["git", "log", "--oneline", "--graph"], project)
    return code


def missing_part() -> str:
    """One line about a program or a sandbox that this machine does not have; empty where all is there."""
    from clew.tools.sandbox import open_sandbox

    missing = [program for program in NEEDED if shutil.which(program, path=search_path()) is None]
    if missing:
        return f"The team needs {', '.join(missing)}. Install what is missing, or use the environment of `make run`."
    if open_sandbox(production=False).wall == "none":
        return "The team works only in a sandbox, and this machine has none. `clew doctor` says what to install."
    return ""


def make_project(place: Path) -> Path:
    """A repository with a function that is missing, and a test that wants it."""
    project = place / "project"
    shutil.copytree(HERE / "project", project, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    run(["git", "init", "--quiet", "--initial-branch=main"], project)
    run(["git", "add", "."], project)
    run(["git", "-c", "user.name=Demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "-m", "Fares"], project)
    return project


def show(words: list[str], project: Path, place: Path, *, until: str = "", is_brief: bool = False) -> int:
    """Run a command and show its lines; kill it in the middle where a line has the text `until`."""
    with running(words, project, place) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not (is_brief and line.startswith(LEFT_OUT)):
                print(line, end="", flush=True)
            if until and until in line:
                os.killpg(process.pid, signal.SIGKILL)
                break
    return process.wait()


@contextmanager
def running(words: list[str], project: Path, place: Path) -> Iterator["subprocess.Popen[str]"]:
    """A command of Clew with processes of its own, which end with this program."""
    environ = os.environ | {
        "PATH": search_path(),
        "CLEW_FOLDER": str(project / ".clew"),
        "CLEW_TRUST": str(place / "trust.json"),
        "XDG_STATE_HOME": str(place / "state"),
        "CLEW_EMBEDDER": "hash",
    }
    command = [sys.executable, "-m", "clew", *words]
    process = subprocess.Popen(
        command,
        cwd=project,
        env=environ,
        text=True,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.poll() is None and sys.exc_info()[0] is not None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def search_path() -> str:
    """The programs beside this Python first."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it tidies up
    try:
        sys.exit(main(is_brief=sys.argv[1:] == ["brief"]))
    except KeyboardInterrupt:
        sys.exit(130)
