"""Distinct values are those that numpy finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.trail.search.unique import unique, unique_with_places

NUMBERS = st.lists(st.integers(-5, 5), max_size=20).map(lambda values: np.array(values, np.int64))


@given(NUMBERS)
def test_distinct_values_are_those_of_numpy(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    found, places = np.unique(values, return_inverse=True)
    assert unique(values).tolist() == found.tolist()
    distinct, at = unique_with_places(values)
    assert (distinct.tolist(), at.tolist()) == (found.tolist(), places.tolist())
