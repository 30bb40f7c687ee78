"""Commands that add foreign MCP servers: import, add. A user who names a server, or the file that defines it, agrees to
it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from clew.cli.arguments.argument_separator import words_before_dashes
from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here, Json
from clew.cli.project import prepare_folder
from clew.cli.terminal.output import GREEN, agrees, can_ask, count, note, print_json, say
from clew.cli.terminal.progress import progress
from clew.cli.workspace import open_workspace_here
from clew.config import Config
from clew.errors import AlreadyExists, ClewError, InvalidInput, ServerError

if TYPE_CHECKING:
    from clew.catalog.servers.config import McpServerConfig
    from clew.catalog.servers.config_import import Imported, ServerImportReport
    from clew.catalog.workspace.workspace import Workspace

NOT_NAMED = "is brought by a file of this folder. Name the file, or say --yes"
NOT_AGREED = "you did not agree to it"

NoLook = Annotated[bool, Parameter(help="Start no server now; `clew up` and `clew mcp` will start them.")]


async def import_(
    *files: Annotated[Path, Parameter(help="Settings of other clients. Without any, the usual places are looked at.")],
    keep_secrets: Annotated[
        bool, Parameter(help="Copy tokens and passwords too, instead of naming variables.")
    ] = False,
    yes: Annotated[bool, Parameter(help="Add the servers of this folder's files without being asked.")] = False,
    dry_run: Annotated[bool, Parameter(help="Show what would be taken over; write nothing.")] = False,
    no_look: NoLook = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Import the MCP servers of other clients.

    Reads the settings that Claude, Cursor, VS Code, Zed, Gemini, Codex and goose keep for you, and those in this folder
    (.mcp.json and its like). Somebody else may have written those of this folder. So Clew shows the commands and asks
    you first, unless you name the file or pass --yes. The servers found are written to mcp.json in the folder of the
    trail. Values that look like secrets are not copied; a variable takes their place. The exit code is 1 if a named
    file cannot be read, even if others were read, or if a server cannot be started.

        clew mcp import --dry-run
        clew mcp import .mcp.json
    """
    # reading the settings of eight clients is for this command only
    from clew.catalog.consent.consent import project_of
    from clew.catalog.servers.config import servers_of
    from clew.catalog.servers.config_import import import_servers, project_files, user_files
    from clew.catalog.workspace.workspace import own_names

    config = here.config()
    check_project(config)
    present = servers_of(config)
    mine = user_files(Path.home())
    brought = [path for path in project_files(project_of(config)) if path not in mine]
    paths = list(files) or [path for path in (*mine, *brought) if path.exists()]
    report = _without_names(import_servers(paths, keep_secrets=keep_secrets, present=present), own_names(config))
    if not files and not yes and not dry_run:
        report = _agreed(report, {str(path) for path in brought}, project_of(config), can_be_asked=not json)
    problems: dict[str, str] = {}
    if report.found and not dry_run:
        problems = await _take(report.servers, config, here, look=not no_look)
    if json:
        found = [_described(one) for one in report.found]
        print_json({"found": found, "skipped": report.skipped, "written": not dry_run, "problems": problems})
    else:
        _print_import(report, problems)
        if report.found and dry_run:
            note(f"Nothing was written. Without --dry-run these go to {config.folder / 'mcp.json'}")
    # an unreadable file in a usual place is not an error; an unreadable file that the user named is one
    is_short = bool(files) and any(left.is_unreadable for left in report.skipped)
    return 1 if problems or is_short else 0


async def add(
    name: Annotated[str, Parameter(help="The name of the server: lower-case letters, digits and hyphens.")],
    /,
    *command: Annotated[str, Parameter(help="A program and its arguments, behind --.")],
    url: Annotated[str, Parameter(help="The address of a server over streamable HTTP, instead of a program.")] = "",
    env: Annotated[tuple[str, ...], Parameter(help="NAME=VALUE for the program; may be repeated.")] = (),
    header: Annotated[tuple[str, ...], Parameter(help="'NAME: VALUE' for the address; may be repeated.")] = (),
    oauth: Annotated[bool, Parameter(help="The address wants a login: `clew mcp login` follows.")] = False,
    no_look: NoLook = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Add a foreign MCP server: a program, or an address.

    Writes it to mcp.json in the folder of the trail, records your consent, and lists its tools. In values, use
    '${NAME}' for a variable instead of writing a secret down. The exit code is 1 if the server cannot be started; run
    the command again to replace such an entry.

        clew mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
        clew mcp add search --env 'API_KEY=${SEARCH_KEY}' -- python3 search.py
        clew mcp add linear --url https://mcp.linear.app/mcp --oauth
    """
    from clew.catalog.servers.config import parse_server  # as above

    entry: dict[str, Any] = {"command": list(command)} if command else {}
    entry |= {"env": _pairs("--env", env, "="), "headers": _pairs("--header", header, ":")}
    entry |= {"url": url} if url else {}
    entry |= {"auth": {"type": "oauth"}} if oauth else {}
    _check_new(name, entry, is_program=bool(command))
    if stray := words_before_dashes(command):
        hint = f"A name is one word. For example clew mcp add {name} -- {' '.join(command[len(stray) :][:1])}"
        raise InvalidInput("NAME", f"{' '.join(stray)!r} stands between the name and --", hint=hint)
    config = here.config()
    check_project(config)
    server = parse_server(name, entry, f"server {name}")
    await _free(name, config, here)
    problems = await _take([server], config, here, look=not (no_look or oauth))
    if json:
        print_json({"id": name, "transport": server.transport, "target": server.target, "problem": problems.get(name)})
    else:
        say(f"+ {name}  {server.transport}  {server.target}", GREEN)
        _print_added(server, problems)
    return 1 if name in problems else 0


def _pairs(option: str, given: Sequence[str], mark: str) -> dict[str, str]:
    """Parse `NAME=VALUE` pairs. Raises InvalidInput, whose message contains no possible secret."""
    found = {}
    for each in given:
        key, is_pair, value = each.partition(mark)
        if not is_pair or not key.strip():
            raise InvalidInput(option, f"must be a name and a value with {mark!r} between them")
        found[key.strip()] = value.strip() if mark == ":" else value
    return found


def _check_new(name: str, entry: Mapping[str, Any], *, is_program: bool) -> None:
    """Raise InvalidInput for options that exclude each other."""
    from clew.catalog.route import check_domain_name

    check_domain_name(name)
    if is_program == bool(entry.get("url")):
        hint = f"For example clew mcp add {name} -- npx -y some-server, or clew mcp add {name} --url https://…"
        raise InvalidInput("SERVER", "must be either a program after -- or a --url", hint=hint)
    if is_program and (entry["headers"] or "auth" in entry):
        raise InvalidInput("--header" if entry["headers"] else "--oauth", "is for an address, not for a program")
    if entry["env"] and not is_program:
        raise InvalidInput("--env", "is for a program, not for an address")


async def _free(name: str, config: Config, here: Here) -> None:
    """Remove a server of this name that never worked. Raises AlreadyExists for any other, and for a domain."""
    from clew.catalog.servers.config import servers_of
    from clew.catalog.workspace.workspace import own_names
    from clew.cli.servers.mcp_file import remove_servers

    if name in {each.id for each in config.mcp.servers}:
        raise AlreadyExists("server", name, hint="It is in the settings; change it there: clew config edit")
    if known := [each for each in servers_of(config) if each.id == name]:
        if not await _never_worked(known[0], config, here):
            raise AlreadyExists("server", name, hint=f"Take another name, or first forget it: clew mcp rm {name}")
        remove_servers(config.folder, [name])
        note(f"Replaced the earlier entry {name}, which never worked.")
    elif name in own_names(config):
        raise AlreadyExists("domain", name)


async def _never_worked(server: McpServerConfig, config: Config, here: Here) -> bool:
    """Whether the user agreed to a server that was never read successfully, and whose last attempt failed."""
    from clew.catalog.consent.consent import project_of, server_wish
    from clew.trust import Trust

    if not Trust.open().holds(server_wish(server, project_of(config))):
        return False
    async with open_workspace_here(here) as (_, workspace):
        registry = workspace.servers
        return registry.about(server.id) is None and bool(await registry.failures.problem(server.id))


async def _take(servers: Sequence[McpServerConfig], config: Config, here: Here, *, look: bool) -> dict[str, str]:
    """Write new servers to mcp.json, grant consent to them, and read their lists. Returns the errors by server id."""
    from clew.catalog.consent.consent import trust_servers
    from clew.cli.servers.mcp_file import add_servers

    prepare_folder(config.folder)
    add_servers(config.folder, servers)
    trust_servers(config, {one.id for one in servers})
    if not look:
        return {}
    async with open_workspace_here(here) as (_, workspace):
        with progress("Looking at the new servers"):
            told = await asyncio.gather(*(_look(workspace, one.id) for one in servers if one.enabled))
    return {id: problem for id, problem in told if problem}


async def _look(workspace: Workspace, id: str) -> tuple[str, str]:
    """Read a server's lists. Returns its id and the error without the server's name; the error is empty after
    success."""
    try:
        await workspace.servers.refresh(id)
    except ServerError as error:
        return id, f"{error.reason}. {error.hint}" if error.hint else error.reason
    except ClewError as error:
        return id, str(error).removeprefix(f"{id}: ").removeprefix(f"server {id}: ")
    return id, ""


def _print_added(server: McpServerConfig, problems: Mapping[str, str]) -> None:
    from clew.catalog.servers.secret_references import is_secret

    plain = [key for key, value in (server.env | server.extra_headers).items() if is_secret(key, str(value))]
    for key in plain:
        note(
            f"  {key} looks like a secret, and is now in mcp.json; '${{NAME}}' would name a variable instead", dim=True
        )
    if server.auth.type == "oauth":
        note(f"Log in to it: clew mcp login {server.id}")
    _print_problems(problems)


def _print_problems(problems: Mapping[str, str]) -> None:
    for id, problem in problems.items():
        note(f"! {id}: {problem}")
    if problems:
        names = " ".join(problems)
        kept = "It was kept all the same" if len(problems) == 1 else "They were kept all the same"
        again = f"run `clew mcp add {names}` again, " if len(problems) == 1 else ""
        note(f"  {kept}: {again}mend mcp.json, or forget it with `clew mcp rm {names}`", dim=True)


def _agreed(
    report: ServerImportReport, brought: Collection[str], project: Path, *, can_be_asked: bool
) -> ServerImportReport:
    """The report without entries that the files of a folder bring, unless a person agrees to them."""
    from clew.catalog.consent.consent import server_wish
    from clew.catalog.servers.config_import import ServerImportReport, ServerLeftOut

    asked = [one for one in report.found if one.path in brought]
    if not asked:
        return report
    reason = NOT_NAMED
    if can_be_asked and can_ask():
        say(f"Files of {project} bring {count(len(asked), 'server')}:")
        for one in asked:
            say(f"  {one.server.id}: {server_wish(one.server, project).summary}  from {one.path}")
        if agrees("Do you trust this?"):
            return report
        reason = NOT_AGREED
    left_out = [ServerLeftOut(path=one.path, name=one.name, reason=reason) for one in asked]
    return ServerImportReport(
        found=[one for one in report.found if one not in asked], skipped=[*report.skipped, *left_out]
    )


def _print_import(report: ServerImportReport, problems: Mapping[str, str]) -> None:
    for one in report.found:
        say(f"+ {one.server.id}  {one.server.transport}  {one.server.target}  from {one.path}", GREEN)
        for name in one.to_set:
            note(f"  set {name} before you use it", dim=True)
    for left in report.skipped:
        if left.is_unreadable:
            note(f"clew: {left.path} {left.reason}. Nothing of it was taken")
        else:
            note(f"  left out {left.name or left.path}: {left.reason}", dim=True)
    _print_problems(problems)
    if not report.found and not any(left.is_unreadable for left in report.skipped):
        note("No new servers were found.")


def _described(one: Imported) -> dict[str, Any]:
    """The parts of an entry that may be shown: arguments, environment and headers may hold secrets."""
    server = one.server
    about = {"id": server.id, "transport": server.transport, "target": server.target}
    return {**about, "path": one.path, "name": one.name, "to_set": one.to_set}


def _without_names(report: ServerImportReport, taken: Collection[str]) -> ServerImportReport:
    """The entries that can be imported: two domains cannot have one name."""
    from clew.catalog.servers.config_import import ServerImportReport, ServerLeftOut

    refused = [one for one in report.found if one.server.id in taken]
    left_out = [
        ServerLeftOut(path=one.path, name=one.name, reason="has the name of a domain; rename it") for one in refused
    ]
    found = [one for one in report.found if one not in refused]
    return ServerImportReport(found=found, skipped=[*report.skipped, *left_out])
