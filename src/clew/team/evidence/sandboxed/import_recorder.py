"""Python loads this as `sitecustomize` at its start in a check. At the end of the process it writes the files of all
loaded modules, so that a receipt can say which changed files a test run imported."""

from __future__ import annotations

import atexit
import json
import os
import sys

FOLDER = "CLEW_IMPORTED"
"""The variable with the folder to write to."""


def write(folder: str) -> None:
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    names = sorted(os.path.realpath(name) for name in files if isinstance(name, str))
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{os.getpid()}.json"), "w") as out:
            json.dump(names, out)
    except OSError:
        pass


if os.environ.get(FOLDER):
    atexit.register(write, os.environ[FOLDER])
