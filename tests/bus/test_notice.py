"""Subjects of the bus."""

from __future__ import annotations

import pytest

from clew.bus.notice import Notice, as_token


@pytest.mark.req("RCR-22")
def test_a_notice_goes_to_the_subject_of_its_record_and_of_each_agent() -> None:
    notice = Notice(id="01a1", owner_id="acme", agents=("writer", "qa.lead"))
    assert notice.subjects == ["bc.01a1.updated", "agents.writer.events", "agents.qa=2Elead.events"]


@pytest.mark.parametrize(("text", "token"), [("a.b", "a=2Eb"), ("*", "=2A"), (">", "=3E"), ("a b", "a=20b"), ("", "=")])
def test_no_name_reaches_another_subject(text: str, token: str) -> None:
    assert as_token(text) == token


def test_two_names_never_share_a_token() -> None:
    names = ["a.b", "a=2Eb", "a b", "ä", "a"]
    assert len({as_token(name) for name in names}) == len(names)
