"""`clew chat` at a terminal: keys, questions, Ctrl-C and Ctrl-D."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clew.app import App
from clew.cli import INTERRUPTED
from clew.trail.model.selector import Selector
from tests.cli.conftest import Clew
from tests.cli.terminal import Terminal

PROMPT = "you> "


def open_chat(script: Path) -> Terminal:
    """A conversation that waits for its first message."""
    terminal = Terminal("chat", "--script", str(script))
    terminal.until(PROMPT)
    return terminal


def test_at_a_terminal_answers_stream_permission_is_asked_and_ctrl_d_ends(script: Path, folder: Path) -> None:
    terminal = open_chat(script)
    terminal.answer("write it down", "May it write out.txt?", "[o]nce")
    terminal.answer("perhaps", "Please say")
    terminal.answer("o", "That is all I can say.", PROMPT)
    terminal.answer("greet me", "Good [31mmorning[0m to you.", PROMPT)
    terminal.type("\x04")
    terminal.until("clew chat --session")
    assert terminal.end() == 0
    assert (folder.parent / "out.txt").read_text() == "kettle"
    assert "\x1b[31mmorning" not in terminal.shown


def test_one_question_at_a_terminal_asks_too_and_what_was_allowed_always_can_be_taken_back(
    script: Path, folder: Path, clew: Clew
) -> None:
    terminal = Terminal("chat", "write it down", "--script", str(script))
    terminal.until("May it write out.txt?")
    terminal.until("session and always allow: write-file(out.txt)")
    terminal.until("[o]nce, [s]ession, [a]lways, [d]eny: ")
    terminal.answer("a", "That is all I can say.")
    assert terminal.end() == 0
    assert "Ctrl-D" not in terminal.shown
    (folder.parent / "out.txt").unlink()
    assert "Denied" not in clew("chat", "write it down", "--script", str(script)).err
    (allowed,) = clew("agents", "--permissions", "--json").json["items"]
    assert (allowed["answer"], allowed["pattern"]) == ("always", "write-file(out.txt), any content")
    assert clew("trail", "rm", allowed["id"], "--yes").code == 0
    assert clew("agents", "--permissions", "--json").json == {"items": []}
    assert "Denied" in clew("chat", "write it down", "--script", str(script)).err


def test_commands_are_answered_and_not_sent_and_thinking_is_shown(script: Path, clew: Clew) -> None:
    terminal = open_chat(script)
    assert "/help lists the commands" in terminal.shown
    terminal.answer("/help", "/exit   end the conversation", PROMPT)
    terminal.answer("/model", "There is no command /model. /help lists the commands.", PROMPT)
    terminal.answer("ponder", "Thinking ...", "Hm.", PROMPT)
    terminal.type("/exit\n")
    assert terminal.end() == 0
    (session,) = clew("chat", "--list", "--json").json["items"]
    assert session["title"] == "ponder"


def test_sessions_are_managed_in_a_chat(script: Path, clew: Clew) -> None:
    terminal = open_chat(script)
    terminal.answer("/session new kettles", "Messages now go to session kettles.", PROMPT)
    terminal.answer("greet me", "morning", PROMPT)
    terminal.answer("/session list", "kettles", PROMPT)
    terminal.answer("/session dance", "'dance' is not possible", PROMPT)
    terminal.answer("/session suspend", "Session kettles is suspended.", "begins a new session.", PROMPT)
    terminal.answer("/session suspend", "Use /session new", PROMPT)
    terminal.answer("ponder", "Hm.", PROMPT)
    terminal.answer('/session switch "kettles"', "Messages now go to session kettles.", PROMPT)
    terminal.type("/exit\n")
    assert terminal.end() == 0
    found = {each["title"]: each for each in clew("session", "list", "--json").json["items"]}
    assert found.keys() == {"kettles", "ponder"}
    assert found["kettles"]["is_focused"]


def test_a_chat_without_a_model_has_the_same_commands(folder: Path) -> None:
    (folder.parent / "kettle.md").write_text("# The kettle\n\nThe kettle is blue.\n")
    terminal = Terminal("chat")
    terminal.until("/help lists the commands")
    terminal.until(PROMPT)
    terminal.answer("/help", "/exit   end the conversation", PROMPT)
    terminal.answer("what colour is the kettle", "kettle.md:1", PROMPT)
    terminal.answer("/session switch nothing", "no session 'nothing'", PROMPT)
    terminal.type("quit\n")
    assert terminal.end() == 0


def test_ctrl_c_cancels_the_answer_and_the_conversation_goes_on(
    script: Path, clew: Clew, in_trail: Callable[..., Any]
) -> None:
    terminal = open_chat(script)
    terminal.answer("slowly", "two")
    terminal.type("\x03")
    terminal.until("Cancelled.")
    terminal.until(PROMPT)
    terminal.answer("greet me", "to you.", PROMPT)
    terminal.type("\x03")
    assert terminal.end() == INTERRUPTED
    assert "sixteen" not in terminal.shown
    assert "Traceback" not in terminal.shown

    async def answers(app: App) -> list[str]:
        selector = Selector(schema_name="agent.response.v1")
        page = await app.trail.records.list(selector, by=app.me, oldest_first=True)
        return [each.context["status"] for each in page.items]

    assert in_trail(answers) == ["cancelled", "done"]


def test_ctrl_c_at_the_question_cancels_the_run_and_nothing_is_done(script: Path, folder: Path) -> None:
    terminal = open_chat(script)
    terminal.answer("write it down", "[o]nce")
    terminal.type("\x03")
    terminal.until("Cancelled.")
    terminal.until(PROMPT)
    terminal.type("\x03")
    assert terminal.end() == INTERRUPTED
    assert not (folder.parent / "out.txt").exists()


def test_text_that_is_pasted_is_one_message(script: Path, clew: Clew) -> None:
    terminal = open_chat(script)
    terminal.answer("first line\rgreet me", "to you.", PROMPT)
    terminal.type("\x04")
    assert terminal.end() == 0
    (session,) = clew("chat", "--list", "--json").json["items"]
    assert session["title"] == "first line greet me"
