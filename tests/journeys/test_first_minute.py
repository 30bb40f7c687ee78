"""The first minute: from an empty folder with a thousand files to an answer that cites them, by one command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = 1_000


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for number in range(FILES - 3):
        place = root / f"area{number % 20}"
        place.mkdir(parents=True, exist_ok=True)
        if number % 2:
            (place / f"page{number}.md").write_text(f"# Page {number}\n\nNotes on item {number} of the stock.\n")
        else:
            (place / f"code{number}.py").write_text(
                f'"""Module {number}."""\n\n\ndef item_{number}() -> int:\n    return {number}\n'
            )
    (root / "docs").mkdir()
    (root / "docs" / "refunds.md").write_text(
        "# Refunds\n\nHow money goes back to a customer.\n\n## Deadlines\n\nA refund is paid within nine days.\n"
    )
    (root / ".gitignore").write_text("secret.md\n")
    (root / "secret.md").write_text("# Refund password\n\nhunter2\n")
    return root


def clew(root: Path, *arguments: str) -> Any:
    """One command, as a person has it: no settings, no key, no server."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *arguments, "--json"],
        cwd=root,
        env=environ | {"HOME": str(root.parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.req("BEY-11")
def test_a_new_folder_of_a_thousand_files_answers_with_its_sources(repository: Path) -> None:
    question = "how soon is a refund paid to a customer?"
    first = clew(repository, "ask", question)
    assert first["known"][0]["path"] == "docs/refunds.md"
    assert not any("secret" in each["path"] for each in first["known"])

    clew(repository, "index")
    answer = clew(repository, "ask", question)
    assert answer["is_relevant"]
    section = next(each for each in answer["sections"] if each["domain"] == "repo")
    cited = [entry["route"] for entry in section["resources"]]
    assert cited[0].startswith("repo://resources/docs/refunds.md")
    assert not any("secret" in route for route in cited)

    read = clew(repository, "get", *cited[:2], "--handle", answer["handle"])
    assert read["summary"]["failed"] == 0
    assert any("nine days" in result["data"]["content"] for result in read["results"])

    (source,) = clew(repository, "refresh", "--list")
    assert source["documents"] == FILES // 2  # files of code are read by their path
    assert (repository / ".clew" / "config.toml").exists()
    assert "*.db*" in (repository / ".clew" / ".gitignore").read_text()
