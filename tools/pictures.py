"""Draw docs/images/*.svg from the real output of commands on a terminal.

Usage: pictures.py [--check]   `--check` writes nothing, and fails when a picture is out of date.
"""

from __future__ import annotations

import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
EXAMPLE = ROOT / "examples" / "06_workspace"
WIDTH = 100
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
        folder = Path(place) / "shop"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".clew", "__pycache__"))
        environment = {**os.environ, "HOME": place, "CLEW_TRUST": f"{place}/trust.json", "TERM": "xterm-256color"}
        environment = {key: value for key, value in environment.items() if key not in ("NO_COLOR", "CLEW_FOLDER")}
        subprocess.run([*_clew(), "index"], cwd=folder, env=environment, capture_output=True, check=True)
        for picture in PICTURES:
            for command in picture.commands:
                run_on_terminal(command, folder, environment)  # what is read for the first time is said only once
            yield FOLDER / f"{picture.name}.svg", draw(picture, folder, environment)


def draw(picture: Picture, folder: Path, environment: Mapping[str, str]) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for command in picture.commands:
        words = " ".join(f'"{word}"' if " " in word else word for word in command)
        console.print(Text(f"$ clew {words}", style="bold"))
        console.print(Text.from_ansi(run_on_terminal(command, folder, environment).rstrip()))
        console.print()
    return console.export_svg(
        title=picture.title, theme=MONOKAI, code_format=FRAME, unique_id=f"clew-{picture.name}", font_aspect_ratio=0.61
    )


def run_on_terminal(command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> str:
    """The output of a command on a terminal of a fixed width."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(WIDTH), "LINES": "50"}
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
    os.close(ours)
    return output.decode("utf-8", errors="replace").replace("\r\n", "\n")


def _clew() -> list[str]:
    return [sys.executable, "-m", "clew"]


if __name__ == "__main__":
    main()
