"""Delivers rules to a conversation: at its start, by intent, and before file operations, each text once.

This is a hook, not a tool: no model calls it. The exposure set of the conversation records the delivered texts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ConfigError, InvalidInput
from clew.fences import clean
from clew.llm.tokens import estimate_tokens
from clew.skills.exposure import Exposed, Exposures, Items, Via
from clew.skills.rules.documents import digest_text
from clew.skills.rules.files import AgentRule
from clew.skills.rules.index import RuleReference
from clew.skills.rules.texts import ITEM, WAITING, RuleText, as_text, fit
from clew.skills.rules.tree import Rules
from clew.trust import Trust, printable

Operation = Literal["read", "write", "edit", "list"]

BUDGET = 4_000
"""The limit for the rules that one call returns, in tokens."""
LEAST_BUDGET = 100
MAX_DOCUMENTS = 3
"""The number of documents for one intent."""
MAX_INTENT = 4_000
"""The search uses this many characters of a message."""
_BY = "rules"


class RuleInterceptor:
    """The rules for one conversation: that of `by.session`, or that of a handle.

    Each text comes once, again after a change, and again after `start`. For a rule without the user's consent, only the
    name is returned, once. Safe to use from several tasks and processes. Methods raise HandleRefused when the handle
    has expired.
    """

    def __init__(
        self,
        rules: Rules,
        exposures: Exposures,
        clock: Clock,
        *,
        by: Principal,
        handle: str | None = None,
        trust: Trust | None = None,
        budget: int = BUDGET,
    ) -> None:
        if handle is None and by.session is None:
            raise InvalidInput("session", "is required to identify the conversation", hint="Or pass a handle")
        if budget < LEAST_BUDGET:
            raise InvalidInput("budget", f"must be at least {LEAST_BUDGET} tokens")
        self._rules = rules
        self._sets = exposures
        self._clock = clock
        self._by = by
        self._handle = handle
        self._trust = trust
        self._budget = budget

    async def start(self, intent: str = "") -> Sequence[RuleText]:
        """Return the rules of the root, then the documents that match the intent, even if they came before.

        Use it for a context without rules: that of a new run, or after compaction. The rules of other folders come
        again with the next file operation there.
        """
        searched = intent.strip()[:MAX_INTENT]
        documents = await self._find_documents(searched, MAX_DOCUMENTS) if searched else []
        return await self._give([*await self._root_texts(), *documents], is_fresh=True)

    async def begin(self) -> Sequence[RuleText]:
        """Return the rules of the root."""
        return await self._give(await self._root_texts())

    async def before(self, operation: Operation, path: str) -> Sequence[RuleText]:
        """Return the rules of the folders on the way to a path, without those of the root."""
        found = await self._rules.get_rules_for_path(path)
        return await self._give(self._texts(found, "path", f"{operation} {printable(path, 200)}"))

    async def for_intent(self, intent: str, limit: int = MAX_DOCUMENTS) -> Sequence[RuleText]:
        """Return the linked documents that match the intent, best first.

        Documents of a rule without consent, and documents that changed after consent, are left out. Raises InvalidInput
        for an empty intent.
        """
        return await self._give(await self._find_documents(intent, limit))

    async def _root_texts(self) -> list[RuleText]:
        return self._texts(await self._rules.get_root_rules(), "initial", "always")

    async def _find_documents(self, intent: str, limit: int) -> list[RuleText]:
        texts = []
        for match in await self._rules.search_references(intent, limit):
            rule = await self._rules.find_rule(match.reference.source)
            if rule is not None and self._is_trusted(rule):
                text = await self._rules.get_reference_content(match.reference)
                if text and text.strip() and digest_text(text) == self._covered(rule, match.reference):
                    texts.append(self._document(match.reference, text))
        return texts

    async def _give(self, wanted: Sequence[RuleText], *, is_fresh: bool = False) -> Sequence[RuleText]:
        """Return the texts that the conversation does not have yet (all of them for a fresh context), and record
        them."""
        exposure = await self._sets.open(self._handle, by=self._by)
        if is_fresh and not wanted and not any(item.startswith(ITEM) for item in exposure.items):
            return ()
        if not is_fresh and all(each.item in exposure.items for each in wanted):
            return ()
        given: list[RuleText] = []

        def note(items: Items) -> Items:
            nonlocal given  # the edit may run several times; the last attempt counts
            given = fit([each for each in wanted if is_fresh or each.item not in items], self._budget)
            new = [each for each in given if each.text or each.left_out == WAITING]
            kept = _without_rules(items, {each.item for each in new}) if is_fresh else items
            old = {item for item in kept for each in new if item.startswith(each.place) and item != each.item}
            kept = {name: each for name, each in kept.items() if name not in old}
            return kept | self._exposed(each for each in new if each.item not in kept)

        reason = "a new context" if is_fresh else "its text changed"
        await self._sets.change(exposure, note, by=self._by, ended_by=_BY, reason=reason)
        return tuple(given)

    def _exposed(self, given: Iterable[RuleText]) -> dict[str, Exposed]:
        now = self._clock.now()
        return {
            each.item: Exposed(item=each.item, via=each.via, why=each.why, since=now, tokens=each.tokens, by=_BY)
            for each in given
        }

    def _texts(self, found: Sequence[AgentRule], via: Via, why: str) -> list[RuleText]:
        return [as_text(each, via, why, is_trusted=self._is_trusted(each)) for each in found]

    def _document(self, reference: RuleReference, text: str) -> RuleText:
        path = os.path.relpath(reference.absolute_path, self._rules.files.root.path).replace(os.sep, "/")
        where = f"{reference.source}:{reference.line_number}"
        return RuleText(
            path=path,
            folder="",
            text=clean(text).strip("\n"),
            version=digest_text(text)[:16],
            tokens=estimate_tokens(text),
            via="intent",
            why=f"{where} links to it as {printable(reference.display_text, 100)}",
        )

    def _covered(self, rule: AgentRule, reference: RuleReference) -> str | None:
        """Return the digest that a document had when the user agreed to its rule."""
        path = self._rules.files.root.relative(os.path.realpath(reference.absolute_path))
        return dict(rule.documents).get(path) if path is not None else None

    def _is_trusted(self, rule: AgentRule) -> bool:
        """Whether the user agreed to a rule as it is now. If the grants file cannot be read, there is no consent."""
        try:
            self._trust = self._trust or Trust.open()
            return self._trust.holds(rule.wish(self._rules.files.root.path))
        except ConfigError:
            return False


def _without_rules(items: Items, kept: Collection[str]) -> Items:
    """Return the items without the rules that are not in `kept`."""
    return {name: each for name, each in items.items() if not name.startswith(ITEM) or name in kept}
