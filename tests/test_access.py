"""Principals: the scopes that they may put on a record."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.errors import AccessDenied

EMITTER = Principal(owner_id="acme", roles=frozenset({"emitter"}), scopes=frozenset({"ops", "docs"}))


@pytest.mark.parametrize("scopes", [(), ("ops",), ("ops", "docs"), ("ops", "ops")])
def test_scopes_that_are_held_may_be_put_on_a_record(scopes: tuple[str, ...]) -> None:
    EMITTER.require_scopes(scopes)


def test_a_scope_that_is_not_held_is_refused_and_named() -> None:
    with pytest.raises(AccessDenied, match="hr, legal") as caught:
        EMITTER.require_scopes(["legal", "ops", "hr"])
    assert "curator" in caught.value.hint


def test_a_curator_may_put_any_scope_on_a_record() -> None:
    Principal(owner_id="acme", roles=frozenset({"curator"})).require_scopes(["hr"])
