"""`clew session`, and `clew chat` in the focused session."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from clew.app import open_app
from clew.config import read_config
from clew.knowledge.history.entries import Category, write_entry
from tests.cli.chat.conftest import Say, say, script, session_of
from tests.cli.conftest import Clew
from tests.team.worktrees.projects import make_repository

__all__ = ["say", "script"]


def focused(clew: Clew) -> list[str]:
    return [each["title"] for each in clew("session", "list", "--json").json["items"] if each["is_focused"]]


@pytest.mark.req("RCR-49")
@pytest.mark.req("SYL-01")
def test_exactly_one_session_is_focused_through_new_switch_suspend_and_close(clew: Clew) -> None:
    first = clew("session", "new", "first", "--json").json
    assert first["state"] == "active"
    second = clew("session", "new", "second", "--json").json
    assert focused(clew) == ["second"]
    assert clew("session", "switch", first["id"][-8:]).code == 0
    assert focused(clew) == ["first"]
    assert clew("session", "suspend").code == 0
    assert focused(clew) == []
    assert clew("session", "list", "--state", "suspended").rows[0][1] == "suspended"
    refused = clew("session", "suspend", "first")
    assert refused.code != 0
    assert "it is suspended" in refused.err
    assert "resume" in refused.err
    assert clew("session", "switch", "first").code == 0
    assert focused(clew) == ["first"]
    assert clew("session", "close", "first", "--summary", "all done").code == 0
    shown = clew("session", "show", "first", "--json").json
    assert (shown["state"], shown["summary"]) == ("completed", "all done")
    assert "is completed" in clew("session", "resume", "first").err
    assert clew("session", "show", "second", "--json").json["id"] == second["id"]


@pytest.mark.req("SYL-14")
def test_a_suspended_session_takes_no_message_and_a_resumed_one_does(clew: Clew, say: Say) -> None:
    say("greet me")
    session = session_of(clew)
    assert clew("session", "suspend", session[-8:]).code == 0
    refused = say("greet me again", "--session", session[-8:])
    assert refused.code != 0
    assert "cannot send a message to session" in refused.err
    assert "it is suspended" in refused.err
    assert clew("session", "resume", session[-8:]).code == 0
    assert say("greet me again").code == 0, "the focused session is continued"
    assert [each["id"] for each in clew("session", "list", "--json").json["items"]] == [session]


def test_a_chat_goes_to_the_focused_session_until_it_is_closed(clew: Clew, say: Say) -> None:
    made = clew("session", "new", "kettles", "--json").json["id"]
    assert say("greet me").code == 0
    assert session_of(clew) == made
    assert clew("session", "list").rows[0][4] == "kettles"
    assert clew("session", "close").code == 0
    assert say("greet me").code == 0
    assert session_of(clew) != made


def test_a_failure_is_one_line(clew: Clew, folder: Path) -> None:
    assert clew("session", "list", "--json").json == {"items": []}
    assert not folder.exists(), "a list makes no trail"
    clew("session", "new", "one")
    for arguments, told in [
        (("switch", "none-such"), "clew session list"),
        (("list", "--state", "asleep"), "created, active, suspended, completed, failed"),
        (("new", "one"), "exists already"),
        (("new", "x" * 200), "100 are allowed"),
        (("resume", "one"), "it is active"),
    ]:
        result = clew("session", *arguments)
        assert result.code != 0
        assert told in result.err
        assert len(result.err.splitlines()) <= 2
    clew("session", "suspend")
    assert "clew session list" in clew("session", "show").err


def test_the_name_of_a_deleted_session_is_free_again(clew: Clew) -> None:
    clew("session", "new", "work")
    records = clew("trail", "ls", "--system", "--json").json["items"]
    (id,) = [each["id"] for each in records if each["schema_name"] == "session.v1"]
    assert clew("trail", "rm", id, "--yes").code == 0
    assert clew("session", "new", "work").code == 0
    assert focused(clew) == ["work"]


@pytest.mark.req("SYL-05")
def test_a_session_shows_its_task_counts_and_messages_and_all_are_closed_at_once(clew: Clew, say: Say) -> None:
    clew("session", "new", "kettles", "--base", "main", "--tasks", "2")
    clew("session", "update", "--task", "blue kettles", "--next", "boil", "--reject", "plastic")
    clew("session", "update", "--step", "boil")
    say("greet me")
    shown = dict(row[:2] for row in clew("session", "show").rows)
    assert (shown["task"], shown["step"], shown["the user rejects"]) == ("blue kettles", "boil", "plastic")
    assert (shown["branch"], shown["base"]) == ("clew/kettles", "main")
    assert shown["counts"] == "1 messages, 1 answers"
    assert "next" not in shown, "the step has begun"
    found = clew("session", "show", "--json").json
    assert found["context"]["current_task"] == "blue kettles"
    assert len(found["context"]["message_history"]) == 2
    assert (found["config"]["max_concurrent_tasks"], found["snapshot"]) == (2, None)
    assert [row[1] for row in clew("session", "history").rows] == ["user", "agent"]
    assert [row[2] for row in clew("session", "history", "--search", "GREET").rows] == ["greet me"]
    clew("session", "suspend")
    assert clew("session", "show", "kettles", "--json").json["snapshot"]["session"]["name"] == "kettles"
    clew("session", "new", "pots")
    assert "2 sessions are completed" in clew("session", "close", "--all").err
    assert {each["state"] for each in clew("session", "list", "--json").json["items"]} == {"completed"}
    assert "nothing was given" in clew("session", "update", "kettles").err


@pytest.mark.req("SYL-10")
def test_a_base_that_the_project_does_not_have_leaves_the_name_free(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    make_repository(folder.parent, {"a.py": ""})
    refused = clew("session", "new", "fares", "--base", "nowhere")
    assert refused.code != 0
    assert "'nowhere' is not known here" in refused.err
    assert clew("session", "new", "fares", "--base", "main").code == 0


@pytest.mark.req("SYL-07")
def test_an_entry_is_promoted_and_taken_back_by_command(clew: Clew, folder: Path) -> None:
    session = clew("session", "new", "kettles", "--json").json["id"]
    assert "No entries yet" in clew("session", "entries").err

    async def write() -> str:
        async with open_app(read_config(folder, os.environ)) as app:
            return (await write_entry(app.trail, app.me, "Boil first", Category.PATTERN, session, metadata={})).id

    id = asyncio.run(write())
    assert clew("session", "entries").rows[0][1:3] == ["pattern", "no"]
    assert "readable in all sessions" in clew("session", "promote", id).err
    assert clew("session", "entries").rows[0][2].endswith("(user)")
    assert "private to its session" in clew("session", "unpromote", id).err
    assert clew("session", "entries", "--json").json["items"][0]["metadata"]["promoted"] is None
    assert "is not promoted" in clew("session", "unpromote", id).err
