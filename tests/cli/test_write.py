"""Writing to the trail."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, PATIENCE, Clew

Put = Callable[..., str]


def full(clew: Clew, id: str, *arguments: str) -> Any:
    return clew("trail", "show", id, "--full", "--json", *arguments).json


def test_a_breadcrumb_is_written_from_options(clew: Clew) -> None:
    result = clew(
        *("trail", "put", "--title", "Ports", "--context", '{"port": 8081}', "--tag", "a", "--tag", "b"),
        *("--schema", "note.v1", "--scope", "ops", "--ttl", "5m", "--scopes", "ops"),
    )
    assert result.code == 0
    found = full(clew, result.out.strip(), "--scopes", "ops")
    assert (found["title"], found["context"], found["tags"]) == ("Ports", {"port": 8081}, ["a", "b"])
    assert (found["schema_name"], found["scopes"], found["ttl"]["kind"]) == ("note.v1", ["ops"], "datetime")


def test_the_first_breadcrumb_makes_the_folder_with_settings_and_definitions(clew: Clew, folder: Path) -> None:
    assert clew("trail", "put", "--title", "x").code == 0
    assert (folder / "config.toml").exists()
    assert (folder / ".gitignore").exists()
    assert clew("trail", "ls", "--system", "--tag", "defines:note.v1").out


def test_a_context_comes_from_a_file_or_from_standard_input(clew: Clew, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"from": "file"}')
    by_file = clew("trail", "put", "--title", "t", "--context", f"@{tmp_path / 'c.json'}").out.strip()
    by_input = clew("trail", "put", "--title", "t", "--context", "-", stdin=b'{"from": "input"}').out.strip()
    assert [full(clew, id)["context"]["from"] for id in (by_file, by_input)] == ["file", "input"]
    missing = clew("trail", "put", "--title", "t", "--context", "@nowhere.json")
    assert (missing.code, missing.err) == (1, "clew: nowhere.json: No such file or directory\n")


def test_a_draft_on_standard_input_is_written_with_what_the_options_add(clew: Clew) -> None:
    draft = json.dumps({"title": "Piped", "context": {"n": 1}, "tags": ["a"]}, indent=2).encode()
    id = clew("trail", "put", "--tag", "b", "--schema", "note.v1", stdin=draft).out.strip()
    found = full(clew, id)
    assert (found["title"], found["tags"], found["schema_name"]) == ("Piped", ["a", "b"], "note.v1")


def test_json_lines_are_written_all_or_none(clew: Clew) -> None:
    good = b"".join(
        json.dumps({"title": f"t{at}", "context": {}, "tags": ["bulk"]}).encode() + b"\n" for at in range(20)
    )
    assert len(clew("trail", "put", stdin=good + b"\n").lines) == 20
    bad = good + b'{"title": "", "context": {}}\n'
    refused = clew("trail", "put", "--tag", "second", stdin=bad)
    assert (refused.code, refused.out) == (1, "")
    assert "[20].title" in refused.err
    assert clew("trail", "ls", "--tag", "second").out == ""


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"", "standard input is empty"),
        (b"not json", "standard input: is not JSON: expecting value at line 1, column 1. For example {"),
        (b'{"title": "x"}', "standard input, context: is missing. It must be an object"),
        (b'{"title": "x", "context": {}, "tag": 1}', "input, tag: is not a field here. Did you mean tags?"),
        (b'{"title": "x", "context": {}, "colour": 1}', "is not a field here. Fields are: title, context, tags"),
        (b'{"title": "x", "context": [1]}', "standard input, context: must be an object, not a list"),
        (b'{"title": "x", "context": {}, "tags": [1]}', "standard input, tags[0]: must be text, not a whole number"),
        (b'{"title": "x", "context": {}, "ttl": 5}', "ttl: must be an object or null, not a whole number"),
        (b"[1]", "standard input: must be an object, not a list. Its fields are: title, context, tags"),
        (b'{"title": "", "context": {}}', "title: is empty"),
        (b'{"title": "x", "context": {}}\nbroken\n', "line 2: is not JSON"),
        (b'{"title": "\xff", "context": {}}', "standard input"),
        (b"[" * 100_000, "standard input"),
    ],
)
def test_a_draft_that_cannot_be_used_is_reported_with_its_place(clew: Clew, stdin: bytes, said: str) -> None:
    result = clew("trail", "put", stdin=stdin)
    assert (result.code, result.out) == (1, "")
    told = [line for line in result.err.splitlines() if not line.startswith("A new trail: ")]
    assert len(told) == 1
    assert said in told[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--title", ""], "title: is empty"),
        (["--title", "x", "--context", "[1]"], "--context: must be an object, not a list. In a shell"),
        (["--title", "x", "--context", "{a: 1}"], "--context: is not JSON: expecting property name"),
        (["--title", "x", "--context", '{"a":\n1,}'], "at line 2, column"),
        (["--title", "x", "--context", "{" * 2000], "--context: is not JSON"),
        (["--title", "x", "--scope", ""], "--scope: is empty"),
        (["--title", "x", "--scope", "hr,"], "--scope: is empty"),
        (["--title", "x", "--tag", " "], "tags[0]"),
        (["--title", "x", "--schema", "no spaces"], "schema_name"),
        (["--title", "x", "--ttl", "soon"], "--ttl"),
        (["--context", "{}"], "needs a --title"),
        (["--title", "\udcff"], "argument 4: is not valid UTF-8"),
    ],
)
def test_options_that_cannot_be_are_wrong_usage(clew: Clew, arguments: list[str], said: str) -> None:
    result = clew("trail", "put", *arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_content_that_cannot_be_used_is_a_failure_and_not_wrong_usage(clew: Clew, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    by_file = clew("trail", "put", "--title", "x", "--context", "@list.json")
    by_input = clew("trail", "put", "--title", "x", "--context", "-", stdin=b"[1]")
    assert (by_file.code, by_input.code) == (1, 1)
    assert by_file.err.startswith("clew: --context from list.json: must be an object, not a list")
    misfit = clew("trail", "put", "--title", "x", "--schema", "tool.code.v1")
    assert (misfit.code, "schema.def.v1 of tool.code.v1" in misfit.err) == (1, True)


@pytest.mark.req("RCR-06")
def test_a_key_makes_a_repeated_put_harmless(clew: Clew) -> None:
    ids = {clew("trail", "put", "--title", "once", "--key", "k1").out for _ in range(3)}
    assert len(ids) == 1
    assert clew("trail", "put", "--key", "k", stdin=b'{"title":"a","context":{}}\n{"title":"b","context":{}}').code == 2


@pytest.mark.req("RCR-02")
def test_changing_a_setting_leaves_a_version_and_an_event(clew: Clew, put: Put) -> None:
    id = put("Setting: limit", "--schema", "setting.v1", context={"name": "limit", "value": 5})
    assert clew("trail", "edit", id, "--set", "value=6").out == f"{id} version 2\n"
    assert len(clew("trail", "history", id).rows) == 2
    events = [
        json.loads(line) for line in clew("trail", "tail", "--schema", "setting.v1", "--count", "2", "--json").lines
    ]
    assert [(event["type"], event["context"]["value"]) for event in events] == [
        ("breadcrumb.created", 5),
        ("breadcrumb.updated", 6),
    ]


def test_an_edit_changes_only_what_is_asked(clew: Clew, put: Put) -> None:
    id = put("Task", "--tag", "open", "--tag", "x", context={"n": {"a": 1, "b": 2}})
    result = clew(
        *("trail", "edit", id, "--set", "n.a=5", "--set", "who=ann", "--add-tag", "done", "--remove-tag", "open"),
        "--json",
    )
    assert result.json["version"] == 2
    found = full(clew, id)
    assert (found["title"], found["tags"]) == ("Task", ["x", "done"])
    assert found["context"] == {"n": {"a": 5, "b": 2}, "who": "ann"}
    assert clew("trail", "edit", id, "--title", "Better").code == 0
    assert full(clew, id)["title"] == "Better"


def test_an_edit_needs_options_where_there_is_no_terminal(clew: Clew, put: Put) -> None:
    result = clew("trail", "edit", put("Task"))
    assert result.code == 2
    assert "--set status=done" in result.err


@pytest.mark.req("RCR-04")
def test_an_edit_for_a_version_is_refused_when_there_is_a_later_one(clew: Clew, put: Put, tmp_path: Path) -> None:
    id = put("Task", context={"n": 1})
    assert clew("trail", "edit", id, "--set", "n=2", "--expect", "1").code == 0
    late = clew("trail", "edit", id, "--set", "n=3", "--expect", "1")
    assert (late.code, late.out) == (1, "")
    assert f"{id} is at version 2, not 1. Read it again" in late.err
    assert full(clew, id)["context"] == {"n": 2}
    code, err = edit_by_hand(tmp_path, id, "sys.exit('the editor should not open')", "--expect", "1")
    assert (code, "is at version 2, not 1" in err, "editor" in err) == (1, True, False)


def test_a_writer_without_the_scope_is_told_that_it_will_not_see_it(clew: Clew, put: Put, tmp_path: Path) -> None:
    hidden = "1 breadcrumb will not be shown to you without --scopes hr,ops\n"
    put("makes the trail")
    result = clew("trail", "put", "--title", "payroll", "--scope", "hr,ops")
    assert (result.code, result.err) == (0, hidden)
    assert clew("trail", "put", "--title", "seen", "--scope", "hr", "--scopes", "hr,ops").err == ""
    id = result.out.strip()
    assert full(clew, id, "--scopes", "hr,ops")["scopes"] == ["hr", "ops"]
    edited = clew("trail", "edit", id, "--title", "wages", "--scopes", "hr,ops")
    assert (edited.code, edited.err) == (0, "")
    open_one = put("open")
    assert edit_by_hand(tmp_path, open_one, "shown['scopes'] = ['hr', 'ops']") == (0, hidden)
    drafts = b'{"title":"a","context":{},"scopes":["x"]}\n{"title":"b","context":{}}\n{"title":"c","context":{}}'
    assert clew("trail", "put", "--scope", "y", stdin=drafts).err.startswith("3 breadcrumbs will not be shown to you")


def test_edits_at_the_same_time_all_count(clew: Clew, put: Put) -> None:
    id = put("Counter", context={})

    def edit(at: int) -> int:
        command = [*COMMAND, "trail", "edit", id, "--set", f"by.p{at}=1"]
        return subprocess.run(command, timeout=PATIENCE, stdout=subprocess.DEVNULL).returncode

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(edit, range(4))) == [0] * 4
    assert full(clew, id)["context"]["by"] == {f"p{at}": 1 for at in range(4)}


EDITOR = """
import json, sys
from pathlib import Path
file = Path(sys.argv[-1])
shown = json.loads(file.read_text())
{change}
file.write_text(json.dumps(shown))
"""


def edit_by_hand(tmp_path: Path, id: str, change: str, *options: str) -> tuple[int, str]:
    """Run an edit on a terminal with a program as editor."""
    script = tmp_path / "editor.py"
    script.write_text(EDITOR.format(change=change))
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "trail", "edit", id, *options],
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"VISUAL": f"{sys.executable} {script}", "TMPDIR": str(tmp_path)},
    )
    _, err = process.communicate(timeout=PATIENCE)
    os.close(leader)
    os.close(follower)
    return process.returncode, err


def test_an_editor_shows_json_and_what_it_leaves_is_written(clew: Clew, put: Put, tmp_path: Path) -> None:
    id = put("Task", "--tag", "a", context={"n": 1})
    change = "assert shown['context'] == {'n': 1}; shown['context'] = {'n': 2}; shown['tags'].append('b')"
    assert edit_by_hand(tmp_path, id, change) == (0, "")
    found = full(clew, id)
    assert (found["version"], found["context"], found["tags"]) == (2, {"n": 2}, ["a", "b"])
    assert not list(tmp_path.glob("clew-*.json"))


def test_an_editor_that_changes_nothing_writes_nothing(clew: Clew, put: Put, tmp_path: Path) -> None:
    id = put("Task")
    assert edit_by_hand(tmp_path, id, "pass") == (0, "Nothing was changed.\n")
    assert full(clew, id)["version"] == 1


@pytest.mark.parametrize(
    "change", ["shown['colour'] = 1", "shown['title'] = ''", "del shown['context']", "sys.exit(3)"]
)
def test_text_that_cannot_be_used_is_kept(clew: Clew, put: Put, tmp_path: Path, change: str) -> None:
    id = put("Task")
    code, err = edit_by_hand(tmp_path, id, change)
    assert code == 1
    kept = Path(err.splitlines()[0].removeprefix("Your text is in "))
    assert kept.exists()
    assert full(clew, id)["version"] == 1


def test_a_removal_needs_a_yes(clew: Clew, put: Put) -> None:
    ids = [put("a"), put("b"), put("c")]
    refused = clew("trail", "rm", ids[0])
    assert (refused.code, "--yes" in refused.err) == (2, True)
    removed = clew("trail", "rm", ids[0], ids[1][-12:], ids[1], "--yes", "--json")
    assert (removed.code, removed.json) == (0, {"removed": ids[:2]})
    assert [clew("trail", "show", id).code for id in ids] == [1, 1, 0]
    assert clew("trail", "rm").code == 2


def test_nothing_is_removed_when_one_of_several_is_unknown(clew: Clew, put: Put) -> None:
    id = put("kept")
    assert clew("trail", "rm", id, "00000000-0000-7000-8000-000000000000", "--yes").code == 1
    assert clew("trail", "show", id).code == 0


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked_before_a_removal(clew: Clew, put: Put, answer: str, code: int) -> None:
    id = put("Precious")
    leader, follower = pty.openpty()
    os.write(leader, answer.encode())
    process = subprocess.Popen([*COMMAND, "trail", "rm", id], stdin=follower, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=PATIENCE)
    os.close(leader)
    os.close(follower)
    assert process.returncode == code
    assert "Precious" in err
    assert "Remove 1 breadcrumb? [y/N]" in err
    assert clew("trail", "show", id).code == 1 - code


def test_an_edit_by_hand_does_not_overwrite_what_was_written_meanwhile(clew: Clew, put: Put, tmp_path: Path) -> None:
    id = put("Task")
    command = f"{sys.executable} -m clew trail edit {id} --title Meanwhile"
    change = (
        f"import subprocess; subprocess.run({command.split()!r}, stdout=subprocess.DEVNULL); shown['title'] = 'Mine'"
    )
    code, err = edit_by_hand(tmp_path, id, change)
    assert code == 1
    assert "is at version 2, not 1" in err
    assert "Your text is in" in err
    assert full(clew, id)["title"] == "Meanwhile"


def test_a_tag_that_places_tools_is_refused(clew: Clew) -> None:
    id = clew("trail", "put", "--title", "x", "--tag", "place:shop").out.strip()
    for arguments in (["put", "--title", "x", "--tag"], ["edit", id, "--add-tag"]):
        result = clew("trail", *arguments, "worker-place:shop")
        assert result.code != 0
        assert "worker-place: is set by Clew only" in result.err
