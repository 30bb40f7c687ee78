"""`clew connect`: tell a coding agent about this folder's MCP server."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json
from clew.cli.servers.clients import CLIENTS, ClientFile, ServerLaunch
from clew.cli.terminal.output import CYAN, GREEN, RED, note, print_json, say
from clew.config import FOLDER, Config
from clew.errors import ConfigError, ReadOnly
from clew.files import inside, replace_file

MAX_SETTINGS = 4_000_000
"""Bytes; no agent has settings that are longer."""

Client = Literal["claude-code", "cursor", "zed", "vscode", "gemini", "goose", "codex"]


def connect(
    client: Annotated[Client, Parameter(help="The coding agent.")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Show what would change; write nothing.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Add the MCP server of this folder to a coding agent.

    Shows the change to the agent's settings as a diff, and writes it. Other entries and comments stay as they are; a
    file that cannot be changed without loss is left alone, and the entry is shown instead. Running it again changes
    nothing.

        clew connect claude-code
        clew connect zed --dry-run
    """
    config = here.config()
    chosen = next(each for each in CLIENTS if each.name == client)
    path = chosen.path(config.folder.absolute().parent, Path.home())
    launch = find_launch(here, config, chosen)
    before = _read(path)
    if not chosen.is_global:
        inside(path, config.folder.absolute().parent)
    try:
        after = chosen.add(before, launch)
    except ConfigError as error:
        say(chosen.add("", launch).rstrip())
        raise ConfigError(f"{path}: {error.message}") from None
    is_changed = after != before
    if is_changed and not dry_run:
        _write(path, after)
    if json:
        written = is_changed and not dry_run
        print_json({"client": client, "file": str(path), "changed": is_changed, "written": written, "content": after})
        return
    _show_diff(before, after, path)
    if not is_changed:
        note(f"{chosen.title} is already connected: {path}")
    elif dry_run:
        note(f"Nothing was written. Without --dry-run this goes to {path}")
    else:
        note(f"Written to {path}. Restart {chosen.title}, or reload its MCP servers.")


def find_launch(here: Here, config: Config, client: ClientFile) -> ServerLaunch:
    """How the agent starts the server: by name where the program is on everybody's path, which that of a virtual
    environment is not. An agent that is not bound to a project is told the folder; owner and scopes are those of this
    command."""
    program = Path(sys.argv[0]).absolute()
    is_everywhere = shutil.which("clew") is not None and sys.prefix == sys.base_prefix
    command = "clew" if is_everywhere or program.stem != "clew" else str(program)
    folder = config.folder.absolute()
    is_usual = folder.name == FOLDER and not client.is_global
    given = {"--folder": "" if is_usual else str(folder), "--owner": here.owner, "--scopes": here.scopes}
    options = (word for option, value in given.items() if value for word in (option, value))
    return ServerLaunch(command, ("mcp", *options))


def _read(path: Path) -> str:
    """The text of a file, "" when there is none. Raises ConfigError for what is no file of a sensible size."""
    try:
        # Not waiting: a named pipe would make us wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path} is not a regular file")
            content = file.read(MAX_SETTINGS + 1)
        if len(content) > MAX_SETTINGS:
            raise ConfigError(f"{path} is over the limit of {MAX_SETTINGS:,} bytes")
        return (_plain_ends(content) or content).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None


def _plain_ends(content: bytes) -> bytes | None:
    """A text whose lines all end as on Windows, with plain ends; None for any other, which stays as it is."""
    plain = content.replace(b"\r\n", b"\n")
    return plain if plain != content and plain.replace(b"\n", b"\r\n") == content else None


def _write(path: Path, text: str) -> None:
    """Whole or not at all, with the permissions that the file had."""
    real = path.resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o644
        if not mode & 0o222:
            raise ReadOnly(f"{path} cannot be written: it is read-only")
        newline = "\r\n" if real.exists() and _plain_ends(real.read_bytes()) is not None else "\n"
        replace_file(real, text.replace("\n", newline).encode(), mode)
        real.chmod(mode)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error


def _show_diff(before: str, after: str, path: Path) -> None:
    styles = {"+": GREEN, "-": RED, "@": CYAN}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    for line in lines:
        say(line, styles.get(line[:1], ""))
