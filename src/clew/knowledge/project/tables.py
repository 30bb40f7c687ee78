"""The tables that come with this package: JSON files beside its modules."""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

import msgspec

_Table = TypeVar("_Table")


def load_table(name: str, type: type[_Table]) -> _Table:
    return msgspec.json.decode(files("clew.knowledge.project").joinpath(name).read_bytes(), type=type)
