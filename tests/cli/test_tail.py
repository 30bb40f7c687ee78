"""Following events."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import PATIENCE, Clew, start

Put = Callable[..., str]


def shown(clew: Clew, *arguments: str) -> list[str]:
    return [line.split("\t")[4] for line in clew("trail", "tail", "--tag", "mine", *arguments).lines]


def test_the_last_few_events_come_first_in_order(clew: Clew, put: Put) -> None:
    for at in range(15):
        put(f"t{at}", "--tag", "mine")
    assert shown(clew, "--count", "10") == [f"t{at}" for at in range(5, 15)]
    assert shown(clew, "--last", "2", "--count", "2") == ["t13", "t14"]


def test_reading_goes_on_after_a_number(clew: Clew, put: Put) -> None:
    for at in range(4):
        put(f"t{at}", "--tag", "mine")
    first = int(clew("trail", "tail", "--tag", "mine", "--count", "1").lines[0].split("\t")[0])
    assert shown(clew, "--after", str(first), "--count", "3") == ["t1", "t2", "t3"]


def test_each_change_is_reported_including_the_last_one(clew: Clew, put: Put) -> None:
    id = put("Task", "--tag", "mine")
    clew("trail", "edit", id, "--title", "Better")
    clew("trail", "rm", id, "--yes")
    lines = [line.split("\t") for line in clew("trail", "tail", "--tag", "mine", "--count", "3").lines]
    assert [line[2] for line in lines] == ["created", "updated", "deleted"]
    assert {line[6] for line in lines} == {id}


def test_writes_of_another_process_are_seen_at_once(put: Put) -> None:
    put("before", "--tag", "mine")
    with start("trail", "tail", "--tag", "mine", "--last", "1", "--count", "2", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["breadcrumb_id"]
        id = put("after", "--tag", "mine", context={"n": 1})
        event = json.loads(process.stdout.readline())
        assert process.wait(PATIENCE) == 0
    assert (event["breadcrumb_id"], event["type"], event["context"]) == (id, "breadcrumb.created", {"n": 1})
    assert event["title"] == "after"
    assert event["seq"] > 0


def test_other_owners_are_not_heard(clew: Clew, put: Put) -> None:
    put("theirs", "--owner", "bob", "--tag", "mine")
    put("ours", "--tag", "mine")
    assert shown(clew, "--count", "1") == ["ours"]


@pytest.mark.parametrize("arguments", [["--last", "-1"], ["--count", "0"], ["--after", "-1"], ["--where", "x"]])
def test_numbers_that_cannot_be_are_refused(clew: Clew, put: Put, arguments: list[str]) -> None:
    put("here")
    result = clew("trail", "tail", *arguments)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
