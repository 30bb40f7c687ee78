"""Completion scripts load in their shells and complete."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import PATIENCE, Clew

LOADS = {
    "bash": ["bash", "--norc", "-c", 'source "$1" && complete -p clew', "bash"],
    "zsh": ["zsh", "-f", "-c", 'autoload -U compinit && compinit -D && source "$1"', "zsh"],
    "fish": ["fish", "--no-config", "-c", "source $argv[1]; complete -C 'clew upt'"],
}


@pytest.mark.parametrize("shell", sorted(LOADS))
def test_a_script_names_the_commands_and_loads(clew: Clew, shell: str, tmp_path: Path) -> None:
    script = clew("completion", shell)
    assert script.code == 0
    for command in ("ask", "connect", "uninstall", "blame-why"):
        assert command in script.out
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script was made, and not loaded")
    file = tmp_path / "script"
    file.write_text(script.out)
    done = subprocess.run([*LOADS[shell], str(file)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_commands_groups_and_options(clew: Clew, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed: its completion was not tried")
    file = tmp_path / "script"
    file.write_text(clew("completion", "bash").out)

    def complete(*words: str) -> set[str]:
        typed = " ".join(f"'{word}'" for word in words)
        code = f'source "{file}"; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _clew; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, timeout=PATIENCE)
        return set(done.stdout.split())

    assert "uninstall" in complete("clew", "un")
    assert {"list", "load", "lint"} <= complete("clew", "skills", "l")
    assert "--folder" in complete("clew", "ask", "--f")


ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -U compinit; compinit -D -u; bindkey '^I' complete-word; print RE''ADY"
zpty -r shell shown '*READY*'
for typed expected in 'clew unin' 'clew uninstall' 'clew skills imp' 'clew skills import'; do
  zpty -w -n shell "$typed"$'\\t'
  zpty -r shell shown "*$expected*"
  zpty -w -n shell $'\\C-u'
done
print done
"""
"""Types in a shell that looks for completions in a folder, and waits for what they complete to."""


def test_zsh_completes_commands_and_groups(clew: Clew, tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed: its completion was not tried")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_clew").write_text(clew("completion", "zsh").out)
    program = tmp_path / "try.zsh"
    program.write_text(ZSH)
    command = ["zsh", "-f", str(program), str(tmp_path / "functions")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_fish_completes_commands_groups_and_options(clew: Clew, tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed: its completion was not tried")
    file = tmp_path / "script"
    file.write_text(clew("completion", "fish").out)
    code = "source $argv[1]; for typed in 'clew un' 'clew skills l' 'clew ask --f'; complete -C $typed; end"
    command = ["fish", "--no-config", "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert {"uninstall", "list", "load", "lint", "--folder"} <= offered


def test_an_unknown_shell_is_refused_with_those_that_there_are(clew: Clew) -> None:
    refused = clew("completion", "tcsh")
    assert refused.code == 2
    assert "bash" in refused.err
