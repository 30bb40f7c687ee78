"""What an engine says of its own state, for `clew doctor`."""

from __future__ import annotations

from typing import Literal

import msgspec


class EngineFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One line about the engine of a trail. `todo` is the next step, if there is one."""

    name: str
    level: Literal["ok", "note", "wrong"] = "ok"
    what: str
    todo: str = ""
