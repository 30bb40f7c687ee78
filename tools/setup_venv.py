"""Make a virtual environment from a lock file, with uv where it can be had and pip otherwise.

Usage: setup_venv.py DIRECTORY LOCKFILE. Runs on the bare interpreter, so it uses the standard library only.
Does nothing when the environment already matches the lock file.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path


def main() -> None:
    if sys.version_info < (3, 11):
        sys.exit(f"Clew needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make PYTHON=python3.12")
    directory, lock = Path(sys.argv[1]), Path(sys.argv[2])
    stamp = directory / ".lock-digest"
    digest = hashlib.sha256(lock.read_bytes() + Path("pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    began = time.monotonic()
    uv, packages = shutil.which("uv"), count_packages(lock)
    usual = "some seconds (a minute where nothing is at hand yet)" if uv else "about a minute"
    print(f"First run: installing {packages} packages of {lock} into {directory}/ with {'uv' if uv else 'pip'}.")
    print(f"This takes {usual} and happens once.", flush=True)
    if not (directory / "bin" / "python").exists():
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory, with_pip=True)
    install = find_installer(directory, uv)
    run([*install, "--require-hashes", "--no-deps", "-r", str(lock)], packages)
    run([*install, "--no-deps", "--no-build-isolation", "-e", "."], 1)  # the build backend is in the lock, too
    stamp.write_text(digest)
    print(f"Installed in {time.monotonic() - began:.0f} s.\n", flush=True)


def count_packages(lock: Path) -> int:
    return len(re.findall(r"^[A-Za-z0-9._-]+==", lock.read_text(encoding="utf-8"), re.MULTILINE))


def find_installer(directory: Path, uv: str | None) -> list[str]:
    """uv installs the lock in seconds, pip in about a minute; both check the hashes."""
    if uv:
        os.environ["VIRTUAL_ENV"] = str(directory.absolute())
        return [uv, "pip", "install", "--quiet", "--compile-bytecode"]
    return [str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]


def run(command: list[str], packages: int) -> None:
    """Run an installer, telling on a terminal which package it is at."""
    told: list[str] = []
    collected = 0
    done = threading.Event()
    if "uv" in Path(command[0]).name:
        threading.Thread(target=count_seconds, args=(done,), daemon=True).start()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line)
            if line.startswith("Collecting "):
                collected += 1
                show(f"{collected} of {packages}: {line.split()[1]}")
            elif line.startswith("Installing "):
                show(f"unpacking {packages} packages ...")
    done.set()
    show("")
    if process.returncode:
        sys.stdout.writelines(told[-20:])
        sys.exit(f"this step failed: {' '.join(command)}\nIs the package index reachable from here?")


def count_seconds(done: threading.Event) -> None:
    """uv tells nothing of where it is, so the seconds do."""
    began = time.monotonic()
    while not done.wait(1.0):
        show(f"fetching and installing ... {time.monotonic() - began:.0f} s")


def show(text: str) -> None:
    """Replace the last line of a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\x1b[K  {text}" if text else "\r\x1b[K")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nInterrupted; run it again to go on.")
