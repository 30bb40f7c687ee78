"""The coding agents that `clew connect` knows: where each keeps its settings, and in which format."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from clew.cli.servers.client_formats import (
    JsonSettings,
    ServerLaunch,
    SettingsFormat,
    TomlSettings,
    YamlSettings,
    opencode_entry,
    plain_entry,
    stdio_entry,
    zed_entry,
)

ENTRY = "clew"
WORKSPACE = "${workspaceFolder}"
"""The variable for the project's folder in settings of Cursor."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """One coding agent.

    `place` is below the project, or below the home folder if the client `is_global`; `places` has other places by
    platform. A client that does not start servers in the project's folder gets the folder as `project_variable`.
    `source` is the page that documents the format.
    """

    name: str
    title: str
    place: str
    format: SettingsFormat
    source: str
    is_global: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    project_variable: str = ""

    def path(self, project: Path, home: Path) -> Path:
        if not self.is_global:
            return project / self.place
        place = self.places.get(sys.platform, self.place)
        roaming, inside = os.environ.get("APPDATA"), place.removeprefix("AppData/Roaming/")
        return Path(roaming) / inside if roaming and inside != place else home / place

    def entry_name(self, entries: Mapping[str, ServerLaunch | None], folder: Path) -> str:
        """The name of this folder's entry.

        A project's own settings hold one entry of Clew. Settings that all projects share hold one for each folder, so
        that connecting a second project does not change the first.
        """
        if not self.is_global:
            return ENTRY
        for name, launch in entries.items():
            if launch is not None and folder_of(launch.args) == str(folder):
                return name
        project = re.sub(r"[^a-z0-9]+", "-", folder.parent.name.lower()).strip("-")
        name = f"{ENTRY}-{project}" if project else ENTRY
        if name not in entries:
            return name
        return f"{name}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:6]}"


def folder_of(args: Iterable[str]) -> str | None:
    """The value of `--folder` among the arguments of a server."""
    return next((value for option, value in pairwise(args) if option == "--folder"), None)


CLIENTS: Sequence[ClientFile] = (
    ClientFile(
        "claude-code",
        "Claude Code",
        ".mcp.json",
        JsonSettings("mcpServers", stdio_entry),
        "https://code.claude.com/docs/en/mcp",
    ),
    ClientFile(
        "claude-desktop",
        "Claude Desktop",
        ".config/Claude/claude_desktop_config.json",
        JsonSettings("mcpServers", plain_entry),
        "https://modelcontextprotocol.io/quickstart/user",
        is_global=True,
        places={
            "darwin": "Library/Application Support/Claude/claude_desktop_config.json",
            "win32": "AppData/Roaming/Claude/claude_desktop_config.json",
        },
    ),
    ClientFile(
        "cursor",
        "Cursor",
        ".cursor/mcp.json",
        JsonSettings("mcpServers", plain_entry),
        "https://cursor.com/docs/context/mcp",
        project_variable=WORKSPACE,
    ),
    ClientFile(
        "vscode",
        "VS Code",
        ".vscode/mcp.json",
        JsonSettings("servers", stdio_entry),
        "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    ),
    ClientFile(
        "zed",
        "Zed",
        ".zed/settings.json",
        JsonSettings("context_servers", zed_entry),
        "https://zed.dev/docs/ai/mcp",
    ),
    ClientFile(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        JsonSettings("mcpServers", plain_entry),
        "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    ),
    ClientFile(
        "codex",
        "Codex",
        ".codex/config.toml",
        TomlSettings("mcp_servers"),
        "https://developers.openai.com/codex/mcp",
    ),
    ClientFile(
        "opencode",
        "OpenCode",
        "opencode.json",
        JsonSettings("mcp", opencode_entry),
        "https://opencode.ai/docs/mcp-servers",
    ),
    ClientFile(
        "jetbrains",
        "JetBrains Junie",
        ".junie/mcp/mcp.json",
        JsonSettings("mcpServers", plain_entry),
        "https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html",
    ),
    ClientFile(
        "goose",
        "goose",
        ".config/goose/config.yaml",
        YamlSettings("extensions"),
        "https://block.github.io/goose/docs/guides/config-files",
        is_global=True,
        places={"win32": "AppData/Roaming/Block/goose/config/config.yaml"},
    ),
    ClientFile(
        "windsurf",
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        JsonSettings("mcpServers", plain_entry),
        "https://docs.windsurf.com/windsurf/cascade/mcp",
        is_global=True,
    ),
    ClientFile(
        "cline",
        "Cline",
        ".cline/data/settings/cline_mcp_settings.json",
        JsonSettings("mcpServers", plain_entry),
        "https://docs.cline.bot/cli/configuration",
        is_global=True,
    ),
)
