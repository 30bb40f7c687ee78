"""The distinct values of an array. `numpy.unique` loads `numpy.ma`, which takes longer than a search."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def unique(values: NDArray[Number]) -> NDArray[Number]:
    """The distinct values in ascending order."""
    found = np.sort(values, axis=None)
    return found[_is_first(found)]


def unique_with_places(values: NDArray[Number]) -> tuple[NDArray[Number], NDArray[np.int64]]:
    """The distinct values in ascending order, and for each value its place among them."""
    order = np.argsort(values)
    found = values[order]
    is_first = _is_first(found)
    places = np.empty(len(values), np.int64)
    places[order] = np.cumsum(is_first) - 1
    return found[is_first], places


def _is_first(found: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a sorted array differ from the one before."""
    is_first = np.ones(len(found), np.bool_)
    np.not_equal(found[1:], found[:-1], out=is_first[1:])
    return is_first
