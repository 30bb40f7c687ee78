"""Commands run in the working folder, stream their output, and leave no process behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from clew.errors import InvalidInput, ToolFailure
from clew.tools.files.file_tools import file_tools
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.path_denials import MOST, Denials
from clew.tools.files.snapshots import Snapshots
from clew.tools.permissions.policy import DEFAULT, extend
from clew.tools.permissions.rules import parse_rule
from clew.tools.processes import run_process, safe_environment
from clew.tools.sandbox import open_sandbox
from clew.tools.search.search_tools import search_tools
from clew.tools.shell import MAX_SECONDS, shell_tools
from tests.tools.working_folder import ANN, HostRunner, Toolbox, plant

STUBBORN = "trap '' TERM HUP INT; echo $$ > {pid}; while :; do sleep 0.05; done"


def box(root: Path) -> Toolbox:
    return Toolbox(shell_tools(WorkingFolder(root), HostRunner()))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


@pytest.mark.req("PLA-10")
async def test_a_command_gives_its_code_its_output_and_its_time(tmp_path: Path) -> None:
    shown = await box(plant(tmp_path, {"sub/a": "x"})).call_json("exec", command="ls; echo oops >&2; exit 3", cwd="sub")
    assert (shown["exit_code"], shown["stdout"], shown["stderr"], shown["killed_by"]) == (3, "a\n", "oops\n", None)
    assert shown["seconds"] >= 0
    assert "error" not in shown


@pytest.mark.req("PLA-10")
async def test_a_command_that_sleeps_is_killed_at_its_time_with_all_that_it_started(tmp_path: Path) -> None:
    """The grandchild ignores every signal that can be ignored, and another has left for a session of its own."""
    plant(tmp_path, {"stubborn.sh": STUBBORN.format(pid="one"), "away.sh": STUBBORN.format(pid="two")})
    begun = "until [ -s one ] && [ -s two ]; do sleep 0.01; done; echo begun"
    command = f"rm -f one two; sh stubborn.sh & setsid sh away.sh & {begun}; sleep 1000"
    for timeout in (1.5, 8, 60):
        shown = await box(tmp_path).call_json("exec", command=command, timeout=timeout)
        if shown["stdout"]:
            break  # on a busy machine the first time may have been too short to begin
    assert (shown["killed_by"], shown["exit_code"], shown["stdout"]) == ("timeout", -signal.SIGKILL, "begun\n")
    assert f"longer than {timeout:g} seconds" in shown["error"]
    for name in ("one", "two"):
        assert not is_running(int((tmp_path / name).read_text()))


@pytest.mark.req("PLA-10")
async def test_a_cancelled_command_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    plant(tmp_path, {"stubborn.sh": STUBBORN.format(pid="one"), "away.sh": STUBBORN.format(pid="two")})
    running = asyncio.create_task(box(tmp_path).call("exec", command="setsid sh away.sh & sh stubborn.sh"))
    pids = [tmp_path / "one", tmp_path / "two"]
    await until(lambda: all(each.exists() and each.read_text().strip() for each in pids))
    running.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await running
    assert not any(is_running(int(each.read_text())) for each in pids)


async def test_background_processes_end_with_the_command(tmp_path: Path) -> None:
    shown = await box(tmp_path).call_json("exec", command="sleep 1000 & echo $!")
    assert (shown["exit_code"], shown["killed_by"]) == (0, None)
    assert not is_running(int(shown["stdout"]))


@pytest.mark.req("PLA-10")
async def test_output_is_streamed_while_the_command_runs(tmp_path: Path) -> None:
    """The command continues only after its first line was reported."""
    told: list[str] = []

    async def report(progress: float, total: float | None, text: str) -> None:
        told.append(text)
        (tmp_path / "go").touch()

    context = msgspec.structs.replace(ANN, report=report)
    command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second >&2"
    shown = await box(tmp_path).call_json("exec", context, command=command, timeout=60)
    assert told == ["first\n", "second\n"]
    assert (shown["stdout"], shown["stderr"]) == ("first\n", "second\n")


async def test_a_watcher_that_fails_ends_the_command(tmp_path: Path) -> None:
    async def report(progress: float, total: float | None, text: str) -> None:
        raise InvalidInput("report", "fails")

    context = msgspec.structs.replace(ANN, report=report)
    with pytest.raises(InvalidInput, match="fails"):
        await box(tmp_path).call("exec", context, command="echo $$ > pid; echo x; sleep 1000")
    assert not is_running(int((tmp_path / "pid").read_text()))


async def test_no_key_of_ours_reaches_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret-secret")
    monkeypatch.setenv("CLEW_TRUST", "/somewhere")
    shown = await box(tmp_path).call_json("exec", command="env")
    names = {line.partition("=")[0] for line in shown["stdout"].splitlines()}
    assert "PATH" in names
    assert not {"OPENAI_API_KEY", "CLEW_TRUST"} & names
    assert "OPENAI_API_KEY" not in safe_environment(os.environ)


async def test_escape_sequences_and_keys_do_not_come_through(tmp_path: Path) -> None:
    key = "ghp_" + "c3" * 20
    told: list[str] = []

    async def report(progress: float, total: float | None, text: str) -> None:
        told.append(text)

    command = rf"printf '\033[31mred\033[0m \033]0;title\007 \033]52;c;aGk=\007bell\007 {key}\n'"
    shown = await box(tmp_path).call_json("exec", msgspec.structs.replace(ANN, report=report), command=command)
    for text in (shown["stdout"], "".join(told)):
        assert text == "red  bell [masked]\n"


async def test_long_output_keeps_its_beginning_and_its_end_and_says_what_is_left_out(tmp_path: Path) -> None:
    shown = await box(tmp_path).call_json("exec", command="seq 1 100000")
    assert shown["stdout"].startswith("1\n2\n3\n")
    assert shown["stdout"].endswith("99999\n100000\n")
    assert "bytes left out ...]" in shown["stdout"]
    assert shown["killed_by"] is None
    assert len(shown["stdout"]) < 61_000


async def test_a_flood_of_output_ends_the_command(tmp_path: Path) -> None:
    shown = await box(tmp_path).call_json("exec", command="yes", timeout=300)
    assert shown["killed_by"] == "output"
    assert "printed too much" in shown["error"]


async def test_output_of_any_bytes_is_text(tmp_path: Path) -> None:
    shown = await box(tmp_path).call_json("exec", command=r"printf 'a\377\000b\342\202'")
    assert shown["stdout"] == "a\ufffdb\ufffd"


@pytest.mark.parametrize("command", ["", "  ", "a\0b", "x" * 30_000, "echo \ud800"])
async def test_a_command_that_is_none_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(InvalidInput, match="command"):
        await box(tmp_path).call("exec", command=command)


@pytest.mark.parametrize("cwd", ["..", "/", "missing", "file"])
async def test_a_command_runs_within_the_folder_only(tmp_path: Path, cwd: str) -> None:
    with pytest.raises(InvalidInput):
        await box(plant(tmp_path, {"file": "x"})).call("exec", command="pwd", cwd=cwd)


def test_the_tool_says_what_it_takes_and_does(tmp_path: Path) -> None:
    tool = box(tmp_path).tools["exec"]
    assert not tool.effects.reads_only
    assert not tool.effects.repeats_safely
    assert not tool.effects.keyed
    assert tool.limits.seconds > MAX_SECONDS
    for wrong in (0, -1, MAX_SECONDS + 1, "soon"):
        with pytest.raises(InvalidInput):
            tool.check({"command": "ls", "timeout": wrong})


@pytest.mark.req("O13")
async def test_behind_a_sandbox_a_command_has_the_folder_and_nothing_of_what_is_kept_from_tools(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"sub/a": "x", ".env": "PASSWORD=1"})
    plant(tmp_path, {"outside": "secret"})
    sandbox = open_sandbox(production=False)
    if not sandbox.status().isolated:
        pytest.skip("this machine has no sandbox")
    tools = Toolbox(shell_tools(WorkingFolder(root), sandbox))
    told: list[str] = []

    async def report(progress: float, total: float | None, text: str) -> None:
        told.append(text)

    context = msgspec.structs.replace(ANN, report=report)
    shown = await tools.call_json("exec", context, command="ls; echo made > b; cat ../.env ../../outside", cwd="sub")
    assert shown["stdout"] == "a\n"
    assert (root / "sub/b").read_text() == "made\n"
    assert "PASSWORD" not in shown["stdout"] + shown["stderr"]
    assert "secret" not in shown["stdout"] + shown["stderr"]
    assert "".join(told).startswith("a\n")
    slept = await tools.call_json("exec", command="sleep 1000", timeout=1)
    assert slept["killed_by"] == "timeout"


async def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot start"):
        await run_process([str(tmp_path / "missing")], env={})


async def test_a_program_gets_its_input_and_may_leave_it_unread(tmp_path: Path) -> None:
    assert (await run_process(["cat"], env={"PATH": os.environ["PATH"]}, stdin=b"x" * 300_000)).stdout == b"x" * 300_000
    assert (await run_process(["true"], env={"PATH": os.environ["PATH"]}, stdin=b"x" * 300_000)).code == 0


@pytest.mark.req("PLA-10")
async def test_no_tool_shows_the_password_in_an_address(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {".git/config": "[remote]\n\turl = https://ann:t0ken9@example.com/x.git\n"}))
    tools = Toolbox((*shell_tools(folder, HostRunner()), *file_tools(folder, Snapshots()), *search_tools(folder)))
    for name, arguments in {
        "exec": {"command": "cat .git/config"},
        "read-file": {"file_path": ".git/config"},
        "grep": {"pattern": "example", "path": ".git/config"},
    }.items():
        shown = await tools.call(name, **arguments)
        assert "t0ken9" not in shown
        assert "https://ann:[masked]@example.com" in shown


async def test_behind_a_sandbox_what_a_policy_denies_is_out_of_reach_of_commands(tmp_path: Path) -> None:
    root = plant(tmp_path, {"private/deep/pay.txt": "IBAN 1", "open.txt": "IBAN 2", "a/b.ledger": "IBAN 3"})
    denials = Denials(
        extend(DEFAULT, [parse_rule(each, "deny") for each in ("*(private/**)", "*(**/*.ledger)")]), "exec"
    )
    assert {os.path.relpath(each, root) for each in denials.existing(str(root))} == {"private", "a/b.ledger"}
    sandbox = open_sandbox(production=False)
    if not sandbox.status().isolated:
        pytest.skip("this machine has no sandbox")
    tools = Toolbox(shell_tools(WorkingFolder(root), sandbox, denials=denials))
    shown = await tools.call_json("exec", command="cat open.txt private/deep/pay.txt a/b.ledger; grep -r IBAN .")
    assert "IBAN 2" in shown["stdout"]
    assert "IBAN 1" not in shown["stdout"]
    assert "IBAN 3" not in shown["stdout"]


async def test_too_many_denied_paths_are_reported(tmp_path: Path) -> None:
    root = plant(tmp_path, {f"{number}.ledger": "x" for number in range(MOST + 1)})
    denials = Denials(extend(DEFAULT, [parse_rule("*(*.ledger)", "deny")]), "exec")
    with pytest.raises(ToolFailure, match="too many"):
        denials.existing(str(root))
    assert Denials(DEFAULT, "exec").existing(str(root)) == ()
