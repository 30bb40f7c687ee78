"""A shell line is split into the commands that would run, or marked as unclear."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.tools.permissions.shell_commands import split_command


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("git status", ["git status"]),
        ("git   status\t--short", ["git status --short"]),
        ("git status; rm -rf /", ["git status", "rm -rf /"]),
        ("a && b || c | d & e\nf |& g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("echo $(rm x)", ["echo $()", "rm x"]),
        ('echo "$(rm x; ls)" y', ["echo $() y", "rm x", "ls"]),
        ("echo `rm x`", ["echo $()", "rm x"]),
        ('echo "a `rm x` b"', ["echo 'a $() b'", "rm x"]),
        ("diff <(rm x) y", ["diff $() y", "rm x"]),
        ("FOO=1 git status", ["FOO=1", "git status"]),
        ("LD_PRELOAD=x.so A=2 git status", ["LD_PRELOAD=x.so", "A=2", "git status"]),
        ("r''m \"x\"", ["rm x"]),
        ("r\\m x", ["rm x"]),
        ("ec\\\nho hi", ["echo hi"]),
        ("git 'status x'", ["git 'status x'"]),
        ("echo 'a; rm x' \"b | c\"", ["echo 'a; rm x' 'b | c'"]),
        ("git status 2>&1 >/dev/null", ["git status"]),
        ("ls '$(rm x)'", ["ls '$(rm x)'"]),
        ("echo $HOME *.py", ["echo $HOME *.py"]),
        ("", []),
    ],
)
def test_a_clear_line_is_split(line: str, parts: list[str]) -> None:
    found = split_command(line)
    assert list(found.parts) == parts
    assert found.is_clear


@pytest.mark.parametrize(
    "line",
    [
        *(
            "git status > x",
            "git status >> x",
            "cat < x",
            "git status &> x",
            "git status >/dev/nullx",
            "cat <<EOF\nx\nEOF",
        ),
        *("$X y", "${X} y", '"$X" y', "$(echo rm) x", "`echo rm` x", "~/x", "./*.sh", "{rm,x}", "(rm x)", "{ rm x; }"),
        *(
            "if true; then rm x; fi",
            "for a in b; do rm $a; done",
            "echo 'open",
            'echo "open',
            "echo \\",
            "git status # x",
        ),
        *("echo $((1+1))", "echo ${x:-$(rm y)}", "echo $'\\x41'", "eval rm x", ". x", "exec rm x", "f() { rm x; }; f"),
        *("echo $(echo ')' ; rm x)", "echo `echo \\`rm\\``", "alias ls=rm", "trap rm EXIT", "x" * 30_000, "! rm x"),
    ],
)
def test_an_ambiguous_line_is_unclear(line: str) -> None:
    assert not split_command(line).is_clear


@pytest.mark.parametrize(
    "line",
    [
        *("sudo rm -rf /", "/bin/rm -rf /", "env A=1 rm -rf /", "sh -c 'rm -rf /'", "bash -c 'cd /; rm -rf /'"),
        *("if true; then rm -rf /; fi", "(rm -rf /)", "xargs rm -rf /", "x=$(( $(rm -rf /) ))", "timeout 5 rm -rf /"),
        *("echo ${x:-$(rm -rf /)}", "nohup sudo rm -rf /", "while :; do rm -rf /; done", "X=$Y rm -rf /"),
    ],
)
def test_inner_commands_are_found(line: str) -> None:
    found = split_command(line)
    assert "rm -rf /" in (*found.parts, *found.inner)


@given(st.text(alphabet="ab '\"\\$(){}`;&|<>\n=#~*", max_size=60))
def test_no_line_raises(line: str) -> None:
    found = split_command(line)
    assert found.parts or not line.strip(" \t\r\n;&|") or not found.is_clear or "\\\n" in line or "/dev/null" in line
    assert all("\n" not in part or "'" in part for part in found.parts if found.is_clear)


@pytest.mark.parametrize(
    ("line", "parts", "is_clear"),
    [
        ("$(" * 9_000, 1, False),
        ("`" * 19_999, 1, False),
        ("sudo " * 3_900, 1, True),
        ("a;" * 9_000, 9_000, True),
        ("((" * 9_000, 1, False),
        ("'" * 19_999, 1, False),
        ("<" * 19_999, 1, False),
    ],
    ids=("substitutions", "backquotes", "sudo", "commands", "brackets", "quotes", "redirections"),
)
def test_a_long_hostile_line_is_split_or_unclear(line: str, parts: int, is_clear: bool) -> None:
    found = split_command(line)
    assert (len(found.parts), found.is_clear) == (parts, is_clear)


@pytest.mark.parametrize(
    "line",
    [
        "printf -v 'a[$(rm x)]' y",
        "printf '-va[$(rm x)]' y",
        "test -v 'a[$(rm x)]'",
        "[ ! -v 'a[$(rm x)]' ]",
        "let 'a[$(rm x)]=1'",
        "declare -i 'a=b[$(rm x)]'",
        "unset 'a[$(rm x)]'",
        "read -r 'a[$(rm x)]'",
        "p\\rintf -v 'a[$(rm x)]' y",
    ],
)
def test_variable_names_that_run_commands_are_unclear(line: str) -> None:
    assert not split_command(line).is_clear


@pytest.mark.parametrize("line", ["printf '%s' a", "test -f a", "cmd & wait"])
def test_plain_uses_of_such_builtins_are_clear(line: str) -> None:
    assert split_command(line).is_clear
