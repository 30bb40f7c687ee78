"""Commands for foreign MCP servers: import, ls, approve, rm."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from clew.cli.catalog import open_workspace_here
from clew.cli.options import HERE, Here, Json
from clew.cli.output import GREEN, count, is_terminal, note, print_json, print_rows, say
from clew.cli.progress import progress
from clew.cli.project import prepare_folder
from clew.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from clew.catalog.servers.importing import Imported, ImportReport


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A server as a list shows it. `changed` are tools that wait for approval."""

    id: str
    transport: str
    target: str
    enabled: bool
    known: bool
    tools: int
    resources: int
    prompts: int
    changed: list[str]


async def import_(
    *files: Annotated[Path, Parameter(help="Settings of other clients. Without any, the usual places are looked at.")],
    keep_secrets: Annotated[
        bool, Parameter(help="Copy tokens and passwords too, instead of naming variables.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Show what would be taken over; write nothing.")] = False,
    no_look: Annotated[bool, Parameter(help="Start none now; they are looked at by `clew up` and `clew mcp`.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Take over the MCP servers of other clients.

    Reads .mcp.json, and the settings of Claude, Cursor, VS Code, Zed, Gemini, Codex and goose. What is found is
    written to mcp.json in the folder of the trail; what looks like a secret stays where it is, and is named by a
    variable.

        clew mcp import --dry-run
        clew mcp import .mcp.json
    """
    # reading the settings of eight clients is for this command only
    from clew.catalog.servers.config import read_servers, write_servers
    from clew.catalog.servers.importing import import_servers, known_files
    from clew.catalog.workspace import own_names

    config = here.config()
    present = read_servers(config.folder)
    for file in files:
        if not file.exists():
            raise NotFound("file", str(file))
    paths = list(files) or known_files(config.folder.absolute().parent, Path.home())
    report = _without_names(import_servers(paths, keep_secrets=keep_secrets, present=present), own_names(config))
    problems: dict[str, str] = {}
    if report.found and not dry_run:
        prepare_folder(config.folder)
        write_servers(config.folder, [*present, *report.servers])
        if not no_look:
            problems = await _meet(here)
    if json:
        found = [_described(one) for one in report.found]
        print_json({"found": found, "skipped": report.skipped, "written": not dry_run, "problems": problems})
        return 1 if problems else 0
    for one in report.found:
        say(f"+ {one.server.id}  {one.server.transport}  {one.server.target}  from {one.path}", GREEN)
        for name in one.to_set:
            note(f"  set {name} before you use it", dim=True)
    for left in report.skipped:
        note(f"  left out {left.name or left.path}: {left.reason}", dim=True)
    for id, problem in problems.items():
        note(f"! {id}: {problem}")
    if not report.found:
        note("No new servers were found.")
    elif dry_run:
        note(f"Nothing was written. Without --dry-run these go to {config.folder / 'mcp.json'}")
    return 1 if problems else 0


def _described(one: Imported) -> dict[str, Any]:
    """What may be shown: arguments, environment and headers may hold secrets."""
    server = one.server
    about = {"id": server.id, "transport": server.transport, "target": server.target}
    return {**about, "path": one.path, "name": one.name, "to_set": one.to_set}


def _without_names(report: ImportReport, taken: Collection[str]) -> ImportReport:
    """What can be taken over: two domains cannot have one name."""
    from clew.catalog.servers.importing import ImportReport, LeftOut

    refused = [one for one in report.found if one.server.id in taken]
    left_out = [LeftOut(path=one.path, name=one.name, reason="has the name of a domain; rename it") for one in refused]
    found = [one for one in report.found if one not in refused]
    return ImportReport(found=found, skipped=[*report.skipped, *left_out])


async def _meet(here: Here) -> dict[str, str]:
    async with open_workspace_here(here) as (_, workspace):
        with progress("Looking at the new servers"):
            return await workspace.meet_servers()


async def ls(*, json: Json = False, here: Here = HERE) -> None:
    """List the foreign MCP servers and what they offer.

    No server is started: what is shown is what was seen last. A changed tool waits for approval.

        clew mcp ls
        clew mcp ls --json
    """
    async with open_workspace_here(here) as (_, workspace):
        registry = workspace.servers
        found = [
            ServerInfo(
                id=each.id,
                transport=each.transport,
                target=each.target,
                enabled=each.enabled,
                known=registry.about(each.id) is not None,
                tools=len(registry.entries(each.id, "tool")),
                resources=len(registry.entries(each.id, "resource")),
                prompts=len(registry.entries(each.id, "prompt")),
                changed=[one.name for one in registry.entries(each.id, "tool") if one.state == "changed"],
            )
            for each in registry.servers.list()
        ]
    if json:
        print_json(found)
        return
    rows = [(one.id, one.transport, one.target, str(one.tools), _state(one)) for one in found]
    print_rows(("server", "transport", "target", "tools", "state"), rows, main=4)
    if not found and is_terminal():
        note("No servers. Take over those of your editor: clew mcp import")


async def approve(
    server: Annotated[str, Parameter(help="The server.")],
    /,
    *tools: Annotated[str, Parameter(help="Tools of it; all that changed when none is named.")],
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Accept tools of a foreign server as it describes them now.

    A tool whose description or parameters changed is refused until you have looked at it: `clew mcp ls --json` names
    them, `clew get SERVER://tools/guide` shows them.

        clew mcp approve github
    """
    async with open_workspace_here(here) as (_, workspace):
        registry = workspace.servers
        waiting = [one.name for one in registry.entries(server, "tool") if one.state == "changed"]
        approved = [(await registry.approve(server, tool)).name for tool in tools or waiting]
    if json:
        print_json({"server": server, "approved": approved})
        return
    for name in approved:
        say(f"approved {name}")
    note(f"{count(len(approved), 'tool')} of {server} approved." if approved else f"No tool of {server} has changed.")


async def rm(
    *servers: Annotated[str, Parameter(help="The servers.")],
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Forget foreign servers and what they offered.

    Takes them out of mcp.json and off the trail; the settings of other clients stay as they are.

        clew mcp rm github
    """
    from clew.catalog.servers.config import write_servers

    if not servers:
        raise InvalidInput("SERVERS", "are missing", hint="`clew mcp ls` lists them")
    named = dict.fromkeys(servers)
    async with open_workspace_here(here) as (app, workspace):
        for server in named:
            workspace.servers.config(server)
        for server in named:
            await workspace.servers.servers.remove(server)
        write_servers(app.config.folder, list(workspace.servers.servers.list()))
    if json:
        print_json({"removed": list(named)})
    else:
        note(f"Removed {', '.join(named)}.")


def _state(server: ServerInfo) -> str:
    if not server.enabled:
        return "off"
    if server.changed:
        return f"{count(len(server.changed), 'tool')} changed: clew mcp approve {server.id}"
    return "ready" if server.known else "not looked at yet"
