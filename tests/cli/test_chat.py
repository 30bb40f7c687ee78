"""`clew chat` with agents that really run, and a model that answers by a script."""

from __future__ import annotations

import json
import os
import pty
import select
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from clew.agents.steps import Said, Step
from clew.app import App
from clew.cli import INTERRUPTED
from clew.cli.chat_turn import without_old_pieces
from clew.trail.selector import Selector
from tests.cli.conftest import COMMAND, PATIENCE, Clew, Result, start

SCRIPT = """
- user: greet
  say: "Good \\x1b[31mmorning\\x1b[0m to you."
- user: what is in it
  say: I look.
  call: {read-file: {file_path: notes.txt}}
- expect: a blue kettle
  say: A blue kettle is in it.
- user: write it down
  call: {write-file: {file_path: out.txt, content: kettle}}
- say: That is all I can say.
- user: slowly
  delay: 0.2
  say: one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
- user: ponder
  delay: 3
  say: Hm.
- user: fail
  fault: refused
  times: 9
"""


@pytest.fixture
def script(folder: Path) -> Path:
    """A script in a folder with a file to read, in which writing has to be allowed."""
    (folder.parent / "notes.txt").write_text("a blue kettle\n")
    path = folder.parent / "script.yaml"
    path.write_text(SCRIPT)
    return path


Say = Callable[..., Result]


@pytest.fixture
def say(clew: Clew, script: Path) -> Say:
    def run(*arguments: str, **more: Any) -> Result:
        return clew("chat", *arguments, "--script", str(script), **more)

    return run


def events_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.lines]


def session_of(clew: Clew) -> str:
    (session,) = clew("chat", "--list", "--json").json["items"][:1]
    return str(session["id"])


@pytest.mark.req("RCR-40")
def test_one_question_is_answered_on_standard_output_and_leaves_the_five_records_in_order(
    say: Say, clew: Clew, in_trail: Callable[..., Any]
) -> None:
    result = say("please", "greet", "me")
    assert (result.code, result.out) == (0, "Good [31mmorning[0m to you.\n")
    session = session_of(clew)

    async def schemas(app: App) -> list[str]:
        page = await app.trail.records.list(Selector(session=session), by=app.me, limit=100, oldest_first=True)
        wanted = ("user.message.v1", "agent.context.v1", "tool.request.v1", "tool.response.v1", "agent.response.v1")
        return [str(each.schema_name) for each in page.items if each.schema_name in wanted]

    assert in_trail(schemas) == [
        "user.message.v1",
        "agent.context.v1",
        "tool.request.v1",
        "tool.response.v1",
        "agent.response.v1",
    ]


def test_tools_are_told_as_they_are_called_beside_the_answer(say: Say) -> None:
    result = say("what is in it?")
    assert (result.code, result.out) == (0, "A blue kettle is in it.\n")
    lines = [line for line in result.err.splitlines() if line.startswith(("→", "←"))]
    assert lines[0] == '→ read-file {"file_path":"notes.txt"}'
    assert lines[1].startswith("← read-file ")
    assert " ms " in lines[1]
    assert "tokens read" in result.err


def test_json_is_one_object_for_each_step_from_message_to_answer(say: Say) -> None:
    steps = events_of(say("what is in it?", "--json"))
    kinds = [step["type"] for step in steps]
    assert kinds[0] == "message"
    assert kinds[-1] == "answer"
    assert [kind for kind in kinds if kind.startswith("tool")] == ["tool_call", "tool_result"]
    assert steps[-1]["text"] == "A blue kettle is in it."
    assert len({(step["session"], step["run"]) for step in steps}) == 1


def test_what_needs_permission_is_denied_where_nobody_can_be_asked(say: Say, folder: Path) -> None:
    result = say("write it down")
    assert result.out == "That is all I can say.\n"
    assert "Denied: write-file. Allow it with --allow write-file" in result.err
    assert not (folder.parent / "out.txt").exists()


@pytest.mark.parametrize("pattern", ["write-file", "write-*"])
def test_what_is_allowed_runs(say: Say, folder: Path, pattern: str) -> None:
    assert say("write it down", "--allow", pattern).code == 0
    assert (folder.parent / "out.txt").read_text() == "kettle"


def test_a_session_is_listed_and_gone_on_with_by_the_end_of_its_id(say: Say, clew: Clew) -> None:
    say("greet me")
    session = session_of(clew)
    result = say("what is in it?", "--session", session[-8:])
    assert result.code == 0
    assert "you: greet me" in result.err
    assert session_of(clew) == session
    assert clew("chat", "--list").lines[0].split("\t")[::3] == [session, "greet me"]


def test_piped_lines_are_messages_of_one_session(say: Say, clew: Clew) -> None:
    result = say(stdin=b"greet me\n\nwhat is in it?\n")
    assert (result.code, result.lines[-1]) == (0, "A blue kettle is in it.")
    assert len(clew("chat", "--list").lines) == 1


def test_a_model_that_refuses_stops_the_run_with_the_reason(say: Say) -> None:
    result = say("please fail")
    assert result.code == 1
    assert "refused" in result.out


def test_without_a_model_one_line_says_how_to_add_one_and_the_catalog_answers(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    (folder.parent / "README.md").write_text("# Kettles\n\nA kettle is mended with patience.\n")
    result = clew("chat", "how is a kettle mended")
    assert result.code == 0
    new, told_how = result.err.splitlines()
    assert new.startswith("A new trail: ")
    assert "no model is configured" in told_how
    assert "[models]" in told_how
    assert "repo://" in result.out
    assert "Handle" not in result.out
    assert "repo" in clew("chat", "zzyzx qwrtp").out
    told = clew("chat", "kettle", "--json").json
    assert (told["type"], "[models]" in told["reason"]) == ("without_model", True)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("qwen3", "Write provider:model, such as ollama:qwen3"),
        ("nowhere:x", "there is no provider 'nowhere'"),
        ("lab:x", "you have not agreed that the provider lab"),
        ("openai:x", "OPENAI_API_KEY is not set"),
    ],
)
def test_a_model_that_is_configured_and_cannot_be_used_is_an_error(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text('[providers.lab]\nbase_url = "https://models.example.org/v1"\n')
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CLEW_MODELS_DEFAULT", model)
    result = clew("chat", "hello")
    assert (result.code, result.out) == (1, "")
    assert said in result.err
    doctor = {each["name"]: each for each in clew("doctor", "--json").json["findings"]}
    assert doctor["models"]["level"] == "wrong"


def test_the_sessions_of_a_folder_without_a_trail_are_none_and_none_is_made(clew: Clew, folder: Path) -> None:
    assert clew("chat", "--list", "--json").json == {"items": []}
    assert not folder.exists()


def test_what_is_wrong_in_a_script_is_told_with_its_file(clew: Clew, folder: Path) -> None:
    (folder.parent / "odd.yaml").write_text("- says: hello\n")
    result = clew("chat", "hello", "--script", "odd.yaml")
    assert result.code == 2
    assert "odd.yaml" in result.err


AGENT = "---\ndescription: Decides.\ntools: [read-file]\n---\nYou decide whether the ferry sails.\n"


def test_an_agent_of_markdown_says_that_it_waits_that_it_changed_or_that_it_is_broken(
    say: Say, clew: Clew, folder: Path
) -> None:
    path = folder / "agents" / "captain.md"
    path.parent.mkdir(parents=True)
    path.write_text(AGENT)
    assert "you have not agreed to it yet" in say("greet me", "--agent", "captain").err
    clew("trust", "--yes")
    assert say("greet me", "--agent", "captain").code == 0
    path.write_text(AGENT + "Take your time.\n")
    changed = say("greet me", "--agent", "captain")
    assert changed.code == 1
    assert "it has changed since you agreed to it. Look at it and agree: `clew trust`" in changed.err
    (told,) = clew("agents", "--json").json["kept_back"]
    assert (told["name"], "changed" in told["reason"]) == ("captain", True)
    assert "captain does not run: it has changed" in clew("agents").err
    path.write_text("---\ntools: {\n---\n")
    assert "captain does not run: " in clew("agents").err
    assert "captain.md" in say("greet me", "--agent", "captain").err


def test_rules_about_no_tool_and_rules_that_wait_for_consent_are_told(say: Say, clew: Clew, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text('[permissions]\nallow = ["write-file(*.txt)"]\ndeny = ["fech"]\n')
    result = say("write it down")
    assert "permissions.deny: 'fech' is about no tool. Did you mean fetch?" in result.err
    assert "the rule write-file(*.txt) of this folder would allow it, and waits for `clew trust`" in result.err
    assert not (folder.parent / "out.txt").exists()
    assert "  permissions: lets agents do without asking: write-file(*.txt)" in clew("trust", "--yes").out
    rules = [each for each in clew("doctor", "--json").json["findings"] if each["name"] == "rules"]
    assert "Did you mean fetch?" in rules[0]["what"]
    assert "waits for" not in say("write it down").err
    assert (folder.parent / "out.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--list", "hello"), "--list"),
        (("hello", "--agent", "nobody"), "clew agents"),
        (("hello", "--session", "none-such"), "clew chat --list"),
        (("hello", "--last", "-1"), "--last"),
        (("",), "message"),
        (("hello", "--script", "nowhere.yaml"), "--script"),
        (("hello", "--adapter", "nowhere.py"), "--adapter"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    clew: Clew, script: Path, arguments: tuple[str, ...], told: str
) -> None:
    given = arguments if "--script" in arguments else (*arguments, "--script", str(script))
    result = clew("chat", *given)
    assert result.code in (1, 2)
    assert told in result.err
    assert result.err.count("clew: ") == 1


ADAPTER = '''
from dataclasses import replace
import msgspec

class Loud:
    """Shouts what the agent says."""

    def __init__(self, agent):
        self._agent = agent
        self.name, self.registry = agent.name, agent.registry

    async def process(self, input):
        async for step in self._agent.process(input):
            is_answer = type(step).__name__ == "Answered"
            yield msgspec.structs.replace(step, text=step.text.upper()) if is_answer else step

    async def capabilities(self):
        return await self._agent.capabilities()

    async def start(self):
        await self._agent.start()

    async def stop(self):
        await self._agent.stop()


class adapter:
    name = "loud"

    def wrap(self, agent, config):
        return Loud(agent)
'''


@pytest.mark.req("PLA-20")
@pytest.mark.req("PLA-19")
def test_an_adapter_of_a_file_is_put_around_the_same_agent(say: Say, folder: Path) -> None:
    (folder.parent / "loud.py").write_text(ADAPTER)
    assert say("what is in it?", "--adapter", "loud.py").out == "A BLUE KETTLE IS IN IT.\n"
    assert say("what is in it?").out == "A blue kettle is in it.\n"


def test_what_models_took_is_told_by_agent_and_model(say: Say, clew: Clew) -> None:
    assert "No model was called yet" in clew("usage").err or clew("usage").code == 1
    say("what is in it?")
    rows = [line.split("\t") for line in clew("usage").lines]
    assert [row[0] for row in rows] == ["total", "agent", "session", "layer", "model"]
    assert rows[1][1:3] == ["assistant", "2"]
    assert clew("usage", "--by", "agent", "--json").json["assistant"]["calls"] == 2
    assert clew("usage", "--agent", "nobody", "--json").json["total"]["calls"] == 0


def test_agents_are_listed_with_their_calls_and_what_keeps_them_from_working(say: Say, clew: Clew) -> None:
    say("what is in it?")
    found = {each["agent_id"]: each for each in clew("agents", "--json").json["items"]}
    assert (found["assistant"]["calls"], found["assistant"]["circuit"]) == (2, "closed")
    assert found["assistant"]["problem"]
    assert "assistant" in clew("agents").out


def test_a_circuit_that_opened_is_told(say: Say, clew: Clew) -> None:
    for _ in range(5):
        say("please fail")
    found = {each["agent_id"]: each for each in clew("agents", "--json").json["items"]}
    assert (found["assistant"]["circuit"], found["assistant"]["error_rate"]) == ("open", 1.0)


# -- at a terminal -----------------------------------------------------------------------------------------


class Terminal:
    """A command on a terminal: what it shows, and keys typed when it shows something."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvp(COMMAND[0], [*COMMAND, *arguments])
        self.shown = ""
        self._seen = 0

    def until(self, text: str) -> None:
        """Wait until it shows this, after what was waited for before."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown[self._seen :]:
            assert time.monotonic() < deadline, self.shown
            assert self._read(), self.shown
        self._seen = self.shown.index(text, self._seen) + len(text)

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def end(self) -> int:
        """Wait for its end; its exit code."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        try:
            if not select.select([self._fd], [], [], PATIENCE)[0]:
                return False
            more = os.read(self._fd, 4_096)
        except OSError:
            return False
        self.shown += more.decode("utf-8", "replace")
        return bool(more)


forks = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@forks
def test_at_a_terminal_answers_stream_permission_is_asked_and_ctrl_d_ends(script: Path, folder: Path) -> None:
    terminal = Terminal("chat", "--script", str(script))
    terminal.until("you> ")
    terminal.type("write it down\r")
    terminal.until("May it write out.txt?")
    terminal.until("[o]nce")
    terminal.type("perhaps\r")
    terminal.until("Please say")
    terminal.type("o\r")
    terminal.until("That is all I can say.")
    terminal.until("you> ")
    terminal.type("greet me\r")
    terminal.until("Good [31mmorning[0m to you.")
    terminal.until("you> ")
    terminal.type("\x04")
    terminal.until("clew chat --session")
    assert terminal.end() == 0
    assert (folder.parent / "out.txt").read_text() == "kettle"
    assert "\x1b[31mmorning" not in terminal.shown


@forks
def test_one_question_at_a_terminal_asks_too_and_what_was_allowed_always_can_be_taken_back(
    script: Path, folder: Path, clew: Clew
) -> None:
    terminal = Terminal("chat", "write it down", "--script", str(script))
    terminal.until("May it write out.txt?")
    terminal.until("session and always allow: write-file(out.txt)")
    terminal.until("[o]nce, [s]ession, [a]lways, [d]eny: ")
    terminal.type("a\r")
    terminal.until("That is all I can say.")
    assert terminal.end() == 0
    assert "Ctrl-D" not in terminal.shown
    (folder.parent / "out.txt").unlink()
    assert "Denied" not in clew("chat", "write it down", "--script", str(script)).err
    (allowed,) = clew("agents", "--permissions", "--json").json["items"]
    assert (allowed["answer"], allowed["pattern"]) == ("always", "write-file(out.txt), any content")
    assert clew("trail", "rm", allowed["id"], "--yes").code == 0
    assert clew("agents", "--permissions", "--json").json == {"items": []}
    assert "Denied" in clew("chat", "write it down", "--script", str(script)).err


@forks
def test_words_of_those_who_look_for_the_way_out_are_not_sent_and_thinking_is_shown(script: Path, clew: Clew) -> None:
    terminal = Terminal("chat", "--script", str(script))
    terminal.until("you> ")
    for word in ("exit", "/help"):
        terminal.type(f"{word}\r")
        terminal.until("Ctrl-D ends the conversation")
        terminal.until("you> ")
    terminal.type("ponder\r")
    terminal.until("Thinking ...")
    terminal.until("Hm.")
    terminal.until("you> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    (session,) = clew("chat", "--list", "--json").json["items"]
    assert session["title"] == "ponder"


@forks
def test_ctrl_c_cancels_the_answer_and_the_conversation_goes_on(
    script: Path, clew: Clew, in_trail: Callable[..., Any]
) -> None:
    terminal = Terminal("chat", "--script", str(script))
    terminal.until("you> ")
    terminal.type("slowly\r")
    terminal.until("two")
    terminal.type("\x03")
    terminal.until("Cancelled.")
    terminal.until("you> ")
    terminal.type("greet me\r")
    terminal.until("to you.")
    terminal.until("you> ")
    terminal.type("\x03")
    assert terminal.end() == INTERRUPTED
    assert "sixteen" not in terminal.shown
    assert "Traceback" not in terminal.shown

    async def answers(app: App) -> list[str]:
        selector = Selector(schema_name="agent.response.v1")
        page = await app.trail.records.list(selector, by=app.me, oldest_first=True)
        return [each.context["status"] for each in page.items]

    assert in_trail(answers) == ["cancelled", "done"]


@forks
def test_ctrl_c_at_the_question_cancels_the_run_and_nothing_is_done(script: Path, folder: Path) -> None:
    terminal = Terminal("chat", "--script", str(script))
    terminal.until("you> ")
    terminal.type("write it down\r")
    terminal.until("[o]nce")
    terminal.type("\x03")
    terminal.until("Cancelled.")
    terminal.until("you> ")
    terminal.type("\x03")
    assert terminal.end() == INTERRUPTED
    assert not (folder.parent / "out.txt").exists()


@forks
def test_text_that_is_pasted_is_one_message(script: Path, clew: Clew) -> None:
    terminal = Terminal("chat", "--script", str(script))
    terminal.until("you> ")
    terminal.type("first line\rgreet me\r")
    terminal.until("to you.")
    terminal.until("you> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    (session,) = clew("chat", "--list", "--json").json["items"]
    assert session["title"] == "first line greet me"


@forks
def test_a_run_that_was_left_is_finished_by_whoever_takes_the_session_up(script: Path, clew: Clew) -> None:
    process = start("chat", "slowly", "--json", "--script", str(script))
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["type"] != "text":
        pass
    process.kill()
    process.wait(PATIENCE)
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    result = clew("chat", "greet me", "--session", session_of(clew), "--script", str(script))
    assert result.code == 0
    assert "going on with it" in result.err
    assert result.out.startswith("one two three")
    assert result.lines[-1].endswith("to you.")


async def test_pieces_of_an_attempt_that_never_ended_are_not_shown_again() -> None:
    def said(seq: int, index: int, text: str, request: str = "r") -> Said:
        return Said(seq=seq, session="s", run="r", id=str(seq), request_id=request, index=index, text=text)

    async def shown(*steps: Said) -> list[str]:
        async def given() -> AsyncIterator[Step]:
            for step in steps:
                yield step

        return [step.text async for step in without_old_pieces(given(), 10) if isinstance(step, Said)]

    assert await shown(said(1, 0, "old"), said(2, 1, "piece"), said(11, 0, "new")) == ["new"]
    assert await shown(said(1, 0, "goes"), said(11, 1, "on")) == ["goes", "on"]
    assert await shown(said(1, 0, "first"), said(2, 0, "second"), said(11, 1, "third")) == ["second", "third"]
    assert await shown(said(1, 0, "old")) == []
