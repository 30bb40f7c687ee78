"""Make a virtual environment from a lock file, with uv where it can be had and pip otherwise.

Usage: setup_venv.py DIRECTORY LOCKFILE [--compile]. Runs on the bare interpreter, so it uses the standard library only.
Does nothing when the environment already matches the lock file; packages that the lock file no longer has are removed.
`--compile` writes bytecode, which pays off where many processes start.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from importlib import metadata
from pathlib import Path

WIDER_LOCKS = {"requirements-run.lock": "requirements.lock"}
"""A lock file whose packages are part of another one; both go into one environment."""
KEPT = frozenset({"clew", "pip"})


def main() -> None:
    if sys.version_info < (3, 11):
        sys.exit(f"Clew needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make PYTHON=python3.12")
    directory, lock = Path(sys.argv[1]), Path(sys.argv[2])
    stamp = directory / ".lock-digest"
    digest = hashlib.sha256(lock.read_bytes() + Path("pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    began = time.monotonic()
    packages = count_packages(lock)
    print(f"First run: installing about {packages} packages of {lock} into {directory}/.", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        uv = shutil.which("uv") or fetch_uv(Path(scratch))
        print(f"This takes {'less than' if uv else 'about'} a minute and happens once.", flush=True)
        stamp.unlink(missing_ok=True)  # an install that fails leaves a mixture
        is_installed = install_all(directory, lock, uv) or (uv is not None and install_all(directory, lock, None))
    if not is_installed:
        sys.exit("The installation failed. Is the package index reachable from here?")
    stamp.write_text(digest)
    print(f"Installed in {time.monotonic() - began:.0f} s.\n", flush=True)


def install_all(directory: Path, lock: Path, uv: str | None) -> bool:
    """Install the lock and Clew itself with uv, or with pip where there is none. False where that fails."""
    make_venv(directory, with_pip=uv is None)
    pip = find_pip(directory, uv)
    compiled = ["--compile-bytecode"] if uv and "--compile" in sys.argv else []
    install = [*pip, "install", *compiled]
    stale = stale_packages(directory, lock)
    if stale:
        print(f"Removing what {lock} no longer has: {', '.join(stale)}.", flush=True)
    return (
        (not stale or run([*pip, "uninstall", *([] if uv else ["--yes"]), *stale], len(stale)))
        and run([*install, "--require-hashes", "--no-deps", "-r", str(lock)], count_packages(lock))
        # the build backend is in the lock, too
        and run([*install, "--no-deps", "--no-build-isolation", "-e", "."], 1)
    )


def stale_packages(directory: Path, lock: Path) -> list[str]:
    """The installed packages that neither the lock file nor a wider one has."""
    wider = lock.with_name(WIDER_LOCKS.get(lock.name, lock.name))
    wanted = KEPT.union(*map(locked_packages, {lock, wider}))
    folders = [str(each) for each in directory.glob("lib/python*/site-packages")]
    installed = {plain_name(str(each.metadata["Name"])) for each in metadata.distributions(path=folders)}
    return sorted(installed - wanted)


def locked_packages(lock: Path) -> set[str]:
    names = re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return {plain_name(each) for each in names}


def plain_name(package: str) -> str:
    """The name as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", package).lower()


def count_packages(lock: Path) -> int:
    return len(locked_packages(lock))


def fetch_uv(folder: Path) -> str | None:
    """Install uv into a folder for the time of this run: fetching it takes seconds, and saves most of a minute. None
    where this interpreter has no pip, or the index no uv."""
    show("fetching uv, which installs faster than pip ...")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    wanted = ["--require-hashes", "--target", str(folder), "-r", "requirements-uv.lock"]
    done = subprocess.run([*command, *wanted], capture_output=True, check=False)
    found = folder / "bin" / "uv"
    show("")
    return str(found) if done.returncode == 0 and found.exists() else None


def make_venv(directory: Path, *, with_pip: bool) -> None:
    """Make the environment, unless it is there and has what its installer needs."""
    python = directory / "bin" / "python"
    has_pip = next(directory.glob("lib/python*/site-packages/pip"), None) is not None
    if not python.exists():
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory, with_pip=with_pip)
    elif with_pip and not has_pip:
        subprocess.run([str(python), "-m", "ensurepip"], check=True, capture_output=True)


def find_pip(directory: Path, uv: str | None) -> list[str]:
    """uv installs the lock in seconds, pip in about a minute; both check the hashes."""
    if uv:
        os.environ["VIRTUAL_ENV"] = str(directory.absolute())
        os.environ.setdefault("UV_SYSTEM_CERTS", "1")  # as pip does: a proxy's certificate is in the system's store
        return [uv, "--quiet", "pip"]
    return [str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]


def run(command: list[str], packages: int) -> bool:
    """Run an installer, telling on a terminal which package it is at. False where it fails, after its last lines."""
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
        print(f"This step failed: {' '.join(command)}", flush=True)
    return process.returncode == 0


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
