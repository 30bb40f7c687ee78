"""Rules that come by themselves: a hook before file operations brings the rules of the place, once a conversation.

It is no tool, and no model calls it. What was given is noted in the exposure set of the conversation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Protocol

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ConfigError, InvalidInput
from clew.fences import clean
from clew.llm.tokens import estimate_tokens
from clew.skills.exposure import Exposed, Exposures, Items, Via
from clew.skills.rules.documents import digest_text
from clew.skills.rules.files import Rule
from clew.skills.rules.index import RuleReference
from clew.skills.rules.texts import ITEM, WAITING, RuleText, as_text, fit
from clew.skills.rules.tree import Rules
from clew.trust import Trust, printable

Operation = Literal["read", "write", "edit", "list"]

BUDGET = 4_000
"""So many tokens of rules one operation may bring."""
LEAST_BUDGET = 100
_BY = "rules"


class FileHook(Protocol):
    """What is asked before a file operation is done."""

    async def before(self, operation: Operation, path: str) -> Sequence[RuleText]:
        """What a model is to know before it does this, the outermost first; nothing that it was given already."""
        ...


class RuleInterceptor:
    """The rules for one conversation: that of `by.session`, or that of a handle.

    A text is given once, again when it has changed, and again after `compacted`. Rules that the user has not agreed to
    are named once, without their text. Safe to use from several tasks and processes. Raises HandleRefused where the
    handle has ended.
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
            raise InvalidInput("session", "is needed to know what a conversation was given", hint="Or give a handle")
        if budget < LEAST_BUDGET:
            raise InvalidInput("budget", f"must be at least {LEAST_BUDGET} tokens")
        self._rules = rules
        self._sets = exposures
        self._clock = clock
        self._by = by
        self._handle = handle
        self._trust = trust
        self._budget = budget

    async def begin(self) -> Sequence[RuleText]:
        """The rules of the root, which hold for all that is done."""
        return await self._give(self._texts(await self._rules.get_root_rules(), "initial", "always"))

    async def before(self, operation: Operation, path: str) -> Sequence[RuleText]:
        """The rules of the folders on the way to a path, which hold beside those of the root; see FileHook."""
        found = await self._rules.get_rules_for_path(path)
        return await self._give(self._texts(found, "path", f"{operation} {printable(path, 200)}"))

    async def for_intent(self, intent: str, limit: int = 3) -> Sequence[RuleText]:
        """The documents that rules link to and that fit what is intended, the best first. Those of a rule that the user
        has not agreed to, and documents that changed since, stay away. Raises InvalidInput for an empty intent."""
        texts = []
        for match in await self._rules.search_references(intent, limit):
            rule = await self._rules.find_rule(match.reference.source)
            if rule is not None and self._is_trusted(rule):
                text = await self._rules.get_reference_content(match.reference)
                if text and text.strip() and digest_text(text) == self._covered(rule, match.reference):
                    texts.append(self._document(match.reference, text))
        return await self._give(texts)

    async def compacted(self) -> Sequence[RuleText]:
        """What a context needs from which everything was taken: the rules of the root now, the others when they are
        next met."""
        exposure = await self._sets.open(self._handle, by=self._by)
        if any(item.startswith(ITEM) for item in exposure.items):
            reason = "the context was compacted"
            await self._sets.change(exposure, _without_rules, by=self._by, ended_by=_BY, reason=reason)
        return await self.begin()

    async def _give(self, wanted: Sequence[RuleText]) -> Sequence[RuleText]:
        """What of this was not given yet, noted as given."""
        exposure = await self._sets.open(self._handle, by=self._by)
        if all(each.item in exposure.items for each in wanted):
            return ()
        given: list[RuleText] = []

        def note(items: Items) -> Items:
            nonlocal given  # of the last attempt: the one that counts
            given = fit([each for each in wanted if each.item not in items], self._budget)
            new = [each for each in given if each.text or each.left_out == WAITING]
            old = [item for item in items if any(item.startswith(each.place) for each in new)]
            return {**{name: each for name, each in items.items() if name not in old}, **self._exposed(new)}

        await self._sets.change(exposure, note, by=self._by, ended_by=_BY, reason="its text changed")
        return tuple(given)

    def _exposed(self, given: Sequence[RuleText]) -> dict[str, Exposed]:
        now = self._clock.now()
        return {
            each.item: Exposed(item=each.item, via=each.via, why=each.why, since=now, tokens=each.tokens, by=_BY)
            for each in given
        }

    def _texts(self, found: Sequence[Rule], via: Via, why: str) -> list[RuleText]:
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

    def _covered(self, rule: Rule, reference: RuleReference) -> str | None:
        """The digest of a document that consent to a rule covers."""
        path = self._rules.files.root.relative(os.path.realpath(reference.absolute_path))
        return dict(rule.documents).get(path) if path is not None else None

    def _is_trusted(self, rule: Rule) -> bool:
        """A file of grants that cannot be read is no consent."""
        try:
            self._trust = self._trust or Trust.open()
            return self._trust.holds(rule.wish(self._rules.files.root.path))
        except ConfigError:
            return False


def _without_rules(items: Items) -> Items:
    return {name: each for name, each in items.items() if not name.startswith(ITEM)}
