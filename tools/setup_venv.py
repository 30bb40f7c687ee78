"""Make a virtual environment from a lock file, with uv where it can be had and pip otherwise.

Usage: setup_venv.py DIRECTORY LOCKFILE. Runs on the bare interpreter, so it uses the standard library only.
Does nothing when the environment already matches the lock file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
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
    print(f"Setting up {directory} from {lock} (once) ...", flush=True)
    if not (directory / "bin" / "python").exists():
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory, with_pip=True)
    python = str(directory / "bin" / "python")
    installer = find_installer(python)
    run([*installer, "install", "-q", "--require-hashes", "-r", str(lock)])
    run([*installer, "install", "-q", "--no-deps", "-e", "."])
    stamp.write_text(digest)


def find_installer(python: str) -> list[str]:
    """uv installs the lock in seconds, pip in about a minute; both check the hashes."""
    if found := shutil.which("uv"):
        os.environ["VIRTUAL_ENV"] = str(Path(python).absolute().parent.parent)
        return [found, "pip"]
    return [python, "-m", "pip", "--disable-pip-version-check"]


def run(command: list[str]) -> None:
    done = subprocess.run(command)
    if done.returncode:
        sys.exit(f"this step failed: {' '.join(command)}\nIs the package index reachable from here?")


if __name__ == "__main__":
    main()
