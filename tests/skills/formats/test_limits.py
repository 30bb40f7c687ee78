"""Limits of agents of other programs; none of them is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.skills.agent_tools import tools_of
from clew.skills.formats.collection import collect, wishes
from clew.skills.manifest import AgentPermissions, AgentSpec

from .trees import only_agent, plant

READING = ("ask", "get", "read-file", "preview-edit", "glob", "grep", "fetch")
CODEX = 'name = "a"\ndescription = "b"\ndeveloper_instructions = "You taste."\n'


def read(root: Path, place: str, keys: str) -> tuple[AgentSpec, list[str]]:
    """The agent of a file with these keys, and the problems of the file."""
    is_toml = place.endswith(".toml")
    found = collect(
        plant(root, {place: f"{CODEX}{keys}" if is_toml else f"---\ndescription: b\n{keys}---\nYou taste."})
    )
    return only_agent(found), [each.message for each in found.problems if "no name" not in each.message]


def opencode(root: Path, keys: str) -> tuple[AgentSpec, list[str]]:
    return read(root / "opencode", ".opencode/agent/a.md", keys)


def claude(root: Path, keys: str) -> tuple[AgentSpec, list[str]]:
    return read(root / "claude", ".claude/agents/a.md", f"name: a\n{keys}")


@pytest.mark.parametrize(
    "keys",
    [
        "tools: {bash: false}\n",
        "tools: {'*': true, bash: false}\n",
        "tools:\n  bash: deny\n",
        "permission: {bash: deny}\n",
        "permission: {bash: false}\n",
        "permission:\n  bash:\n    '*': deny\n",
    ],
)
def test_a_tool_that_is_off_in_opencode_is_denied_and_the_others_stay(tmp_path: Path, keys: str) -> None:
    agent, told = opencode(tmp_path, keys)
    assert agent.permissions == AgentPermissions(deny=("exec",))
    assert "exec" not in tools_of(agent)
    assert {"read-file", "write-file", "fetch"} <= set(tools_of(agent))
    assert told == []


def test_the_edit_permission_of_opencode_covers_all_writing_tools(tmp_path: Path) -> None:
    agent, _ = opencode(tmp_path, "permission: {edit: deny}\ntools: {bash: false}\n")
    assert tools_of(agent) == READING


@pytest.mark.parametrize(
    ("keys", "tools"),
    [
        ("tools: {'*': false, read: true}\n", ("ask", "get", "read-file")),
        ("tools: {'*': false}\n", ()),
        ("tools: []\n", ()),
        ("permission: deny\n", ()),
        ("permission: {'*': deny, read: allow, bash: ask}\n", ("ask", "get", "read-file", "exec")),
        ("permission: {read: allow, '*': deny}\n", ()),
        ("permission: {'*': deny, bash: {'*': deny, 'ls *': deny}, grep: {'*': allow}}\n", ("ask", "get", "grep")),
        ("tools: [read, bash]\npermission: {'*': deny, read: allow, grep: allow}\n", ("ask", "get", "read-file")),
        ("tools: {read: true}\npermission: {bash: ask}\n", ("ask", "get", "read-file")),
    ],
)
def test_with_a_general_denial_only_allowed_tools_remain(tmp_path: Path, keys: str, tools: tuple[str, ...]) -> None:
    assert tools_of(opencode(tmp_path, keys)[0]) == tools


def test_to_ask_means_to_ask(tmp_path: Path) -> None:
    agent, _ = opencode(tmp_path, "permission: {webfetch: ask, bash: ask}\n")
    assert agent.permissions == AgentPermissions(ask=("fetch", "exec"))
    agent, _ = opencode(tmp_path, "permission: {'*': ask, read: allow, bash: deny}\n")
    assert agent.permissions == AgentPermissions(allow=("read-file",), ask=("*",), deny=("exec",))


def test_parts_of_commands_are_carried_over(tmp_path: Path) -> None:
    keys = "permission:\n  bash:\n    '*': ask\n    'git status*': allow\n    'git push*': deny\n    'rm ?': deny\n"
    agent, told = opencode(tmp_path, keys)
    assert agent.permissions == AgentPermissions(
        allow=("exec(git status*)",), ask=("exec",), deny=("exec(git push*)", "exec(rm *)")
    )
    assert told == []


def test_the_later_verdict_on_a_part_applies_unless_an_earlier_one_denies(tmp_path: Path) -> None:
    agent, told = opencode(tmp_path, "permission: {bash: {'git *': allow, '*': ask}}\n")
    assert (agent.permissions, told) == (AgentPermissions(ask=("exec",)), [])
    agent, told = opencode(tmp_path, "permission: {bash: {'*': deny, 'git *': allow}}\n")
    assert agent.permissions == AgentPermissions(deny=("exec",))
    assert told == ["`bash: git *` stays denied: in Clew, deny always wins over later rules"]
    agent, told = opencode(tmp_path, "permission: {bash: {}}\n")
    assert (agent.permissions, told) == (AgentPermissions(), [])


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        ("src/*", "read-file(src/**)"),
        ("*.env", "read-file(**/*.env)"),
        ("**/.env", "read-file(**/*.env)"),
        ("notes.md", "read-file(notes.md)"),
        ("*", "read-file"),
    ],
)
def test_paths_are_carried_over_where_globs_of_here_can_say_them(tmp_path: Path, pattern: str, rule: str) -> None:
    agent, told = opencode(tmp_path, f"permission: {{read: {{'{pattern}': deny}}}}\n")
    assert agent.permissions.deny == (rule,)
    assert told == []


@pytest.mark.parametrize(
    ("keys", "rules"),
    [
        ("read: {'a*b/*': deny, '*': allow}", AgentPermissions(deny=("read-file",))),
        ("read: {'~/x': deny}", AgentPermissions(deny=("read-file",))),
        ("edit: {'src*': ask}", AgentPermissions(ask=("write-file", "edit-file"))),
        ("webfetch: {'https://x*': deny}", AgentPermissions(deny=("fetch",))),
        ("bash: {'': deny}", AgentPermissions(deny=("exec",))),
        ("bash: {'a?': allow, ' ': ask}", AgentPermissions(ask=("exec",))),
    ],
)
def test_parts_without_an_equivalent_apply_to_the_whole_tool_and_are_reported(
    tmp_path: Path, keys: str, rules: AgentPermissions
) -> None:
    agent, told = opencode(tmp_path, f"permission: {{{keys}}}\n")
    assert agent.permissions == rules
    assert ["Clew has no rules for parts of" in each for each in told] == [True]


def test_an_invalid_verdict_denies_and_is_reported(tmp_path: Path) -> None:
    agent, told = opencode(tmp_path, "permission: {bash: perhaps}\n")
    assert agent.permissions == AgentPermissions(deny=("exec",))
    assert told == ["`bash` must be allow, ask or deny: it is denied"]


def test_limits_that_cannot_be_read_leave_no_tools(tmp_path: Path) -> None:
    for keys in (
        "permission: [bash]\n",
        "permission: {'a b': deny}\n",
        "description: a: b\npermission:\n  bash: deny\n",
    ):
        agent, told = opencode(tmp_path, keys)
        assert tools_of(agent) == ()
        assert told
    broken = "description: a: b\ndisallowedTools:\n- Bash\n"
    for keys in ("disallowedTools: {Bash: true}\n", "disallowedTools: 'a(b'\n", broken):
        agent, told = claude(tmp_path, keys)
        assert tools_of(agent) == ()
        assert told


def test_a_limit_of_an_unknown_tool_is_reported_unless_no_agent_has_such_a_tool(tmp_path: Path) -> None:
    _, told = opencode(tmp_path, "permission: {skill: deny, task: deny, 'my_*': allow}\n")
    assert told == ["unknown tool `skill`: its limit has no effect"]
    agent, told = claude(tmp_path, "disallowedTools: mcp__geo, Task\n")
    assert told == ["unknown tool `mcp__geo`: its limit has no effect"]
    assert agent.permissions.deny == ("mcp__geo", "Task")


@pytest.mark.parametrize(
    "keys",
    [
        "disallowedTools: Bash, Write, Edit\n",
        "disallowedTools: [Bash, Write, Edit]\n",
        "permissionMode: plan\n",
        "description: a: b\ndisallowedTools:\n  - Bash\n  - Write\n  - Edit\n",
    ],
)
def test_tools_that_claude_code_disallows_are_denied(tmp_path: Path, keys: str) -> None:
    agent, _ = claude(tmp_path, keys)
    assert tools_of(agent) == READING


@pytest.mark.parametrize(
    ("written", "rules"),
    [
        ("Bash(git push:*)", ("exec(git push*)",)),
        ("WebFetch(domain:example.org)", ("fetch(example.org)",)),
        ("Read(./secrets/**)", ("read-file(./secrets/**)", "read-file(./secrets/**)")),
        ("Read(secrets/key)", ("read-file(secrets/key)", "read-file(secrets/key/**)")),
        ("Read(**/*.env)", ("read-file(**/*.env)",)),
        ("Edit(docs/*)", ("write-file(docs/*)", "write-file(docs/**)", "edit-file(docs/*)", "edit-file(docs/**)")),
    ],
)
def test_parts_of_tools_that_claude_code_disallows_are_denied(
    tmp_path: Path, written: str, rules: tuple[str, ...]
) -> None:
    agent, told = claude(tmp_path, f"disallowedTools: ['{written}']\n")
    assert agent.permissions.deny == tuple(dict.fromkeys(rules))
    assert told == []


@pytest.mark.parametrize("written", ["Bash()", "Read(/etc/**)", "Read(~/x/y)", "Read(*.env)", "WebFetch(x)"])
def test_parts_that_no_rule_can_say_deny_the_tool(tmp_path: Path, written: str) -> None:
    agent, told = claude(tmp_path, f"disallowedTools: ['{written}']\n")
    assert agent.permissions.deny[0] in ("exec", "read-file", "fetch")
    assert "is denied completely" in told[0]


def test_an_empty_list_of_claude_code_is_no_tool_and_an_absent_one_all(tmp_path: Path) -> None:
    assert tools_of(claude(tmp_path, "tools: []\n")[0]) == ()
    assert tools_of(claude(tmp_path, "tools: ''\n")[0]) == ()
    assert "exec" in tools_of(claude(tmp_path, "")[0])
    assert "exec" in tools_of(claude(tmp_path, "tools:\n")[0])


def test_a_sandbox_of_codex_that_only_reads_denies_writing_and_commands(tmp_path: Path) -> None:
    place = ".codex/agents/a.toml"
    assert tools_of(read(tmp_path, place, 'sandbox_mode = "read-only"\n')[0]) == READING
    agent, told = read(tmp_path, place, 'sandbox_mode = "readonly"\nweb_search = "disabled"\n')
    assert tools_of(agent) == READING[:-1]
    assert told == ["unknown sandbox `readonly`: the agent may only read"]
    assert "exec" in tools_of(read(tmp_path, place, 'sandbox_mode = "workspace-write"\n')[0])


def test_limits_without_an_equivalent_are_reported_with_the_consequence(tmp_path: Path) -> None:
    _, told = claude(tmp_path, "maxTurns: 3\nhooks: {}\nisolation: worktree\npermissionMode: dontAsk\n")
    assert told == [
        "`maxTurns` has no effect: Clew does not limit the turns of an agent",
        "`hooks` has no effect: Clew does not run them, so they refuse nothing",
        "`isolation` has no effect: the agent works on the files of this folder, not on a copy",
        "`permissionMode: dontAsk` has no effect: the agent asks for permissions as usual",
    ]
    for key in ("steps", "maxSteps"):
        _, told = opencode(tmp_path / key, f"{key}: 3\n")
        assert told == [f"`{key}` has no effect: Clew does not limit the turns of an agent"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("disallowedTools: Bash\n", "denied: exec"),
        ("tools: Read, Bash\ndisallowedTools: Bash\n", "b; tools: read-file; denied: exec;"),
        ("tools: []\n", "b; has no tools"),
        ("maxTurns: 3\nhooks: {Stop: []}\n", "without effect here: hooks, maxTurns"),
    ],
)
def test_the_consent_screen_shows_the_effective_tools(tmp_path: Path, keys: str, said: str) -> None:
    claude(tmp_path, keys)
    (wish,) = wishes(collect(tmp_path), tmp_path)
    assert said in wish.summary
    assert "commands" not in wish.summary or keys.startswith("max")


@pytest.mark.parametrize("given", ["[deny]", "{'git *': [allow]}", "{}", "3", "null"])
@pytest.mark.parametrize("tool", ["bash", "'*'"])
def test_any_invalid_verdict_denies(tmp_path: Path, tool: str, given: str) -> None:
    agent, told = opencode(tmp_path, f"permission: {{{tool}: {given}}}\n")
    if (tool, given) == ("bash", "{}"):
        assert not told, "of no part nothing is said"
        return
    assert "exec" not in tools_of(agent) or "exec(git *)" in agent.permissions.deny
    assert "must be allow, ask or deny: it is denied" in told[0]


def test_the_consent_screen_shows_the_tools_that_ask(tmp_path: Path) -> None:
    opencode(tmp_path, "permission: {'*': ask, read: allow}\n")
    (wish,) = wishes(collect(tmp_path), tmp_path)
    assert "asked about: *; but not: read-file" in wish.summary
