"""The review before a renewed consent: the pending items with their changes since the last consent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from clew.catalog.consent.consent_changes import FileChange, compare
from clew.catalog.consent.consent_snapshots import ConsentSnapshots, Files
from clew.catalog.skills.texts import ConsentTexts
from clew.config import Config
from clew.trust import Trust, Wish


class Review:
    """The wishes that wait for consent, with a snapshot of the texts behind them."""

    def __init__(self, config: Config, trust: Trust, wishes: Sequence[Wish]) -> None:
        self._config = config
        self._agreed = ConsentSnapshots(trust)
        self._wishes = wishes
        self._digests = {(each.folder, each.kind, each.name): each.digest for each in trust.grants()} if wishes else {}

    @cached_property
    def _texts(self) -> dict[tuple[str, str], Files]:
        wished = ConsentTexts(self._config)
        found = ((each, wished.of(each)) for each in self._wishes)
        return {(each.kind, each.name): files for each, files in found if files is not None}

    def changes(self, wish: Wish) -> list[FileChange]:
        """Return the changes of its files since consent; none without consent or when the old texts are unknown."""
        digest = self._digests.get((wish.folder, wish.kind, wish.name))
        before = self._agreed.find(wish, digest) if digest is not None else None
        now = self._texts.get((wish.kind, wish.name)) if before is not None else None
        return compare(before, now) if before is not None and now is not None else []

    def listed(self) -> list[dict[str, Any]]:
        """The wishes with their changes, as JSON has them."""
        return [{**msgspec.to_builtins(each), "changes": self.changes(each)} for each in self._wishes]

    def keep(self) -> None:
        """Remember the texts, now that the user has agreed to all of them. Raises ReadOnly."""
        for each in self._wishes:
            if (files := self._texts.get((each.kind, each.name))) is not None:
                self._agreed.keep(each, files)
