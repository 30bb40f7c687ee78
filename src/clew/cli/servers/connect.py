"""`clew connect`: add this folder's MCP server to the settings of a coding agent, remove it, or try it."""

from __future__ import annotations

import asyncio
import difflib
import os
import shlex
import shutil
import stat
import sys
import sysconfig
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here, Json
from clew.cli.servers.client_formats import ServerLaunch
from clew.cli.servers.clients import CLIENTS, ClientFile
from clew.cli.servers.connection_log import (
    ConnectionRecord,
    find_connection,
    forget_connection,
    read_connections,
    record_connection,
    replay_without,
)
from clew.cli.terminal.output import CYAN, GREEN, RED, note, print_json, say
from clew.config import FOLDER, Config
from clew.errors import ConfigError, InvalidInput, ReadOnly
from clew.files import inside, replace_file

MAX_SETTINGS = 4_000_000
"""Bytes; no agent has settings that are longer."""

Client = Literal[
    "claude-code",
    "claude-desktop",
    "cursor",
    "vscode",
    "zed",
    "gemini",
    "codex",
    "opencode",
    "jetbrains",
    "goose",
    "windsurf",
    "cline",
]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings file of a client, and the name of this folder's entry in it."""

    client: ClientFile
    path: Path
    content: bytes | None
    """None if there is no such file."""
    text: str
    entry: str

    @property
    def launch(self) -> ServerLaunch | None:
        return self.client.format.entries(self.text).get(self.entry)

    def encode(self, text: str) -> bytes:
        """The new content, with the line ends that the file has."""
        is_windows = self.content is not None and _plain_ends(self.content) is not None
        return text.replace("\n", "\r\n" if is_windows else "\n").encode()


def connect(
    client: Annotated[Client, Parameter(help="The coding agent.")],
    /,
    *,
    remove: Annotated[bool, Parameter(help="Remove the entry.", negative="")] = False,
    check: Annotated[
        bool, Parameter(help="Start the server as the agent does, and ask it a question.", negative="")
    ] = (False),
    dry_run: Annotated[bool, Parameter(help="Show what would change; write nothing.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Add the MCP server of this folder to a coding agent.

    Shows the change to the agent's settings as a diff, and writes it. Other entries and comments stay as they are. If
    a file cannot be changed without loss, Clew leaves it alone and shows the entry. Running it again changes nothing.

        clew connect claude-code
        clew connect claude-code --check
        clew connect zed --remove
    """
    if remove and check:
        raise InvalidInput("--check", "cannot be used with --remove")
    config = here.config()
    if not remove:
        check_project(config)
    chosen = next(each for each in CLIENTS if each.name == client)
    settings = _read_settings(chosen, config)
    if check:
        _check(settings, config, json=json)
        return
    after = _without(settings) if remove else _with(settings, _launch(here, config, chosen))
    is_changed = after != settings.content
    if is_changed and not dry_run:
        _apply(settings, after, config, is_removal=remove)
    if json:
        content = None if after is None else after.decode()
        written = is_changed and not dry_run
        fields = {"client": client, "file": str(settings.path), "entry": settings.entry}
        print_json({**fields, "changed": is_changed, "written": written, "content": content})
        return
    _show_diff(settings.text, "" if after is None else after.decode().replace("\r\n", "\n"), settings.path)
    _report(settings, is_changed=is_changed, dry_run=dry_run, is_removal=remove)


def remove_connections(folder: Path) -> None:
    """Remove the entries of a folder from the settings of all clients.

    Raises ReadOnly, and ConfigError for files that cannot be changed, after the others were.
    """
    errors = []
    for connection in read_connections():
        chosen = next((each for each in CLIENTS if each.name == connection.client), None)
        if connection.folder != str(folder.absolute()) or chosen is None:
            continue
        try:
            settings = _read_file(chosen, Path(connection.file), connection.entry)
            after = _without(settings)
        except ConfigError as error:
            errors.append(error.message)
            continue
        _withdraw(settings, after)
    if errors:
        raise ConfigError("; ".join(errors))


def _launch(here: Here, config: Config, client: ClientFile) -> ServerLaunch:
    """The command with which the client starts the server.

    Settings of a project are committed and shared, so they name the program `clew` and no path of this machine, unless
    the folder is an unusual one. Settings of the user name the program by its path and the folder.
    """
    program, folder = Path(sys.argv[0]).absolute(), config.folder.absolute()
    command = str(program) if client.is_global and program.stem == "clew" else "clew"
    if folder.name == FOLDER and not client.is_global:
        place = f"{client.project_variable}/{FOLDER}" if client.project_variable else ""
    else:
        place = str(folder)
    given = {"--folder": place, "--owner": here.owner, "--scopes": here.scopes}
    return ServerLaunch(command, ("mcp", *(word for pair in given.items() if pair[1] for word in map(str, pair))))


def _read_settings(client: ClientFile, config: Config) -> Settings:
    project = config.folder.absolute().parent
    path = client.path(project, Path.home())
    settings = _read_file(client, path, "")
    if not client.is_global:
        inside(path, project)
    try:
        entries = client.format.entries(settings.text)
    except ConfigError:
        entries = {}  # `_with` and `_without` say what is wrong with the file
    name = client.entry_name(entries, config.folder.absolute())
    return Settings(client, path, settings.content, settings.text, name)


def _read_file(client: ClientFile, path: Path, entry: str) -> Settings:
    content = _read(path)
    try:
        text = "" if content is None else (_plain_ends(content) or content).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None
    return Settings(client, path, content, text, entry)


def _with(settings: Settings, launch: ServerLaunch) -> bytes:
    """The content with the entry. Raises ConfigError after showing the entry, if it cannot be added."""
    add = settings.client.format.add
    try:
        after = add(settings.text, settings.entry, launch)
    except ConfigError as error:
        say(add("", settings.entry, launch).rstrip())
        raise ConfigError(f"{settings.path}: {error.message}") from None
    return settings.encode(after) if after != settings.text or settings.content is None else settings.content


def _without(settings: Settings) -> bytes | None:
    """The content without the entry; None if the file was made for it. Raises ConfigError."""
    if settings.content is None:
        return None
    made = find_connection(settings.path, settings.entry)
    before = made.undo(settings.content) if made is not None else None
    try:
        if made is not None and before is not None and not _has_entry(settings, before):
            return None if made.new_folders is not None else before
        if settings.entry not in settings.client.format.entries(settings.text):
            return settings.content
        return settings.encode(settings.client.format.remove(settings.text, settings.entry))
    except ConfigError as error:
        reason = error.message.replace("add the entry", "remove the entry").replace("change the", "remove the")
        raise ConfigError(f"{settings.path}: {reason}") from None


def _has_entry(settings: Settings, content: bytes) -> bool:
    """Whether the earlier content already had an entry of this name."""
    return settings.entry in settings.client.format.entries((_plain_ends(content) or content).decode())


def _apply(settings: Settings, after: bytes | None, config: Config, *, is_removal: bool) -> None:
    if is_removal:
        _withdraw(settings, after)
        return
    assert after is not None
    before, new_folders = settings.content, None if settings.content is not None else _missing_folders(settings.path)
    made = find_connection(settings.path, settings.entry)
    if made is not None and before is not None and (first := made.undo(before)) is not None:
        before, new_folders = first, made.new_folders  # an entry that changes again is undone to the first content
    _write(settings.path, after)
    connection = ConnectionRecord.between(
        before or b"",
        after,
        client=settings.client.name,
        file=settings.path,
        entry=settings.entry,
        folder=config.folder.absolute(),
        new_folders=new_folders,
    )
    record_connection(connection)


def _withdraw(settings: Settings, after: bytes | None) -> None:
    """Write the content without the entry and forget the connection. Later connections in the same file are rewritten
    so that they can still be undone."""
    gone = find_connection(settings.path, settings.entry)
    later = []
    if gone is not None and settings.content is not None:
        later = replay_without(gone, settings.content, partial(_removed, settings))
    if after != settings.content:
        _undo(settings, after)
    forget_connection(settings.path, settings.entry)
    for each in later:
        record_connection(each)


def _removed(settings: Settings, content: bytes) -> bytes:
    """Another content of the settings without the entry."""
    text = (_plain_ends(content) or content).decode()
    return settings.encode(settings.client.format.remove(text, settings.entry))


def _undo(settings: Settings, after: bytes | None) -> None:
    """Write the content without the entry, or remove the file and the folders that were made for it."""
    if after is not None:
        _write(settings.path, after)
        return
    made = find_connection(settings.path, settings.entry)
    try:
        settings.path.unlink(missing_ok=True)
        for folder in list(settings.path.parents)[: (made.new_folders or 0) if made is not None else 0]:
            folder.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        if settings.path.exists():
            raise ReadOnly(f"{settings.path} cannot be removed: {error.strerror}") from None


def _missing_folders(path: Path) -> int:
    return sum(not folder.exists() for folder in path.parents)


def _check(settings: Settings, config: Config, *, json: bool) -> None:
    # the SDK of MCP takes half a second to import
    from clew.cli.servers.connection_check import check_connection

    try:
        launch = settings.launch
    except ConfigError as error:
        raise ConfigError(f"{settings.path}: {error.message}") from None
    add = f"clew connect {settings.client.name}"
    if launch is None:
        raise ConfigError(f"{settings.client.title} is not connected to this folder: run `{add}`")
    if Path(launch.command).stem != "clew" or launch.args[:1] != ("mcp",) or not _is_own(settings, launch):
        raise ConfigError(f"{settings.path}: the entry {settings.entry} does not start Clew: run `{add}` first")
    project = config.folder.absolute().parent
    found = asyncio.run(check_connection(settings.client, launch, project))
    if json:
        print_json(
            {"client": settings.client.name, "file": str(settings.path), "entry": settings.entry, **found.fields}
        )
        return
    say(f"{settings.client.title} can start the server: {found.server}, {found.tools} tools.")
    say(f"Question: {found.question}")
    say(f"Answer:   {found.answer}")


def _is_own(settings: Settings, launch: ServerLaunch) -> bool:
    """Whether the entry names the program without a path, or was written by this user's `clew connect`. The check is
    needed because a cloned folder can contain settings that name any program by its path.
    """
    return launch.command == "clew" or find_connection(settings.path, settings.entry) is not None


def _report(settings: Settings, *, is_changed: bool, dry_run: bool, is_removal: bool) -> None:
    title, path = settings.client.title, settings.path
    if not is_changed:
        note(f"{title} is not connected: {path}" if is_removal else f"{title} is already connected: {path}")
    elif dry_run:
        note(f"Nothing was written. Without --dry-run this changes {path}")
    elif is_removal:
        note(f"Removed from {path}. Restart {title}, or reload its MCP servers.")
    else:
        note(f"Written to {path}. Restart {title}, or reload its MCP servers.")
    if not is_removal and not settings.client.is_global and find_program() is None:
        note(f"{title} does not find `clew` outside of this virtual environment. Put it on your PATH:")
        note(f"  {link_command()}")


def find_program() -> str | None:
    """The program that a client finds, which does not run in this virtual environment."""
    return shutil.which("clew", path=client_path())


def client_path() -> str:
    """PATH without the folder of the active virtual environment."""
    own = os.path.dirname(sys.executable) if sys.prefix != sys.base_prefix else None
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder and os.path.normpath(folder) != own)


def link_command() -> str:
    """The command of a shell that links the program of this environment into a folder that clients search."""
    started = Path(sys.argv[0]).absolute()
    program = started if started.stem == "clew" else Path(sysconfig.get_path("scripts"), "clew")
    folders = [Path(each) for each in client_path().split(os.pathsep)]
    usual = (Path.home() / ".local" / "bin", Path.home() / "bin", Path("/usr/local/bin"))
    ordered = sorted(folders, key=lambda each: usual.index(each) if each in usual else len(usual))
    chosen = next((each for each in ordered if os.access(each, os.W_OK)), None)
    command = ["ln", "-sf", str(program), str(chosen or "/usr/local/bin")]
    return shlex.join(command if chosen is not None else ["sudo", *command])


def _read(path: Path) -> bytes | None:
    """The content of a file, None if there is none. Raises ConfigError if it is not a regular file of sensible size."""
    try:
        # without blocking: a named pipe would wait for a writer
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path} is not a regular file")
            content = file.read(MAX_SETTINGS + 1)
    except FileNotFoundError:
        return None
    if len(content) > MAX_SETTINGS:
        raise ConfigError(f"{path} is over the limit of {MAX_SETTINGS:,} bytes")
    return content


def _plain_ends(content: bytes) -> bytes | None:
    """A text whose lines all end as on Windows, with plain ends; None for any other."""
    plain = content.replace(b"\r\n", b"\n")
    return plain if plain != content and plain.replace(b"\n", b"\r\n") == content else None


def _write(path: Path, content: bytes) -> None:
    """Replace the file as a whole, with the permissions that it had. Raises ReadOnly."""
    real = path.resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o644
        if not mode & 0o222:
            raise ReadOnly(f"{path} cannot be written: it is read-only")
        replace_file(real, content, mode)
        real.chmod(mode)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error


def _show_diff(before: str, after: str, path: Path) -> None:
    styles = {"+": GREEN, "-": RED, "@": CYAN}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    for line in lines:
        say(line, styles.get(line[:1], ""))
