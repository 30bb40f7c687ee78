"""Changes mcp.json entry by entry, and leaves all other text unchanged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from clew.catalog.servers.config import FILE, McpServerConfig, read_servers, written
from clew.cli.project import check_place
from clew.errors import ConfigError, ReadOnly
from clew.files import replace_file
from clew.jsonc import BY_HAND, read_object, remove_entry, set_entry

KEY = "mcpServers"


def add_servers(folder: Path, servers: Sequence[McpServerConfig]) -> None:
    """Write new entries below the existing ones. Raises ConfigError, ReadOnly."""
    text = _read(folder / FILE)
    try:
        for server in servers:
            text = set_entry(text, KEY, server.id, written(server))
    except ConfigError as error:
        raise ConfigError(f"{folder / FILE}: {error.message}") from None
    _write(folder / FILE, text)


def remove_servers(folder: Path, ids: Collection[str]) -> None:
    """Remove the entries of these servers, if they exist. Raises ConfigError, ReadOnly."""
    before = text = _read(folder / FILE)
    try:
        for id, key in _keys(folder, text).items():
            text = remove_entry(text, KEY, key) if id in ids else text
    except ConfigError as error:
        raise ConfigError(f"{folder / FILE}: {error.message.replace(BY_HAND, 'remove it by hand')}") from None
    if text != before:
        _write(folder / FILE, text)


def _keys(folder: Path, text: str) -> dict[str, str]:
    """The key in the file of each server id, in file order."""
    ids = [server.id for server in read_servers(folder)]
    return dict(zip(ids, read_object(text).get(KEY, {}), strict=True))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _write(path: Path, text: str) -> None:
    """Write the file atomically, readable by its owner only. Raises ReadOnly if it is outside of its project or cannot
    be written."""
    real = check_place(path.parent, path)
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        replace_file(real, text.encode(), 0o600)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from None
