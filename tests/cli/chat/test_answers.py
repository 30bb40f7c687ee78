"""Answers of `clew chat`: to one question, to lines of a pipe, in continued sessions, and with permissions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from clew.agents.conversations.steps import AnswerChunk, Step, without_old_pieces
from clew.app import App
from clew.trail.model.selector import Selector
from tests.cli.chat.conftest import Say, session_of
from tests.cli.conftest import PATIENCE, Clew, Result, start


def events_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.lines]


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


def test_calls_of_tools_are_shown_while_the_answer_arrives(say: Say) -> None:
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


def test_calls_that_need_permission_are_denied_where_nobody_can_be_asked(say: Say, folder: Path) -> None:
    result = say("write it down")
    assert result.out == "That is all I can say.\n"
    assert "Denied: write-file. Allow it with --allow write-file" in result.err
    assert not (folder.parent / "out.txt").exists()


@pytest.mark.parametrize("pattern", ["write-file", "write-*"])
def test_an_allowed_call_runs(say: Say, folder: Path, pattern: str) -> None:
    assert say("write it down", "--allow", pattern).code == 0
    assert (folder.parent / "out.txt").read_text() == "kettle"


def test_a_session_is_listed_and_gone_on_with_by_the_end_of_its_id(say: Say, clew: Clew) -> None:
    say("greet me")
    session = session_of(clew)
    result = say("what is in it?", "--session", session[-8:])
    assert result.code == 0
    assert "you: greet me" in result.err
    assert session_of(clew) == session
    assert clew("chat", "--list").rows[0][::4] == [session, "greet me"]


def test_piped_lines_are_messages_of_one_session(say: Say, clew: Clew) -> None:
    result = say(stdin=b"greet me\n\nwhat is in it?\n")
    assert (result.code, result.lines[-1]) == (0, "A blue kettle is in it.")
    assert len(clew("chat", "--list").rows) == 1


def test_a_model_that_refuses_stops_the_run_with_the_reason(say: Say) -> None:
    result = say("please fail")
    assert result.code == 1
    assert "refused" in result.out


def test_the_sessions_of_a_folder_without_a_trail_are_none_and_none_is_made(clew: Clew, folder: Path) -> None:
    assert clew("chat", "--list", "--json").json == {"items": []}
    assert not folder.exists()


def test_rules_about_no_tool_and_rules_that_wait_for_consent_are_reported(say: Say, clew: Clew, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text('[permissions]\nallow = ["write-file(*.txt)"]\ndeny = ["fech"]\n')
    result = say("write it down")
    assert "permissions.deny: 'fech' matches no tool. Did you mean fetch?" in result.err
    assert "the rule write-file(*.txt) of this folder would allow it, and waits for `clew trust`" in result.err
    assert not (folder.parent / "out.txt").exists()
    assert "  permissions: lets agents do without asking: write-file(*.txt)" in clew("trust", "--yes").out
    rules = [each for each in clew("doctor", "--json").json["findings"] if each["name"] == "rules"]
    assert "Did you mean fetch?" in rules[0]["what"]
    assert "waits for" not in say("write it down").err
    assert (folder.parent / "out.txt").exists()


@pytest.mark.parametrize("rule", ["write-file", "write-*", "*"])
def test_a_whole_tool_that_the_settings_allow_runs_unasked_after_consent(
    say: Say, clew: Clew, folder: Path, rule: str
) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text(f'[permissions]\nallow = ["{rule}"]\n')
    assert "Denied: write-file" in say("write it down").err
    assert f"lets agents do without asking: {rule}" in clew("trust", "--yes").out
    assert "Denied" not in say("write it down").err
    assert (folder.parent / "out.txt").read_text() == "kettle"


def test_an_abandoned_run_is_finished_by_the_process_that_continues_the_session(script: Path, clew: Clew) -> None:
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
    assert "continuing it" in result.err
    assert result.out.startswith("one two three")
    assert result.lines[-1].endswith("to you.")


async def test_pieces_of_an_attempt_that_never_ended_are_not_shown_again() -> None:
    def said(seq: int, index: int, text: str, request: str = "r") -> AnswerChunk:
        return AnswerChunk(seq=seq, session="s", run="r", id=str(seq), request_id=request, index=index, text=text)

    async def shown(*steps: AnswerChunk) -> list[str]:
        async def given() -> AsyncIterator[Step]:
            for step in steps:
                yield step

        return [step.text async for step in without_old_pieces(given(), 10) if isinstance(step, AnswerChunk)]

    assert await shown(said(1, 0, "old"), said(2, 1, "piece"), said(11, 0, "new")) == ["new"]
    assert await shown(said(1, 0, "goes"), said(11, 1, "on")) == ["goes", "on"]
    assert await shown(said(1, 0, "first"), said(2, 0, "second"), said(11, 1, "third")) == ["second", "third"]
    assert await shown(said(1, 0, "old")) == []
