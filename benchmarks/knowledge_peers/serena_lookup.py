"""Serena's `find_symbol` with the Jedi language server, in the Python that has both: see `serena_worker.py`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

WORKER = Path(__file__).with_name("serena_worker.py")
SECONDS = 900


def has_serena(python: Path | None) -> bool:
    """Whether this interpreter can import serena and has the language server beside it."""
    if python is None or not python.with_name("jedi-language-server").exists():
        return False
    done = subprocess.run([python, "-c", "import serena.agent"], capture_output=True, check=False)
    return done.returncode == 0


def time_lookups(
    python: Path, root: Path, paths: Sequence[str], names: Sequence[str], scratch: Path
) -> tuple[float, list[float]]:
    """Seconds to the first answer, and of each further one, in a copy of the files: it writes beside them. Raises
    RuntimeError when it does not answer."""
    copy = scratch / "serena"
    for path in paths:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, copy / path)
    command = [str(python), str(WORKER), str(copy), names[0]]
    asked = "\n".join(names[1:]) + "\n"
    try:
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"serena did not answer within {SECONDS} s") from None
    times = [json.loads(line)["seconds"] for line in done.stdout.splitlines()]
    if len(times) != len(names):
        raise RuntimeError(f"serena answered {len(times)} of {len(names)} questions")
    return times[0], times[1:]
