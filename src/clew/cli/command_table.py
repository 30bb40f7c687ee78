"""The table of commands: their place in `clew --help`, and the function of each."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HELP_FLAGS = ("--help", "-h")
HELP_WORD = "help"
LIST_WORDS = ("ls", "list")
"""Two spellings of one command, everywhere."""
MAX_WIDTH = 100


@dataclass(frozen=True, slots=True)
class CliCommand:
    """One command. `target` is `module:function`, loaded when the command runs; the function's docstring is its
    help, and begins with `summary`. `takes` are its arguments beside options, as usage shows them. A command that
    `lists` may be followed by `ls` or `list`, which change nothing."""

    name: str
    summary: str
    target: str
    takes: str = ""
    lists: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that share a first word. `default` is the command for the group's name alone; `more` is printed below
    the summary on the group's own page."""

    name: str
    summary: str
    commands: tuple[CliCommand, ...]
    default: str = ""
    more: str = ""


def _commands(module: str, *rows: tuple[str, str, str]) -> tuple[CliCommand, ...]:
    """Commands of one module, each with its name, summary and arguments; the function has the name of the command."""
    return tuple(CliCommand(name, summary, f"{module}:{name}", takes) for name, summary, takes in rows)


COMMANDS: tuple[CliCommand | Group, ...] = (
    CliCommand("chat", "Talk to an agent of this folder.", "clew.cli.chat.chat:chat", "[MESSAGE...]"),
    CliCommand("code", "Let a team plan, build, check and test a request.", "clew.cli.team.code:code", "[TEXT...]"),
    Group(
        "team",
        "Watch and steer the work of the team.",
        _commands(
            "clew.cli.team.team",
            ("status", "List the work of the team, newest first.", ""),
            ("log", "Show the messages of the team in a session.", "[SESSION]"),
            ("approve", "Approve the plan of a session.", "[SESSION]"),
            ("modify", "Ask the Architect to change the plan.", "TEXT..."),
            ("ask", "Ask the Architect about the work.", "TEXT..."),
            ("answer", "Answer a question of the Architect.", "TEXT..."),
            ("add", "Add a requirement to work under way.", "TEXT..."),
            ("task", "Prompt, ask or interrupt a task, or ignore its Inspector or Tester.", "WHICH ACTION [TEXT...]"),
            ("choose", "Decide on a task that used all its rounds.", "CHOICE [WHICH]"),
            ("override", "Accept the open findings of the session.", "REASON..."),
            ("stop", "Stop the work of a session; its branches stay.", "[SESSION]"),
        ),
        default="status",
    ),
    Group(
        "session",
        "Begin, list, switch, suspend, resume and close sessions of work.",
        _commands(
            "clew.cli.commands.session",
            ("new", "Begin a session and focus it.", "[NAME]"),
            ("ls", "List the sessions, newest first.", ""),
            ("switch", "Focus another session.", "WHICH"),
            ("suspend", "Suspend a session.", "[WHICH]"),
            ("resume", "Resume a suspended session and focus it.", "WHICH"),
            ("show", "Show the state, private context and counts of a session.", "[WHICH]"),
            ("update", "Note the task, the steps and your wishes in a session.", "[WHICH]"),
            ("history", "Show the messages and answers of a session, oldest first.", "[WHICH]"),
            ("entries", "List the journal entries of a session.", "[WHICH]"),
            ("promote", "Make journal entries of a session readable in all sessions.", "ENTRIES"),
            ("unpromote", "Undo a promotion: only the session of an entry reads it.", "ENTRIES"),
            ("close", "Close a session for good.", "[WHICH]"),
        ),
        default="ls",
    ),
    CliCommand(
        "ask",
        "Ask a question about this folder, or about what can be done here.",
        "clew.cli.commands.catalog:ask",
        "QUERY...",
    ),
    CliCommand(
        "get",
        "Run tools and read resources in parallel.",
        "clew.cli.commands.catalog:get",
        "ROUTES...",
    ),
    CliCommand("domains", "List the domains that you can see.", "clew.cli.commands.catalog:domains", lists=True),
    CliCommand(
        "refresh",
        "Bring the resources of the catalog up to date.",
        "clew.cli.commands.catalog:refresh",
        "[SOURCE]",
    ),
    CliCommand(
        "index",
        "Read the code, the history and the documents of this folder.",
        "clew.cli.commands.knowledge:index",
    ),
    CliCommand(
        "locate",
        "Find the files that a text is about, with the best line of each.",
        "clew.cli.commands.knowledge:locate",
        "QUERY...",
    ),
    CliCommand(
        "callers", "Find what calls a function, a method or a class.", "clew.cli.commands.knowledge:callers", "SYMBOL"
    ),
    CliCommand(
        "blame-why",
        "Explain a line of a file by commits, decisions and notes.",
        "clew.cli.commands.knowledge:blame_why",
        "PLACE",
    ),
    CliCommand(
        "brief",
        "Show the state of the work: open threads, decisions and failures.",
        "clew.cli.commands.knowledge:brief",
        "[TIER]",
    ),
    CliCommand(
        "route",
        "Show which agent takes a message, and with what confidence.",
        "clew.cli.commands.route:route",
        "MESSAGE...",
    ),
    CliCommand("why", "Explain why a route is visible to you or not.", "clew.cli.commands.catalog:why", "WHAT..."),
    Group(
        "context",
        "Show the context that a model would get.",
        (
            CliCommand(
                "preview",
                "Show the context that a message would get.",
                "clew.cli.commands.context:preview",
                "MESSAGE...",
            ),
        ),
    ),
    CliCommand(
        "agents", "List the agents of this folder and their status.", "clew.cli.commands.agents:agents", lists=True
    ),
    CliCommand("usage", "Show model usage and cost.", "clew.cli.commands.usage:usage"),
    Group(
        "skills",
        "Write, check, list and load skills.",
        (
            CliCommand("list", "List the skills of this folder.", "clew.cli.commands.skills:list_"),
            CliCommand(
                "show",
                "Show one skill: purpose, tools and text.",
                "clew.cli.commands.skills:show",
                "NAME",
            ),
            CliCommand("new", "Create a skill from a template.", "clew.cli.commands.skill_files:new", "NAME"),
            CliCommand("import", "Copy skills into this folder.", "clew.cli.commands.skill_files:import_", "PATHS..."),
            CliCommand(
                "lint",
                "Check the definitions of agents, skills, toolsets and tools.",
                "clew.cli.commands.skill_files:lint",
                "[PLACE]",
            ),
            CliCommand(
                "build",
                "Build the manifest of agents, skills, toolsets and tools.",
                "clew.cli.commands.skill_files:build",
                "[PLACE]",
            ),
            CliCommand("load", "Load a skill in the session of an agent.", "clew.cli.commands.skills:load", "NAME"),
            CliCommand(
                "unload", "Unload a skill in the session of an agent.", "clew.cli.commands.skills:unload", "NAME"
            ),
            CliCommand("why", "Explain why a skill is loaded or not.", "clew.cli.commands.skills:why", "NAME"),
        ),
    ),
    CliCommand(
        "connect",
        "Add the MCP server of this folder to a coding agent.",
        "clew.cli.servers.connect:connect",
        "CLIENT",
    ),
    Group(
        "mcp",
        "Serve MCP to a coding agent, and use other MCP servers.",
        (
            CliCommand(
                "serve",
                "Serve MCP on standard input and output.",
                "clew.cli.servers.mcp:serve",
            ),
            CliCommand(
                "import",
                "Import the MCP servers of other clients.",
                "clew.cli.servers.add_servers:import_",
                "[FILES...]",
            ),
            CliCommand(
                "add",
                "Add a foreign MCP server: a program, or an address.",
                "clew.cli.servers.add_servers:add",
                "NAME [COMMAND...]",
            ),
            CliCommand("ls", "List the foreign MCP servers and what they offer.", "clew.cli.servers.servers:ls"),
            CliCommand(
                "approve",
                "Accept tools of a foreign server as it describes them now.",
                "clew.cli.servers.servers:approve",
                "SERVER [TOOLS...]",
            ),
            CliCommand("login", "Log in to a foreign server with OAuth.", "clew.cli.servers.login:login", "SERVER"),
            CliCommand("logout", "Forget the login to a foreign server.", "clew.cli.servers.login:logout", "SERVER"),
            CliCommand(
                "rm", "Forget foreign servers and what they offered.", "clew.cli.servers.servers:rm", "SERVERS..."
            ),
        ),
        default="serve",
        more="`clew mcp` alone serves one agent that starts it, on standard input and output; `clew connect` tells an"
        " agent to. For several agents, other machines or REST, `clew up` serves the same at /mcp over HTTP.",
    ),
    CliCommand(
        "trust",
        "Agree to settings, servers and definitions of this folder.",
        "clew.cli.commands.trust:trust",
        "[NAMES...]",
    ),
    CliCommand(
        "verify", "Run the commands of a task again, or vouch for a source.", "clew.cli.commands.verify:verify", "ID"
    ),
    Group(
        "rules",
        "Show the rules of this folder, such as AGENTS.md.",
        (
            CliCommand("for", "Show which rules apply to a file, and why.", "clew.cli.commands.rules:for_", "PATH"),
            CliCommand("ls", "List the rule files of the project.", "clew.cli.commands.rules:ls"),
            CliCommand(
                "search",
                "Find linked documents of the rules for a task.",
                "clew.cli.commands.rules:search",
                "INTENT...",
            ),
        ),
    ),
    CliCommand("up", "Serve the trail of this folder until Ctrl-C.", "clew.cli.commands.up:up"),
    CliCommand(
        "workers", "List the processes that work on this trail.", "clew.cli.commands.workers:workers", lists=True
    ),
    Group(
        "trail",
        "Read, search, follow and write breadcrumbs.",
        (
            CliCommand("ls", "List breadcrumbs, newest first.", "clew.cli.trail.browse:ls"),
            CliCommand("show", "Show one breadcrumb as a model sees it.", "clew.cli.trail.browse:show", "ID"),
            CliCommand("search", "Find breadcrumbs by words and by meaning.", "clew.cli.trail.browse:search", "TEXT"),
            CliCommand("tail", "Follow the events of the trail until Ctrl-C.", "clew.cli.trail.tail:tail"),
            CliCommand("put", "Write breadcrumbs from options or from standard input.", "clew.cli.trail.write:put"),
            CliCommand("edit", "Write the next version of a breadcrumb.", "clew.cli.trail.write:edit", "ID"),
            CliCommand("rm", "Remove breadcrumbs with their versions and edges.", "clew.cli.trail.write:rm", "IDS..."),
            CliCommand("history", "List the versions of a breadcrumb.", "clew.cli.trail.browse:history", "ID"),
            CliCommand(
                "export", "Write breadcrumbs and edges as JSON lines.", "clew.cli.trail.transfer:export", "[FILE]"
            ),
            CliCommand("import", "Read what `clew trail export` wrote.", "clew.cli.trail.transfer:import_", "FILE"),
            CliCommand(
                "move",
                "Move a trail to another file or server, with everything on it.",
                "clew.cli.trail.move:move",
                "SOURCE TARGET",
            ),
            CliCommand(
                "backup",
                "Copy the trail to a SQLite file while others work on it.",
                "clew.cli.trail.move:backup",
                "FILE",
            ),
            CliCommand("stats", "Count breadcrumbs, events and edges.", "clew.cli.trail.browse:stats"),
            CliCommand(
                "reembed", "Recompute all vectors with the current embedder.", "clew.cli.trail.transfer:reembed"
            ),
        ),
    ),
    CliCommand("token", "Print a token for the REST API of this folder.", "clew.cli.commands.token:token"),
    Group(
        "hygiene",
        "Remove expired breadcrumbs, or show the last report.",
        (
            CliCommand("run", "Remove expired breadcrumbs now.", "clew.cli.trail.maintenance:run_hygiene"),
            CliCommand("stats", "Show the report of the last hygiene run.", "clew.cli.trail.maintenance:hygiene_stats"),
        ),
    ),
    Group(
        "dlq",
        "Show, retry and drop dead letters.",
        (
            CliCommand("ls", "List dead letters, oldest first.", "clew.cli.trail.maintenance:list_dead_letters"),
            CliCommand(
                "retry", "Make dead letters pending again.", "clew.cli.trail.maintenance:retry_dead_letters", "IDS..."
            ),
            CliCommand("drop", "Forget dead letters.", "clew.cli.trail.maintenance:drop_dead_letters", "IDS..."),
        ),
    ),
    Group(
        "secret",
        "Store secret values that breadcrumbs can refer to.",
        (
            CliCommand(
                "put",
                "Store a secret from standard input or a prompt.",
                "clew.cli.trail.secret:put",
                "NAME",
            ),
            CliCommand("ls", "List the names of secrets.", "clew.cli.trail.secret:ls"),
            CliCommand("rm", "Remove secrets.", "clew.cli.trail.secret:rm", "NAMES..."),
        ),
    ),
    Group(
        "config",
        "Show, check and edit the settings of this folder.",
        (
            CliCommand(
                "show",
                "Show the settings in force, and where each comes from.",
                "clew.cli.commands.config:show",
                "[NAMES...]",
            ),
            CliCommand("check", "List everything that is wrong with the settings.", "clew.cli.commands.config:check"),
            CliCommand("edit", "Edit config.toml, and check it afterwards.", "clew.cli.commands.config:edit"),
            CliCommand("schema", "Print the JSON Schema of config.toml.", "clew.cli.commands.config:schema"),
        ),
    ),
    CliCommand("doctor", "Check the installation, the folder and its trail.", "clew.cli.commands.doctor:doctor"),
    CliCommand("demo", "Run an example, or list all of them.", "clew.cli.commands.demo:demo", "[NAME]"),
    CliCommand(
        "completion", "Print a completion script for a shell.", "clew.cli.commands.completion:completion", "SHELL"
    ),
    CliCommand("uninstall", "Remove what Clew wrote for this folder.", "clew.cli.commands.uninstall:uninstall"),
)

_EXAMPLES = """\
Examples:
  clew chat "what did we decide about retries?"
  clew ask "how are writes made durable"
  clew get repo://tools/search query="claim lease"
  clew up
  clew trail put --title "Use WAL mode" --tag sqlite --context '{"why": "readers never wait"}'
  clew trail search "database locking" --limit 5
  clew trail tail --tag session:42
  curl -H "Authorization: Bearer $(clew token)" http://127.0.0.1:8081/breadcrumbs
"""


def find_command(words: Sequence[str]) -> CliCommand | None:
    """The command of one word, or of a group's name and one word."""
    level: Iterable[CliCommand | Group] = COMMANDS
    for at, word in enumerate(words):
        entry = next((entry for entry in level if entry.name == word), None)
        if isinstance(entry, CliCommand):
            return entry if at == len(words) - 1 else None
        level = entry.commands if entry is not None else ()
    return None


def spell_out(given: Sequence[str]) -> list[str]:
    """Normalise typed words. `help COMMAND` and `GROUP help COMMAND` become `COMMAND --help`, `ls` and `list` get the
    spelling in the table, and a group's name without a command gets the group's default command. Other words stay
    unchanged."""
    words = _as_listed(list(given))
    groups = [entry.name for entry in COMMANDS if isinstance(entry, Group)]
    at = 1 if words and words[0] in groups else 0
    if words[at : at + 1] == [HELP_WORD]:
        return [*words[:at], *words[at + 1 :], HELP_FLAGS[0]]
    default = next((each.default for each in COMMANDS if isinstance(each, Group) and words[:1] == [each.name]), "")
    if default and (len(words) == 1 or (words[1].startswith("-") and words[1] not in HELP_FLAGS)):
        return [words[0], default, *words[1:]]
    return words


def _as_listed(words: list[str]) -> list[str]:
    """The words with `ls` or `list` as the table spells it."""
    at = 1 if words[:1] != [HELP_WORD] else 2
    entry = next((entry for entry in COMMANDS if words[at - 1 : at] == [entry.name]), None)
    if entry is None or words[at : at + 1] not in ([LIST_WORDS[0]], [LIST_WORDS[1]]):
        return words
    if isinstance(entry, Group):
        name = next((each.name for each in entry.commands if each.name in LIST_WORDS), words[at])
        return [*words[:at], name, *words[at + 1 :]]
    return [*words[:at], *words[at + 1 :]] if entry.lists else words


def find_page(given: Sequence[str]) -> str | None:
    """The help page for these arguments, if they ask for help on everything or on a group."""
    words = [word for word in given if word not in HELP_FLAGS]
    if not words:
        return render_overview()
    group = next((entry for entry in COMMANDS if entry.name == words[0]), None)
    return render_group(group) if isinstance(group, Group) and len(words) == 1 else None


def render_overview() -> str:
    head = "Usage: clew COMMAND\n\nTwo operations instead of three hundred tools, on one durable trail.\n\n"
    about_help = "Show this, or the help of a command; so does `clew help COMMAND`."
    options = (("--help, -h", about_help), ("--version", "Show the version."))
    rows = [(entry.name, entry.summary) for entry in COMMANDS]
    folder = (
        "A command works on the git repository around the current folder, or on the current folder itself;\n"
        "--folder and CLEW_FOLDER name another folder .clew.\n"
    )
    return f"{head}{render_rows('Commands', rows)}\n{render_rows('Options', options)}\n{_EXAMPLES}\n{folder}"


def render_group(group: Group) -> str:
    rows = [(command.name, command.summary) for command in group.commands]
    more = f"See `clew {group.name} COMMAND --help` for one of them.\n"
    about = "\n\n".join(filter(None, (group.summary, textwrap.fill(group.more, MAX_WIDTH))))
    return f"Usage: clew {group.name} COMMAND\n\n{about}\n\n{render_rows('Commands', rows)}\n{more}"


def render_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and their meanings in two columns under a title. A long name has its meaning on the next line."""
    width = min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MAX_WIDTH)
    left = min(max((len(name) for name, _ in rows), default=0), 26) + 4
    lines = [f"{title}:"]
    for name, meaning in rows:
        wrapped = textwrap.wrap(meaning, max(width - left, 30)) or [""]
        first = f"  {name}".ljust(left)
        if len(first) > left:
            lines.append(first)
            first = " " * left
        lines += [first + wrapped[0], *(" " * left + line for line in wrapped[1:])]
    return "\n".join(line.rstrip() for line in lines) + "\n"
