"""The attacks of this folder once more, as an ordinary user, on both walls. Deno does not depend on the user."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.faults.sandbox.escapes import linux_only

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="these tests run as an ordinary user already")
@pytest.mark.slow
def test_the_same_holds_for_an_ordinary_user() -> None:
    """All of them as nobody. The interpreter may lie below root's home, which that user is let through here, in a
    name space of mounts of its own."""
    base = Path("/tmp") / f"clew-attacks-{uuid4().hex}"
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "-rs", "-k", "not deno", f"--basetemp={base}/run")
    tests = (sys.executable, "-m", "pytest", *options, str(Path(__file__).parent))
    script = """
set -e
base=$1; shift
mkdir -p "$base/kept"
home=$(getent passwd 0 | cut -d: -f6)
case "$PREFIX" in "$home"/*)
  mount --bind "$PREFIX" "$base/kept"; mount -t tmpfs -o mode=755 none "$home"
  mkdir -p "$PREFIX"; mount --move "$base/kept" "$PREFIX";;
esac
chown -R 65534:65534 "$base"
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""
    try:
        done = subprocess.run(
            ("unshare", "--mount", "sh", "-c", script, "sh", str(base), *tests),
            env={**os.environ, "PREFIX": sys.base_prefix, "HOME": str(base), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    finally:
        subprocess.run(("rm", "-rf", str(base)), check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "NOT TESTED" not in done.stdout
    assert (passed := re.search(r"(\d+) passed", done.stdout))
    assert int(passed[1]) > 100
