"""The state of a trail that a search needs to know before it begins."""

from __future__ import annotations

from typing import NamedTuple

from clew.access import Principal
from clew.trail.postgres.transactions import ReadTransaction, pack_texts

STATE = (
    "SELECT audiences_of(%(owner)s, %(scopes)s), l.head, l.at,"
    " coalesce((SELECT value::bigint FROM meta WHERE key = 'indexed'), 0),"
    " (SELECT value FROM meta WHERE key = 'embedder'),"
    " coalesce((SELECT value FROM meta WHERE key = 'vectors_epoch'), '') FROM log l"
)


class TrailState(NamedTuple):
    """The audiences of the caller, the newest event of the log and its time, the last event that is indexed, and the
    vectors that exist."""

    audiences: list[int]
    head: int
    at: int
    indexed: int
    embedder: str | None
    epoch: str

    @property
    def dimension(self) -> int:
        return int(self.embedder.rpartition(":")[2]) if self.embedder is not None else 0


def read_state(reading: ReadTransaction, by: Principal) -> TrailState:
    found = TrailState(*(reading.row(STATE, {"owner": by.owner_id, "scopes": pack_texts(by.scopes)}) or ()))
    return found._replace(audiences=sorted(found.audiences))
