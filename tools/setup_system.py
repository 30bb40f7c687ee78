"""Install the system packages that some tests need, where that is allowed: bubblewrap and ripgrep, with apt-get or dnf.

Runs on the bare interpreter. If a package is missing and may not be installed, it says so; the tests that need it are
skipped and counted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PROGRAMS = {"bwrap": "bubblewrap", "rg": "ripgrep"}
"""Program → the package that brings it."""
PATIENCE = 180
MANAGERS = {"apt-get": ("install", "-y", "--no-install-recommends"), "dnf": ("install", "-y")}


def main() -> None:
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not sys.platform.startswith("linux") or not missing:
        return
    rights = [] if os.geteuid() == 0 else find_sudo()
    manager = next((name for name in MANAGERS if shutil.which(name)), None)
    if rights is None or manager is None:
        tell(missing, "this user may not install packages")
        return
    for package in missing:
        if not install([*rights, manager], MANAGERS[manager], package):
            tell([package], f"{manager} could not install it")


def find_sudo() -> list[str] | None:
    """sudo, where it asks for no password."""
    if shutil.which("sudo") is None:
        return None
    allowed = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    return ["sudo", "-n"] if allowed else None


def install(manager: list[str], how: tuple[str, ...], package: str) -> bool:
    """Whether the package is there now; its lists are fetched anew where they do not know it."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([*manager, *how, package], [*manager, "update"], [*manager, *how, package]):
        try:
            done = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, env=environment, check=False
            )
        except (subprocess.TimeoutExpired, OSError):
            return False
        if done.returncode == 0 and command[-1] == package:
            print(f"Installed {package}.", flush=True)
            return True
    return False


def tell(packages: list[str], why: str) -> None:
    print(f"Without {' and '.join(packages)} ({why}) some tests are skipped.", flush=True)


if __name__ == "__main__":
    main()
