"""The shell sessions in the docs show the real output of the shell.

The `console` blocks of a page are one session in an empty folder, with the examples beside it. A block that names a
file, such as `toml .clew/config.toml`, is written there on the way. `…` stands for any text, alone on a line for any
lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clew.catalog.servers.config import FILE, read_servers
from clew.catalog.sources import build_source, secret_names
from clew.cli.command_table import spell_out
from clew.cli.parser import build_parser
from clew.config import read_config
from tests.docs.test_snippets import PAGES, ROOT

PATIENCE = 600.0
FENCE = re.compile(r"^(`{3,})(\w*)(?: (\S+))?\n(.*?)^\1\n", re.S | re.M)
MARK = "=== session line "


class Block(NamedTuple):
    """One fenced block: its language, the file that it names, its text."""

    kind: str
    file: str | None
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        yield Block(match[2], match[3], match[4])


def exchanges(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with what the page shows below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        else:
            found[-1][1].append(line.rstrip())
    return found


def write_script(page: Path) -> tuple[str, list[tuple[str, list[str]]]]:
    """A script with the commands of the page, and a mark before each."""
    lines: list[str] = []
    shown: list[tuple[str, list[str]]] = []
    for block in blocks(page):
        if block.file is not None:
            lines.append(f"mkdir -p {shlex.quote(os.path.dirname(block.file) or '.')}")
            lines.append(f"cat > {shlex.quote(block.file)} <<'END-OF-BLOCK'\n{block.text}END-OF-BLOCK")
        elif block.kind == "console":
            for command, output in exchanges(block.text):
                lines += [f"echo '{MARK}{len(shown)}'", command]
                shown.append((command, output))
    return "\n".join(lines) + "\n", shown


def as_pattern(expected: list[str]) -> re.Pattern[str]:
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r".*?".join(re.escape(part) for part in line.split("…")) + r"[ \t]*\n")
    return re.compile("".join(parts))


SESSIONS = [page for page in PAGES if any(block.kind == "console" for block in blocks(page))]


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.stem)
def test_a_session_of_a_page_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    script, shown = write_script(page)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLEW_", "PYTHON", "XDG_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=work,
        env=kept | {"HOME": str(home), "PATH": path, "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    parts = re.split(rf"^{MARK}\d+\n", done.stdout, flags=re.M)[1:]
    assert len(parts) == len(shown), done.stderr
    for (command, expected), printed in zip(shown, parts, strict=True):
        plain = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        assert as_pattern(expected).fullmatch(plain), f"$ {command}\n{plain}\n--- on the page:\n" + "\n".join(expected)


def test_the_session_test_tells_a_difference() -> None:
    assert as_pattern(["a … c", "…", "end"]).fullmatch("a b c\nx\ny\nend\n")
    assert not as_pattern(["a … c", "end"]).fullmatch("a b c\nx\nend\n")
    assert not as_pattern(["a"]).fullmatch("a\nb\n")


COMMANDS = sorted(
    {
        (page.stem, line.removeprefix("$ ").partition("  #")[0].strip())
        for page in PAGES
        for block in blocks(page)
        if block.kind in ("", "console")
        for line in block.text.splitlines()
        if re.match(r"(?:\$ )?clew [a-z]", line) and not line.endswith("\\")
    }
)


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_every_command_of_the_docs_exists_with_its_options(page: str, line: str) -> None:
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0].partition(" && ")[0].partition(" < ")[0])
    if words[1] == "help":
        words = ["clew", *spell_out(words[1:])]
        assert len(words) > 1
        return
    command, _, _ = build_parser().parse_args(spell_out(words[1:]), print_error=False, exit_on_error=False)
    assert callable(command)


SETTINGS = [
    pytest.param(block.text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate((each for each in blocks(page) if each.kind == "toml"), 1)
    if block.file is None or block.file.endswith("config.toml")
]


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_of_the_docs_can_be_read_and_their_sources_built(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    config = read_config(tmp_path)
    for source in config.sources.values():
        secrets = dict.fromkeys(secret_names(source.options), "a-value")
        assert build_source(source.kind, source.options, secrets=secrets).id


SERVERS = [
    pytest.param(block.text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate((each for each in blocks(page) if '"mcpServers"' in each.text), 1)
    if block.kind == "json"
]


@pytest.mark.parametrize("text", SERVERS)
def test_servers_of_the_docs_can_be_read(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_servers(tmp_path)
