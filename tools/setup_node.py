"""Install the programs of tools/node/package-lock.json, and Node 22 with them, into a folder that git ignores.

Usage: setup_node.py [DIRECTORY]; the default is .venv/node. Prints the path of the node binary. Uses the standard
library only, does nothing when the folder matches the lock file, and ends with a reason where Node cannot be had.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = tuple(ROOT / "tools" / "node" / name for name in ("package.json", "package-lock.json", ".npmrc"))
OLDEST = 22
PATIENCE_SECONDS = 300


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv" / "node"
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder / ".lock"):
        install(folder)
    print(find_node(folder))


def install(folder: Path) -> None:
    stamp = folder / ".digest"
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in SOURCES)).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is not installed, so neither Node nor its packages can be had")
    for each in SOURCES:
        shutil.copy(each, folder / each.name)
    # No scripts of packages run: everything that is needed is in the packages themselves.
    command = [npm, "ci", "--ignore-scripts", "--no-progress", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        sys.exit(f"npm did not finish within {PATIENCE_SECONDS} s; is its registry reachable from here?")
    if done.returncode:
        sys.exit("npm could not install the packages of tools/node; is its registry reachable from here?")
    stamp.write_text(digest)


def find_node(folder: Path) -> Path:
    """The binary that came with the packages, or else the machine's own."""
    own = shutil.which("node")
    candidates = [*sorted(folder.glob("node_modules/node-*/bin/node")), *([Path(own)] if own else [])]
    for each in candidates:
        if major_version(each) >= OLDEST:
            return each
    sys.exit(f"there is no Node {OLDEST} or newer for this machine")


def major_version(node: Path) -> int:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout
    except OSError:
        return 0
    found = re.match(r"v(\d+)", said)
    return int(found.group(1)) if found else 0


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Processes that start at the same moment install once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
