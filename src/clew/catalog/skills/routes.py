"""The routes of the domain, which lead to each other."""

from __future__ import annotations

from typing import Final

FIND: Final = "skills://tools/find"
LIST: Final = "skills://tools/hidden/list"
LOAD: Final = "skills://tools/hidden/load"
UNLOAD: Final = "skills://tools/hidden/unload"
REFERENCE: Final = "skills://tools/hidden/reference"
