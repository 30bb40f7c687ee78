"""A build hook of hatchling: puts into the wheel the examples of `clew demo`, and two files of `wordllama` with its
license.

So a user installs two files instead of the package and the twelve that it needs for its own code. A checkout that is
installed as editable reads them from the installed package.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "clew/llm/wordllama_files"
WANTED = {
    "wordllama/weights/l2_supercat_256.safetensors": "weights/l2_supercat_256.safetensors",
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json": "tokenizers/l2_supercat_tokenizer_config.json",
}
"""File of the package → its place in the folder."""
LEFTOVERS = (
    "__pycache__",
    "*.db",
    "*.db-*",
    "*.lock",
    "keys*",
    "credential*",
    "secrets*",
    "edits*",
    "large-folder",
    ".env*",
)
"""Files that an example creates when it runs in place."""


class WheelFiles(BuildHookInterface[Any]):
    """Adds the files to a wheel, not to an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for path in Path(self.root, "examples").rglob("*"):
            parts = path.relative_to(self.root).parts
            if path.is_file() and not any(fnmatch(part, name) for part in parts for name in LEFTOVERS):
                build_data["force_include"][str(path)] = f"clew/{path.relative_to(self.root).as_posix()}"
        found = {str(each): each.locate() for each in _package_files()}
        for source, place in WANTED.items():
            if source not in found:
                sys.exit(f"the installed wordllama has no {source}: install wordllama>=0.4")
            build_data["force_include"][str(found[source])] = f"{FOLDER}/{place}"
        for name, path in found.items():
            if "license" in name.lower() and ".dist-info" in name:
                build_data["force_include"][str(path)] = f"{FOLDER}/LICENSE"


def _package_files() -> list[Any]:
    try:
        return list(files("wordllama") or ())
    except PackageNotFoundError:
        sys.exit("a wheel needs the files of wordllama: run `make dist`, or install wordllama>=0.4")
