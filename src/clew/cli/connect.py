"""`clew connect`: tell a coding agent about this folder's MCP server."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from clew.cli.clients import CLIENTS, ClientFile, Launch
from clew.cli.options import HERE, Here, Json
from clew.cli.output import CYAN, GREEN, RED, note, print_json, say
from clew.config import Config
from clew.errors import ConfigError, ReadOnly

Client = Literal["claude-code", "cursor", "zed", "vscode", "gemini", "goose", "codex"]


def connect(
    client: Annotated[Client, Parameter(help="The coding agent.")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Show what would change; write nothing.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Tell a coding agent about the MCP server of this folder.

    Shows the change to the agent's settings as a diff, and writes it. Other entries stay as they are; a file that
    cannot be changed without loss is left alone, and the entry is shown instead. Running it again changes nothing.

        clew connect claude-code
        clew connect zed --dry-run
    """
    config = here.config()
    chosen = next(each for each in CLIENTS if each.name == client)
    path = chosen.path(config.folder.absolute().parent, Path.home())
    launch = find_launch(config, chosen)
    before = _read(path)
    try:
        after = chosen.add(before, launch)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}:\n{chosen.add('', launch)}") from None
    is_changed = after != before
    if is_changed and not dry_run:
        _write(path, after)
    if json:
        written = is_changed and not dry_run
        print_json({"client": client, "file": str(path), "changed": is_changed, "written": written, "content": after})
        return
    _show_diff(before, after, path)
    if not is_changed:
        note(f"{chosen.title} knows about Clew already: {path}")
    elif dry_run:
        note(f"Nothing was written. Without --dry-run this goes to {path}")
    else:
        note(f"Written to {path}. Restart {chosen.title}, or reload its MCP servers.")


def find_launch(config: Config, client: ClientFile) -> Launch:
    """How the agent starts the server: by name where the program is on the path. An agent that is not bound to a
    project is told the folder."""
    on_path = shutil.which("clew")
    program = Path(sys.argv[0]).absolute()
    command = "clew" if on_path or program.name != "clew" else str(program)
    folder = config.folder.absolute()
    is_usual = folder.name == ".clew" and not client.is_global
    return Launch(command, ("mcp",) if is_usual else ("mcp", "--folder", str(folder)))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None


def _write(path: Path, text: str) -> None:
    """Whole or not at all, with the permissions that the file had."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        real = path.resolve()
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o644
        draft = real.with_name(f".{real.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(mode)
        draft.replace(real)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error


def _show_diff(before: str, after: str, path: Path) -> None:
    styles = {"+": GREEN, "-": RED, "@": CYAN}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    for line in lines:
        say(line, styles.get(line[:1], ""))
