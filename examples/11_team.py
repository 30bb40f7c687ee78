"""A team does real work with git, ruff and pytest, and is killed once on the way. Its Engineer first claims to be done
without a change, then fails the linter, then a test, and passes in the end. The models are a script, so that this runs
without a key."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).with_suffix("")
SCRIPT = HERE / "script.yaml"
REQUEST = "add the total fare of a group"
KILLED_AFTER = "F401"
"""The first process is killed as soon as it prints a line with this text."""


def main() -> int:
    for program in ("git", "ruff", "pytest"):
        if shutil.which(program, path=search_path()) is None:
            print(f"This demo needs {program}. Install it, or use the environment of a checkout (`make run`).")
            return 1
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        place = Path(folder)
        project = make_project(place)
        run_and_kill(project, place)
        print("  (kill -9; a new process goes on)", flush=True)
        for shown in ("code --resume", "why done total", "verify total", "code merge"):
            print(f"$ clew {shown}", flush=True)
            words = [*shown.split(), *(["--script", str(SCRIPT)] if "--resume" in shown else [])]
            if (code := clew(words, project, place).wait()) != 0:
                return code
        run(["git", "log", "--oneline", "--graph"], project)
    return 0


def make_project(place: Path) -> Path:
    """A repository with a function that is missing, and a test that wants it."""
    project = place / "project"
    shutil.copytree(HERE / "project", project)
    run(["git", "init", "--quiet", "--initial-branch=main"], project)
    run(["git", "add", "."], project)
    run(["git", "-c", "user.name=Demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "-m", "Fares"], project)
    return project


def run_and_kill(project: Path, place: Path) -> None:
    """Start the team, show its lines, and kill its process in the middle."""
    print(f'$ clew code "{REQUEST}" --yes', flush=True)
    process = clew(["code", REQUEST, "--yes", "--script", str(SCRIPT)], project, place, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            print(line, end="", flush=True)
            if KILLED_AFTER in line:
                os.killpg(process.pid, signal.SIGKILL)
                break
    process.wait()


def clew(words: list[str], project: Path, place: Path, **more: object) -> "subprocess.Popen[str]":
    environ = os.environ | {
        "PATH": search_path(),
        "CLEW_FOLDER": str(project / ".clew"),
        "CLEW_TRUST": str(place / "trust.json"),
        "XDG_STATE_HOME": str(place / "state"),
        "CLEW_EMBEDDER": "hash",
    }
    command = [sys.executable, "-m", "clew", *words]
    streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT} | more
    return subprocess.Popen(command, cwd=project, env=environ, text=True, start_new_session=True, **streams)


def search_path() -> str:
    """The programs beside this Python first."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
