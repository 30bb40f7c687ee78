"""The command itself: help, usage, errors, exit codes, signals and pipes."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.cli import main
from clew.cli.command_table import COMMANDS, CliCommand, Group, find_command
from clew.cli.options import Here
from tests.cli.conftest import COMMAND, PATIENCE, Clew, start

LEAVES = [
    (words, command)
    for entry in COMMANDS
    for words, command in (
        [((entry.name,), entry)]
        if isinstance(entry, CliCommand)
        else [((entry.name, one.name), one) for one in entry.commands]
    )
]

LIGHT = """
import sys
from clew.cli import main
assert main(["--help"]) == 0
heavy = {"cyclopts", "rich", "msgspec", "apsw", "numpy", "asyncio", "httpx"} & set(sys.modules)
sys.exit(f"loaded for help: {heavy}" if heavy else 0)
"""


WITHOUT_FOLDER = (
    "clew.cli.commands.demo:demo",
    "clew.cli.commands.completion:completion",
    "clew.cli.commands.config:schema",
)
WITHOUT_JSON = (
    "clew.cli.servers.mcp:serve",
    "clew.cli.commands.completion:completion",
    "clew.cli.commands.config:schema",
)
"""Commands whose output is a protocol of its own."""


def test_help_lists_every_command_and_shows_examples(clew: Clew) -> None:
    result = clew("--help")
    assert result.code == 0
    for entry in COMMANDS:
        assert f"  {entry.name} " in result.out
        assert entry.summary in result.out
    assert "Examples:" in result.out
    assert clew().out == clew("-h").out == result.out


@pytest.mark.parametrize(
    "group", [entry for entry in COMMANDS if isinstance(entry, Group)], ids=lambda group: group.name
)
def test_a_group_lists_its_commands(clew: Clew, group: Group) -> None:
    page = clew(group.name, "--help").out
    assert group.default or clew(group.name).out == page
    assert all(command.summary in page for command in group.commands)


@pytest.mark.parametrize(
    ("words", "command"), LEAVES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_the_help_of_a_command_says_what_the_table_and_the_code_say_and_has_an_example(
    clew: Clew, words: tuple[str, ...], command: CliCommand
) -> None:
    page = clew(*words, "--help").out
    assert page.startswith(f"Usage: clew {' '.join(words)}")
    assert f"\n{command.summary}\n" in page
    assert page.partition("Options:")[0].count(f"clew {' '.join(words)}") > 1
    assert "--folder" in page or command.target in WITHOUT_FOLDER
    assert clew("help", *words).out == page
    assert not page.endswith("\n\n")
    assert find_command(words) is command
    module, _, function = command.target.partition(":")
    assert getattr(import_module(module), function).__doc__.startswith(command.summary)
    assert "\n  --json " in page or command.target in WITHOUT_JSON
    usage = re.sub(r"\[(\w+\.\.\.)\]", r"\1", page.splitlines()[0])  # any number, none among them
    assert usage == " ".join(["Usage: clew", *words, "[OPTIONS]", *arguments_of(command)])
    about = page.partition("\nOptions:")[0].splitlines()[1:]
    examples = [line for line in about if line.lstrip().startswith(f"clew {' '.join(words)}")]
    assert all(line.startswith("    ") for line in examples)
    assert examples or any(f"clew {' '.join(words)}" in line and line.startswith("    ") for line in about)


def arguments_of(command: CliCommand) -> list[str]:
    """The arguments of a command as its usage spells them."""
    module, _, function = command.target.partition(":")
    parameters = inspect.signature(getattr(import_module(module), function)).parameters.values()
    spelled = {
        inspect.Parameter.POSITIONAL_ONLY: lambda one: (
            one.name.upper() if one.default is one.empty else f"[{one.name.upper()}]"
        ),
        inspect.Parameter.VAR_POSITIONAL: lambda one: f"{one.name.upper()}...",
    }
    return [spelled[one.kind](one) for one in parameters if one.kind in spelled]


def test_help_is_also_a_word(clew: Clew) -> None:
    assert clew("help").out == clew("--help").out
    assert clew("help", "trail").out == clew("trail", "help").out == clew("trail", "--help").out
    assert clew("trail", "help", "ls").out == clew("trail", "ls", "--help").out
    unknown = clew("help", "nothing")
    assert (unknown.code, 'Unknown command "nothing"' in unknown.err) == (2, True)
    looked_for = clew("trail", "search", "help")
    assert "there is no trail" in looked_for.err


def test_help_loads_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)


def test_version_is_the_version(clew: Clew) -> None:
    result = clew("--version")
    assert (result.code, result.out) == (0, f"{sys.modules['clew'].__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "said", "page"),
    [
        (["nothing"], 'Unknown command "nothing"', "`clew --help`"),
        (["trail", "lst"], 'Did you mean "ls"', "`clew trail --help`"),
        (["skills", "lnit"], 'Did you mean "lint"', "`clew skills --help`"),
        (["trail", "ls", "--schemas", "x"], "--schemas", "`clew trail ls --help`"),
        (["trail", "ls", "--scope", "hr"], "Did you mean --scopes?", "`clew trail ls --help`"),
        (["token", "--scope", "hr"], "Did you mean --scopes?", "`clew token --help`"),
        (["trail", "ls", "--limit", "many"], "--limit", "`clew trail ls --help`"),
        (["trail", "show"], "ID", "`clew trail show --help`"),
        (["trail", "search", "x", "--ranking", "best"], "--ranking", "`clew trail search --help`"),
        (["secret", "put", "name", "value"], "value", "`clew secret put --help`"),
        (["up", "--port", "x"], "--port", "`clew up --help`"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_mistake_and_a_page(
    clew: Clew, arguments: list[str], said: str, page: str
) -> None:
    result = clew(*arguments)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("clew: ")
    assert said in result.err
    assert page in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("trail ls --since yesterday", "--since: 'yesterday' is neither a period nor a time. For example 30m"),
        ("trail export --until 2026-13-01", "--until: '2026-13-01' is neither a period nor a time"),
        ("trail ls --since 1h --until 2h", "--since: '1h' is not before --until '2h'"),
        ("trail ls --limit 0", "limit: must be between 1 and"),
        ("trail search x --limit 5000", "limit: must be between 1 and"),
        ("trail tail --where x", "--where: 'x' is not key=value"),
        ("trail put --title x --ttl soon", "--ttl: 'soon' is neither a period nor a time"),
        ("trail put --context {}", "--context: needs a --title"),
        ("trail edit 123456 --set x", "--set: 'x' is not key=value"),
        ("trail show 123", "ID: '123' is too short"),
        ("trail rm", "ID: is missing"),
        ("trail export --json", "--json: needs a file"),
        ("dlq ls --limit 0", "--limit: must be between 1 and"),
        ("dlq retry", "ID: is missing"),
        ("dlq retry 1-1 --all", "--all: cannot be combined with an ID"),
        ("secret rm", "NAME: is missing"),
        ("token --minutes 0", "--minutes: must be between 1 and"),
        ("token --role king", "roles: 'king' is not a role"),
        ("up --port 99999", "--port: server.port must be a whole number from 0 to 65535, not 99999"),
        ("trail ls --owner a\tb", "--owner: 'a\\tb' must be 1 to 200 characters without spaces"),
        ("trail ls --scopes a\tb", "--scopes: each must be 1 to 200 characters without spaces"),
    ],
)
def test_values_that_an_option_cannot_have_are_wrong_usage(
    clew: Clew, put: Callable[..., str], arguments: str, said: str
) -> None:
    put("here")
    result = clew(*arguments.split(" "))
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert result.err.startswith(f"clew: {said}")


@pytest.mark.parametrize(
    "arguments", [["trail", "ls"], ["trail", "tail"], ["hygiene", "run"], ["secret", "ls"], ["token"]]
)
def test_without_a_trail_nothing_is_made_and_the_next_step_is_reported(
    clew: Clew, folder: Path, arguments: list[str]
) -> None:
    result = clew(*arguments)
    assert (result.code, result.out) == (1, "")
    assert "clew up" in result.err
    assert len(result.err.splitlines()) == 1
    assert not folder.exists()


def test_the_folder_above_is_recognised_as_a_mistake(clew: Clew, put: Callable[..., str], folder: Path) -> None:
    put("here")
    result = clew("trail", "ls", "--folder", str(folder.parent))
    assert f"Did you mean --folder {folder}?" in result.err


def test_an_unforeseen_error_is_one_line_and_a_traceback_only_on_demand(
    clew: Clew, put: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("here")

    def fail(self: Here, flags: Any = None) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(Here, "config", fail)
    result = clew("trail", "ls")
    assert result.code == 1
    assert result.err == "clew: unforeseen ZeroDivisionError: by nought. Set CLEW_DEBUG=1 to see where it comes from\n"
    monkeypatch.setenv("CLEW_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["trail", "ls"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_one_line(clew: Clew, put: Callable[..., str], folder: Path) -> None:
    put("here")
    (folder / "config.toml").chmod(0)
    result = clew("trail", "ls")
    assert (result.code, result.err) == (1, f"clew: {folder / 'config.toml'}: Permission denied\n")


@pytest.mark.parametrize(
    "text", ["port = 1", "owner = ", "[server]\nport = 99999", "owner = 'a b'", "embedder = 'gpt'", "trail = 'x://'"]
)
def test_settings_that_cannot_be_used_are_one_line(
    clew: Clew, put: Callable[..., str], folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("here")
    monkeypatch.delenv("CLEW_EMBEDDER")
    (folder / "config.toml").write_text(text)
    result = clew("trail", "ls")
    assert (result.code, len(result.err.splitlines())) == (1, 1)


def test_flags_win_over_the_environment_and_that_over_the_file(
    clew: Clew, put: Callable[..., str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("here")
    owners = []
    (folder / "config.toml").write_text('owner = "file"')
    owners.append(clew("trail", "show", put("1"), "--full", "--json").json["owner_id"])
    monkeypatch.setenv("CLEW_OWNER", "environment")
    owners.append(clew("trail", "show", put("2"), "--full", "--json").json["owner_id"])
    flagged = put("3", "--owner", "flag")
    owners.append(clew("trail", "show", flagged, "--full", "--json", "--owner", "flag").json["owner_id"])
    assert owners == ["file", "environment", "flag"]


def test_a_reader_that_goes_away_ends_the_command_without_a_word(put: Callable[..., str], clew: Clew) -> None:
    lines = b"".join(json.dumps({"title": f"t{at}", "context": {"x": "y" * 500}}).encode() + b"\n" for at in range(400))
    assert clew("trail", "put", stdin=lines).code == 0
    with start("trail", "export") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "header" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE) == 141


@pytest.mark.parametrize(
    ("words", "takes"),
    [
        (["trust"], "[NAMES...]"),
        (["chat"], "[MESSAGE...]"),
        (["mcp", "import"], "[FILES...]"),
        (["mcp", "add"], "NAME [COMMAND...]"),
        (["mcp", "approve"], "SERVER [TOOLS...]"),
        (["ask"], "QUERY..."),
    ],
)
def test_the_usage_shows_optional_names_in_brackets(clew: Clew, words: list[str], takes: str) -> None:
    assert clew(*words, "--help").lines[0] == " ".join(["Usage: clew", *words, "[OPTIONS]", takes])


def test_ls_and_list_are_the_same_command(clew: Clew, put: Callable[..., str]) -> None:
    put("here")
    for group in ["trail", "mcp", "rules", "dlq", "secret", "skills", "agents", "domains"]:
        one, other = clew(group, "ls"), clew(group, "list")
        assert one == other
        assert one.code == 0
        assert clew("help", group, "ls").out == clew("help", group, "list").out


def test_a_listing_into_head_ends_without_a_word(put: Callable[..., str], clew: Clew) -> None:
    lines = b"".join(json.dumps({"title": f"t{at}" * 60, "context": {}}).encode() + b"\n" for at in range(1000))
    assert clew("trail", "put", stdin=lines).code == 0
    command = " ".join([*map(shlex.quote, COMMAND), "trail ls --limit 1000 | head -n 2; exit ${PIPESTATUS[0]}"])
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert "t999" in done.stdout


def test_ctrl_c_ends_a_command_without_a_word(put: Callable[..., str]) -> None:
    put("here", "--tag", "mine")
    with start("trail", "tail", "--tag", "mine") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "here" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_output_that_the_encoding_cannot_hold_is_spelled_out(
    put: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("Zürich ✓")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with start("trail", "ls", "--limit", "1") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.count("Error")) == (0, 0)
    assert "Z\\xfcrich \\u2713" in out


def test_python_m_clew_is_clew() -> None:
    done = subprocess.run([*COMMAND, "--version"], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.strip() == clew.__version__


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "limits", "--owner", "a\nb"),
        ("ask", "limits", "--owner", "\x1b[2J\r\u2028a"),
        ("ask", "limits", "--folder", "no\nsuch/fol\x1bder"),
        ("ask", "limits", "--folder", "fi\nle"),
        ("ask", "limits", "--scopes", "a\nb"),
        ("ask", "limits", "--domain", "a\nb"),
        ("ask", "limits", "--handle", "a\n\x07b"),
        ("ask", "limits", "--per-domain", "a\nb"),
        ("trail", "show", "a\nb", "c\nd"),
        ("trail", "import", "fi\nle/fi\rle"),
    ],
)
def test_an_error_is_one_line_with_any_arguments(clew: Clew, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "fi\nle").write_text("")
    result = clew(*arguments)
    assert result.code in (1, 2)
    assert result.err.startswith("clew: ")
    assert result.err.splitlines() == [result.err[:-1]]
    assert result.err[:-1].isprintable()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ask", "--folder=", "limits"), "--folder: is empty"),
        (("trail", "ls", "--folder", ""), "--folder: is empty"),
        (("ask", "limits", "--owner", "a\udcff"), "argument 4: is not valid UTF-8"),
        (("ask", "limits\udcff"), "argument 2: is not valid UTF-8"),
    ],
)
def test_a_folder_without_a_name_and_bytes_that_are_no_text_are_refused(
    arguments: tuple[str, ...],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert named in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
