"""Draw docs/images/*.svg from the real output of commands on a terminal.

Usage: pictures.py [--check]   `--check` writes nothing, and fails when a picture is out of date.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
EXAMPLE = ROOT / "examples" / "06_workspace"
TEAM = ROOT / "examples" / "11_team"
WIDTH = 100
CODE = ("code", "add the total fare of a group", "--name", "fares")
QUESTION = "or stop> "
WORKING = "tester runs all tests"
"""The moment of the live view that is drawn."""
CHANGING = (
    (r"\b\d+\.\d s\b", "0.4 s"),
    (r"\bcommit [0-9a-f]{12}", "commit 3f9c1e07a2b4"),
    (r"\blog [0-9a-f]{12}", "log 7d20c8e1f3a9"),
    (r"^[0-9a-f]{8}(?=  )", "8c41e2f7"),
    (r"\b\d\d,\d{3}\b", "15,005"),
)
"""Values that differ from run to run, and what the pictures show instead."""
CONTROL = re.compile(r"(\r|\n|\x1b\[2K|\x1b\[1A|\x1b\[\?\d+[hl])")
"""The controls by which the live view moves on a terminal."""
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""A frame without fonts from outside."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the commands whose output it shows, one below the other."""

    name: str
    title: str
    commands: tuple[tuple[str, ...], ...]


PICTURES = (
    Picture("ask", "A question and its sources", (("ask", "who may refund 300 euros"),)),
    Picture(
        "code",
        "Code: where it is, and what calls it",
        (("locate", "tickets of important passengers"), ("callers", "open_ticket")),
    ),
)


def main() -> None:
    drawn = dict(draw_pictures())
    stale = [path for path, text in drawn.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run make pictures" if stale else 0)
    for path, text in drawn.items():
        path.write_text(text, encoding="utf-8")


def draw_pictures() -> Iterator[tuple[Path, str]]:
    """Each picture with the content that it should have. The same code gives the same content."""
    with tempfile.TemporaryDirectory() as place:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        changed = {"HOME": place, "CLEW_TRUST": f"{place}/trust.json", "TERM": "xterm-256color", "PATH": path}
        environment = {**os.environ, **changed, "XDG_STATE_HOME": f"{place}/state", "CLEW_EMBEDDER": "hash"}
        environment = {key: value for key, value in environment.items() if key not in ("NO_COLOR", "CLEW_FOLDER")}
        yield from draw_answers(Path(place) / "shop", environment)
        yield from draw_team(Path(place) / "ferry", environment)


def draw_answers(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """The pictures of commands that answer at once."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".clew", "__pycache__"))
    environment = {key: value for key, value in environment.items() if key != "CLEW_EMBEDDER"}
    subprocess.run([*_clew(), "index"], cwd=folder, env=environment, capture_output=True, check=True)
    for picture in PICTURES:
        for command in picture.commands:
            run_on_terminal(command, folder, environment)  # what is read for the first time is said only once
        outputs = [run_on_terminal(command, folder, environment) for command in picture.commands]
        yield draw(picture, outputs)


def draw_team(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """The pictures of a team that a script plays: at work, at its end, and what proves it."""
    shutil.copytree(TEAM / "project", folder, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    commit = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "--quiet", "-m", "Fares"]
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "."], commit):
        subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, check=True)
    (folder / ".clew").mkdir()
    run_on_terminal(("team", "status"), folder, environment)
    typed = [*CODE, "--script", str(TEAM / "script.yaml")]
    frames = read_frames(run_on_terminal(typed, folder, environment, {QUESTION: "approve\n"}))
    working = [frame for frame in frames if WORKING in frame]
    _, _, after_approval = working[-1].partition(f"{QUESTION}approve\n")
    yield draw(Picture("team-live", "A team at work", (CODE,)), [f"…\n{after_approval}"])
    yield draw(Picture("team-end", "A plan, the work and its proof", (CODE,)), [frames[-1]])
    proof = Picture("team-proof", "Every task is proven", (("team", "status"), ("why", "done", "total")))
    yield draw(proof, [run_on_terminal(command, folder, environment) for command in proof.commands])


def draw(picture: Picture, outputs: Sequence[str]) -> tuple[Path, str]:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for command, output in zip(picture.commands, outputs, strict=True):
        words = " ".join(f'"{word}"' if " " in word else word for word in command)
        console.print(Text(f"$ clew {words}", style="bold"))
        console.print(Text.from_ansi(settle(output).rstrip()))
        console.print()
    svg = console.export_svg(
        title=picture.title, theme=MONOKAI, code_format=FRAME, unique_id=f"clew-{picture.name}", font_aspect_ratio=0.61
    )
    return FOLDER / f"{picture.name}.svg", svg


def settle(output: str) -> str:
    """The output with a fixed value in place of each one that differs from run to run."""
    for pattern, fixed in CHANGING:
        output = re.sub(pattern, fixed, output, flags=re.MULTILINE)
    return output


def read_frames(output: str) -> list[str]:
    """The contents of the terminal: each time before a view was drawn again, and at the end."""
    frames, lines, row = [], [""], 0
    for part in CONTROL.split(output):
        match part:
            case "\r":
                frames.append("\n".join(lines))
            case "\x1b[2K":
                lines[row] = ""
            case "\x1b[1A":
                row -= 1
            case "\n":
                row += 1
                lines += [""] if row == len(lines) else []
            case _ if not part.startswith("\x1b[?"):
                lines[row] += part
    return [*frames, "\n".join(lines)]


def run_on_terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], answers: Mapping[str, str] | None = None
) -> str:
    """The output of a command on a terminal of a fixed width. Each text of `answers` is typed after its question."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(WIDTH), "LINES": "50"}
    waiting = dict(answers or {})
    with subprocess.Popen(
        [*_clew(), *command], cwd=folder, env={**environment, **size}, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        output = b""
        while True:
            try:
                output += (chunk := os.read(ours, 65_536))
            except OSError:  # the command closed its side
                break
            if not chunk:
                break
            for question in [each for each in waiting if output.endswith(each.encode())]:
                os.write(ours, waiting.pop(question).encode())
    os.close(ours)
    return output.decode("utf-8", errors="replace").replace("\r\n", "\n")


def _clew() -> list[str]:
    return [sys.executable, "-m", "clew"]


if __name__ == "__main__":
    main()
