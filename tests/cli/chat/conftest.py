"""`clew chat` with agents that really run, and a model that answers by a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Clew, Result

Say = Callable[..., Result]

SCRIPT = """
- user: greet
  say: "Good \\x1b[31mmorning\\x1b[0m to you."
- user: what is in it
  say: I look.
  call: {read-file: {file_path: notes.txt}}
- expect: a blue kettle
  say: A blue kettle is in it.
- user: write it down
  call: {write-file: {file_path: out.txt, content: kettle}}
- say: That is all I can say.
- user: slowly
  delay: 0.2
  say: one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
- user: ponder
  delay: 3
  say: Hm.
- user: fail
  fault: refused
  times: 9
"""


@pytest.fixture
def script(folder: Path) -> Path:
    """A script in a folder with a file to read, in which writing has to be allowed."""
    (folder.parent / "notes.txt").write_text("a blue kettle\n")
    path = folder.parent / "script.yaml"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def say(clew: Clew, script: Path) -> Say:
    """Chat by the script."""

    def run(*arguments: str, **more: Any) -> Result:
        return clew("chat", *arguments, "--script", str(script), **more)

    return run


def session_of(clew: Clew) -> str:
    """The id of the newest session."""
    (session,) = clew("chat", "--list", "--json").json["items"][:1]
    return str(session["id"])
