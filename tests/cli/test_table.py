"""Columns that fit on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.cli.terminal.table import GAP, NARROWEST, fit

WIDTHS = st.lists(st.integers(1, 300), min_size=2, max_size=6)


@given(WIDTHS, st.integers(20, 300), st.data())
def test_a_table_fits_and_always_has_its_main_column(natural: list[int], total: int, data: st.DataObject) -> None:
    main = data.draw(st.integers(0, len(natural) - 1))
    others = [column for column in range(len(natural)) if column != main]
    widths = fit(natural, total, main=main, spare=data.draw(st.permutations(others)))
    assert main in widths
    assert list(widths) == sorted(widths)
    assert sum(widths.values()) + GAP * (len(widths) - 1) <= total
    assert all(1 <= width <= natural[column] for column, width in widths.items())


def test_a_column_is_cut_before_it_is_left_out_and_later_ones_stay() -> None:
    natural = [8, 12, 17, 45, 40]
    assert fit(natural, 160, main=3, spare=(4, 2, 1)) == dict(enumerate(natural))
    assert fit(natural, 120, main=3, spare=(4, 2, 1)) == {0: 8, 1: 12, 2: 17, 3: 45, 4: 30}
    assert fit(natural, 88, main=3, spare=(4, 2, 1)) == {0: 8, 1: 12, 2: 17, 3: 45}
    assert fit(natural, 30, main=3, spare=(4, 2, 1)) == {0: 8, 3: 20}
    assert fit(natural, 88, main=3, spare=(4, 2, 1))[3] >= 40 > NARROWEST


def test_without_a_main_column_each_has_its_own_width() -> None:
    assert fit([3, 200], 80, main=None, spare=()) == {0: 3, 1: 200}
