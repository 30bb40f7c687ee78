"""The verification of signatures by a receiver."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from clew.trail.work.webhooks import sign, verify_signature
from tests.trail.webhooks.receiver import SECRET

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = str(int(NOW.timestamp()))


@pytest.mark.req("RCR-24")
def test_a_receiver_can_verify_a_signature_with_the_standard_library_alone() -> None:
    expected = hmac.new(SECRET.encode(), STAMP.encode() + b"." + b'{"a":1}', hashlib.sha256).hexdigest()

    assert sign(SECRET, STAMP, b'{"a":1}') == f"sha256={expected}"
    assert verify_signature(SECRET, STAMP, b'{"a":1}', f"sha256={expected}", now=NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"secret": "other"},
        {"body": b"{} "},
        {"signature": "sha256=" + "0" * 64},
        {"signature": ""},
        {"signature": "sha256=é\udc80"},
        {"timestamp": str(int(STAMP) + 1)},
        {"timestamp": "now"},
        {"timestamp": ""},
        {"timestamp": "-1"},
        {"timestamp": "²"},
        {"timestamp": "9" * 5_000},
        {"now": NOW + timedelta(minutes=6)},
        {"now": NOW - timedelta(minutes=6)},
    ],
)
def test_anything_changed_or_too_old_does_not_verify(change: dict[str, object]) -> None:
    given: dict[str, object] = {
        "secret": SECRET,
        "timestamp": STAMP,
        "body": b"{}",
        "signature": sign(SECRET, STAMP, b"{}"),
        "now": NOW,
    }
    assert verify_signature(**given)  # type: ignore[arg-type]  # keywords from a table

    assert not verify_signature(**{**given, **change})  # type: ignore[arg-type]  # keywords from a table
