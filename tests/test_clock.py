"""Ids of the clock."""

from __future__ import annotations

import uuid

from clew.clock import SystemClock


def test_ids_are_uuids_of_version_7_that_sort_by_age() -> None:
    clock = SystemClock()
    ids = [clock.new_id() for _ in range(2_000)]
    assert ids == sorted(set(ids))
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in ids} == {(7, uuid.RFC_4122)}
