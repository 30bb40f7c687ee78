"""Row-level security alone keeps owners and scopes apart: the tests of isolation, without the filters of the queries.

Every query of the PostgreSQL trail filters by the function `audiences_of`. Here it names every audience there is.
"""

from __future__ import annotations

import psycopg
import pytest

from clew.access import Principal
from clew.trail.store import Trail
from tests.conformance.records import make
from tests.conformance.test_isolation import (  # noqa: F401
    test_a_writer_without_the_scope_cannot_read_its_record,
    test_all_scopes_are_needed_not_any,
    test_an_event_that_waits_while_its_scopes_are_narrowed_is_not_delivered,
    test_an_id_of_another_owner_is_not_found_by_any_call,
    test_narrowed_scopes_take_old_versions_and_old_events_away,
    test_no_claim_or_dead_letter_reaches_the_wrong_one,
    test_no_edge_walk_or_path_leads_through_what_is_hidden,
    test_no_record_version_listing_hit_event_or_count_reaches_the_wrong_one,
    test_widened_scopes_give_old_events_and_hits,
)
from tests.conformance.test_search_freshness import (  # noqa: F401
    insider,
    test_a_record_that_changes_its_scopes_leaves_and_comes_in_every_open_trail,
    test_answers_do_not_depend_on_earlier_searches,
    test_each_filter_follows_what_another_open_trail_changes,
    test_one_who_may_not_see_a_record_does_not_hide_it_from_those_who_may,
)

pytestmark = [pytest.mark.req("RCR-19"), pytest.mark.req("BEY-07")]

UNFILTERED = b"""
CREATE OR REPLACE FUNCTION audiences_of(owner text, held text[]) RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
  RETURN ARRAY(SELECT generate_series(1, 2000))
"""
DERIVED = {"migrations", "meta", "log", "definition_marks", "terms", "term_counts", "term_totals"}
"""Tables without content of any owner."""


@pytest.fixture
def address(postgres_address: str) -> str:
    """A trail on PostgreSQL whose queries filter nothing."""
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute(UNFILTERED)
    return postgres_address


async def test_a_connection_that_names_no_caller_sees_no_row_of_any_table(
    trail: Trail, address: str, me: Principal
) -> None:
    await make(trail, me, tags=["a"], embedding=(0.6, 0.8), idempotency_key="k")
    with psycopg.connect(address, autocommit=True) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
        ]
        assert {"breadcrumbs", "events", "versions", "vectors", "tags", "secrets"} <= set(tables)
        for name in set(tables) - DERIVED:
            assert connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchone() == (0,), name
            forced = connection.execute("SELECT relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", (name,))
            assert forced.fetchone() == (True,), name
        connection.execute("SET clew.system = 'on'")
        assert connection.execute("SELECT count(*) FROM breadcrumbs").fetchone() == (1,)


def test_the_role_of_the_application_is_not_above_row_level_security(address: str) -> None:
    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user").fetchone()
    assert row == (False, False)
