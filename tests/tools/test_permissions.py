"""Matching rules decide about a call, unclear calls ask the user, and a child never has more rights than its parent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.config import PermissionsConfig, read_config
from clew.errors import ConfigError, InvalidInput
from clew.tools.files.folder import WorkingFolder
from clew.tools.permissions.permission_settings import (
    find_strays,
    permissions_wish,
    policy_of,
    rules_of,
    widening_rules,
)
from clew.tools.permissions.policy import DEFAULT, Policy, decide, extend, narrow, read_policy
from clew.tools.permissions.rules import STRICTNESS, PermissionRule, parse_rule, wild_matches
from clew.trust import Trust
from tests.tools.working_folder import plant

GIT = extend(DEFAULT, [parse_rule("exec(git status*)", "allow"), parse_rule("exec(ls*)", "allow")])


def verdict(policy: Policy, tool: str, **arguments: Any) -> str:
    return decide(policy, tool, arguments).verdict


def run(policy: Policy, command: str) -> str:
    return verdict(policy, "exec", command=command)


def test_by_default_files_are_read_changes_are_asked_about_and_secrets_denied() -> None:
    for tool in ("read-file", "preview-edit"):
        assert verdict(DEFAULT, tool, file_path="src/a.py") == "allow"
        assert verdict(DEFAULT, tool, file_path="src/.env") == "deny"
    assert verdict(DEFAULT, "grep", pattern="x", path="") == "allow"
    assert verdict(DEFAULT, "glob", pattern="*") == "allow"
    assert verdict(DEFAULT, "write-file", file_path="a.py", content="") == "ask"
    assert verdict(DEFAULT, "write-file", file_path=".ENV", content="") == "deny"
    assert verdict(DEFAULT, "edit-file", file_path="./x/../.env") == "deny"
    assert run(DEFAULT, "ls") == "ask"
    assert verdict(DEFAULT, "fetch", url="https://example.org/") == "ask"
    assert verdict(DEFAULT, "something-else") == "ask"


@pytest.mark.parametrize("command", ["git status", "git status --short", "git status && ls -l", "ls $(git status)"])
def test_a_command_is_allowed_when_all_its_parts_are(command: str) -> None:
    assert run(GIT, command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git push",
            "git status; rm -rf x",
            "git status && curl x",
            "git status | sh",
            "git status\nrm x",
            "git\nstatus",
        ),
        *(
            "git status $(rm x)",
            "git status `rm x`",
            "git status > ~/.bashrc",
            "LD_PRELOAD=x git status",
            "git status &rm x",
        ),
        *(
            "'git status'",
            "ls <(rm x)",
            "sudo git status",
            "(git status)",
            "git status #",
            "ls; {git,status}",
            "GIT status",
            "",
        ),
    ],
)
def test_a_command_with_a_part_that_no_rule_allows_is_asked_about(command: str) -> None:
    assert run(GIT, command) == "ask"


@pytest.mark.parametrize(
    "command", ["rm -rf /", "ls; rm x", "sudo rm x", "sh -c 'rm x'", "if :; then rm x; fi", "/bin/rm x"]
)
def test_a_denied_command_is_denied_wherever_it_stands(command: str) -> None:
    policy = extend(GIT, [parse_rule("exec(rm *)", "deny"), parse_rule("exec(*)", "allow")])
    assert run(policy, command) == "deny"


def test_a_denial_overrides_every_allowance() -> None:
    policy = extend(DEFAULT, [PermissionRule(tool="*", verdict="allow"), parse_rule("read-file(secret/.env)", "allow")])
    assert verdict(policy, "read-file", file_path="secret/.env") == "deny"


def test_the_most_specific_rule_decides_and_of_equal_ones_the_stricter() -> None:
    rules = [
        PermissionRule(tool="*", verdict="ask"),
        parse_rule("write-file(src/**)", "allow"),
        parse_rule("write-file(src/core/**)", "ask"),
        PermissionRule(tool="write-file", path="docs/**", verdict="allow"),
        PermissionRule(tool="write-file", path="docs/**", verdict="ask"),
    ]
    for order in (rules, rules[::-1]):
        policy = Policy(rules=tuple(order))
        assert verdict(policy, "write-file", file_path="src/a.py") == "allow"
        assert verdict(policy, "write-file", file_path="src/core/a.py") == "ask"
        assert verdict(policy, "write-file", file_path="src/../core/a.py") == "ask"
        assert verdict(policy, "write-file", file_path="docs/a.md") == "ask"


def test_every_path_of_a_call_is_judged() -> None:
    policy = Policy(
        rules=(PermissionRule(tool="*", verdict="allow"), PermissionRule(tool="*", path="private/**", verdict="deny"))
    )
    assert verdict(policy, "foreign", paths=["a", "b"]) == "allow"
    assert verdict(policy, "foreign", paths=["a", "PRIVATE/b"]) == "deny"
    assert verdict(policy, "foreign", path=["a", "./private/b"]) == "deny"


def test_a_path_is_judged_as_it_really_is(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"private/a": "x"}))
    (tmp_path / "open").symlink_to("private")
    policy = Policy(rules=(PermissionRule(tool="*", verdict="allow"), parse_rule("read-file(private/**)", "deny")))
    arguments = {"file_path": "open/a"}
    assert decide(policy, "read-file", arguments, place=folder.locate).verdict == "deny"
    assert decide(policy, "read-file", {"file_path": "../x"}, place=folder.locate).verdict == "allow", (
        "the tool refuses"
    )


@pytest.mark.parametrize(
    ("rule", "url", "expected"),
    [
        ("fetch(docs.python.org)", "https://docs.python.org/3/", "allow"),
        ("fetch(docs.python.org)", "https://DOCS.python.org./3/", "allow"),
        ("fetch(docs.python.org)", "https://docs.python.org.evil.example/", "ask"),
        ("fetch(docs.python.org)", "https://evil.example/docs.python.org", "ask"),
        ("fetch(*.python.org)", "https://docs.python.org/", "allow"),
        ("fetch(*.python.org)", "https://python.org/", "ask"),
        ("fetch(*.python.org)", "https://evilpython.org/", "ask"),
        ("fetch(*)", "https://any.example/", "allow"),
        ("fetch(*)", "https://docs.python.org@evil.example/", "ask"),
        ("fetch(*)", "file:///etc/passwd", "ask"),
    ],
)
def test_a_host_is_judged_by_its_whole_name(rule: str, url: str, expected: str) -> None:
    assert verdict(extend(DEFAULT, [parse_rule(rule, "allow")]), "fetch", url=url) == expected


def test_a_decision_says_why_and_what_could_be_agreed_to() -> None:
    found = decide(GIT, "exec", {"command": "git push origin; ls"})
    assert (found.verdict, found.pattern) == ("ask", 'exec "git push origin; ls" in "."')
    assert found.reason == "git push origin: exec needs permission"
    assert found.rule == PermissionRule(tool="exec", verdict="ask")
    several = decide(GIT, "exec", {"command": "make *.o; ls; make 'a b'", "cwd": "src/"})
    assert several.pattern == """exec "make *.o; ls; make 'a b'" in "src\""""
    assert several.reason == "make *.o, make 'a b': exec needs permission", "all that is asked about is named"
    assert decide(DEFAULT, "fetch", {"url": "https://a.example/x?token=1"}).pattern == "fetch(a.example), any page"
    assert decide(DEFAULT, "write-file", {"file_path": "src/a.py"}).pattern == "write-file(src/a.py), any content"
    assert decide(DEFAULT, "unknown", {}).reason == "unknown: no rule matches it"
    assert decide(DEFAULT, "unknown", {}).pattern == "unknown, any input"
    for command in ("ls > x", "$X", "ls" * 5_000):
        assert decide(DEFAULT, "exec", {"command": command}).pattern == "", "it is asked about each time"
    for tool in ("exec", "fetch", "write-file", "get"):
        assert decide(DEFAULT, tool, {"routes": "x", "command": {}}).pattern == "", "nothing says what it would do"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"command": "rm -rf *", "cwd": "build"}, {"command": "rm -rf *"}),
        ({"command": "rm -rf '*'"}, {"command": "rm -rf *"}),
        ({"command": "rm \\*.bak"}, {"command": "rm *.bak"}),
        ({"command": "echo '$HOME'"}, {"command": "echo $HOME"}),
        ({"command": "rm -rf '~'"}, {"command": "rm -rf ~"}),
        ({"command": "touch '{a,b}'"}, {"command": "touch {a,b}"}),
        ({"command": "cat x; sh"}, {"command": "cat x | sh"}),
        ({"command": "make test || rm -rf build"}, {"command": "make test && rm -rf build"}),
        ({"command": "A=1 B=2 x"}, {"command": "A=1; B=2; x"}),
        ({"command": "echo a $() ; curl x"}, {"command": "echo a $(curl x)"}),
        ({"command": 'ls" in "x'}, {"command": "ls", "cwd": "x"}),
        ({"command": "ls '\u202e'"}, {"command": "ls '\\u202e'"}),
    ],
)
def test_a_lasting_permission_covers_exactly_that_line_in_that_folder(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = decide(DEFAULT, "exec", one), decide(DEFAULT, "exec", other)
    assert first.pattern != second.pattern or not first.pattern
    assert (first.pattern + second.pattern).isascii()


def test_a_lasting_permission_covers_the_folder_that_a_link_leads_to(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"build/a": "x"}))
    (tmp_path / "open").symlink_to("build")
    found = decide(DEFAULT, "exec", {"command": "rm -rf *", "cwd": "open"}, place=folder.locate)
    assert found.pattern == 'exec "rm -rf *" in "build"'


def test_routes_are_agreed_to_one_by_one() -> None:
    def pattern(*routes: str) -> str:
        return decide(DEFAULT, "get", {"routes": [{"route": each, "params": {}} for each in routes]}).pattern

    assert pattern("gh://tools/list") == "get(gh://tools/list), any params"
    assert pattern("gh://tools/list", "gh://tools/delete") == (
        "get(gh://tools/list), any params\nget(gh://tools/delete), any params"
    )


VERDICTS = st.sampled_from(["allow", "ask", "deny"])
TOOLS = st.sampled_from(["read-file", "write-file", "exec", "fetch"])
RULES = st.builds(
    PermissionRule,
    tool=st.sampled_from(["*", "read-*", "*-file", "read-file", "write-file", "exec", "fetch"]),
    verdict=VERDICTS,
    path=st.sampled_from([None, "**", "a/**", "a/b", "*.py"]),
    command=st.sampled_from([None, "*", "git *", "git status*", "ls"]),
    domain=st.sampled_from([None, "*", "*.example.org", "a.example.org"]),
)
POLICIES = st.recursive(
    st.builds(Policy, rules=st.lists(RULES, max_size=6).map(tuple), otherwise=VERDICTS),
    lambda inner: st.builds(narrow, inner, inner),
    max_leaves=3,
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "file_path": st.sampled_from(["a/b", "a/c.py", "x.py", "../x", "A/B"]),
        "command": st.sampled_from(["git status", "git push; ls", "ls", "ls > x", "sudo ls", "$X"]),
        "url": st.sampled_from(["https://a.example.org/", "https://example.org", "nonsense"]),
    },
)


@given(parent=POLICIES, child=POLICIES, tool=TOOLS, arguments=CALLS)
def test_a_child_never_has_more_than_its_parent(
    parent: Policy, child: Policy, tool: str, arguments: dict[str, Any]
) -> None:
    both = STRICTNESS[decide(narrow(parent, child), tool, arguments).verdict]
    alone = [STRICTNESS[decide(each, tool, arguments).verdict] for each in (parent, child)]
    assert both == max(alone)


@given(policy=POLICIES, rules=st.lists(RULES, max_size=4), tool=TOOLS, arguments=CALLS)
def test_more_rules_never_lift_a_denial(
    policy: Policy, rules: list[PermissionRule], tool: str, arguments: dict[str, Any]
) -> None:
    if decide(policy, tool, arguments).rule is not None and decide(policy, tool, arguments).verdict == "deny":
        assert decide(extend(policy, rules), tool, arguments).verdict == "deny"


@given(rules=st.lists(RULES, max_size=6), tool=TOOLS, arguments=CALLS)
def test_rules_that_do_not_widen_never_allow_more(
    rules: list[PermissionRule], tool: str, arguments: dict[str, Any]
) -> None:
    kept = [rule for rule in rules if rule not in widening_rules(rules)]
    before, after = (decide(each, tool, arguments).verdict for each in (DEFAULT, extend(DEFAULT, kept)))
    assert STRICTNESS[after] >= STRICTNESS[before]


@given(policy=POLICIES, order=st.randoms(use_true_random=False), tool=TOOLS, arguments=CALLS)
def test_the_order_of_rules_means_nothing(policy: Policy, order: Any, tool: str, arguments: dict[str, Any]) -> None:
    rules = list(policy.rules)
    order.shuffle(rules)
    shuffled = Policy(rules=tuple(rules), otherwise=policy.otherwise, above=policy.above)
    assert decide(shuffled, tool, arguments).verdict == decide(policy, tool, arguments).verdict


def test_a_definition_holds_a_policy_as_texts_or_records() -> None:
    policy = read_policy({"allow": ["read-file"], "deny": ["exec"], "rules": [{"tool": "fetch", "verdict": "deny"}]})
    child = narrow(DEFAULT, policy)
    assert verdict(child, "read-file", file_path="a") == "allow"
    assert verdict(child, "grep", pattern="x") == "allow", "where it says nothing, its parent does"
    assert run(child, "ls") == "deny"
    assert verdict(child, "fetch", url="https://a.example") == "deny"
    assert verdict(narrow(DEFAULT, read_policy({"allow": ["exec"]})), "exec", command="ls") == "ask"
    for wrong in ({"allow": "x"}, {"alow": []}, {"deny": ["()"]}, {"rules": [{"tool": "x"}]}, {"allow": ["exec()"]}):
        with pytest.raises(InvalidInput):
            read_policy(wrong)


@given(text=st.text(alphabet="ab*\\", max_size=8))
def test_a_backslash_takes_the_meaning_of_a_star_away(text: str) -> None:
    pattern = text.replace("\\", "\\\\").replace("*", "\\*")
    assert wild_matches(pattern, text)
    assert not wild_matches(pattern, text + "a")


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not wild_matches("*a" * 500 + "b", "a" * 20_000)


SETTINGS = PermissionsConfig(allow=("exec(git status*)", "read-file(docs/**)"), ask=("grep",), deny=("fetch",))


def test_denials_of_settings_apply_at_once_and_allowances_wait_for_consent(tmp_path: Path, trust_file: Path) -> None:
    before = policy_of(SETTINGS, is_granted=False)
    assert (run(before, "git status"), verdict(before, "grep", pattern="x")) == ("ask", "ask")
    asked = decide(before, "exec", {"command": "git status"})
    assert asked.reason.endswith("exec(git status*) of this folder would allow it, and waits for `clew trust`")
    assert "waits" not in decide(before, "exec", {"command": "git push"}).reason
    assert verdict(before, "fetch", url="https://a.example") == "deny"
    wish = permissions_wish(SETTINGS, tmp_path)
    assert wish is not None
    assert wish.summary == "lets agents do without asking: exec(git status*)"
    trust = Trust.open()
    trust.grant([wish])
    assert run(policy_of(SETTINGS, is_granted=trust.holds(wish)), "git status") == "allow"
    other = permissions_wish(PermissionsConfig(allow=("exec(*)",)), tmp_path)
    assert other is not None
    assert not trust.holds(other), "later allowances need their own consent"
    assert permissions_wish(PermissionsConfig(deny=("exec",), allow=("read-file",)), tmp_path) is None


def test_a_whole_tool_in_the_settings_replaces_the_default_but_not_its_denials() -> None:
    policy = policy_of(PermissionsConfig(allow=("exec", "read-file"), ask=("grep",)), is_granted=True)
    assert (run(policy, "make test"), verdict(policy, "grep", pattern="x")) == ("allow", "ask")
    assert verdict(policy, "read-file", file_path=".env") == "deny"
    assert verdict(policy, "write-file", file_path="a.txt") == "ask"
    assert verdict(policy_of(PermissionsConfig(ask=("*",)), is_granted=True), "read-file", file_path="a") == "ask"


def test_permissions_are_read_from_the_settings_of_a_folder(tmp_path: Path) -> None:
    plant(tmp_path, {"config.toml": '[permissions]\nallow = ["exec(make *)"]\ndeny = ["write-file(vendor/**)"]\n'})
    settings = read_config(tmp_path).permissions
    assert [rule.as_text() for rule in rules_of(settings)] == ["exec(make *)", "write-file(vendor/**)"]
    with pytest.raises(ConfigError, match=r"permissions\.ask: 'exec\(' has a bracket that is not closed"):
        rules_of(PermissionsConfig(ask=("exec(",)))


def test_a_rule_about_an_unknown_tool_is_reported_with_the_probable_name() -> None:
    settings = PermissionsConfig(allow=("exec(ls)", "read-*"), deny=("fech", "*"))
    (told,) = find_strays(settings, ["exec", "fetch", "read-file"])
    assert told.startswith("permissions.deny: 'fech' matches no tool. Did you mean fetch?")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fetch(", "has a bracket that is not closed"),
        ("fetch()", "has nothing between its brackets"),
        ("  ", "is empty"),
        ("two words", "is not the name of a tool"),
    ],
)
def test_the_error_of_an_invalid_rule_has_the_reason(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_rule(text, "deny")
