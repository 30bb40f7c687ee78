"""The permission policy of a folder, from its settings.

Rules that deny or ask apply at once. Rules that allow more than the default need the user's consent, because the
settings come with the folder.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from clew.config import PermissionsConfig
from clew.decode_errors import suggest
from clew.errors import ConfigError, InvalidInput
from clew.tools.permissions.policy import DEFAULT, Policy
from clew.tools.permissions.rules import PermissionRule, Verdict, parse_rule, wild_matches
from clew.trust import Wish, digest_parts, printable, real_folder

KIND = "permissions"


def rules_of(settings: PermissionsConfig) -> tuple[PermissionRule, ...]:
    """Return the rules of `[permissions]`. Raises ConfigError for an invalid rule."""
    texts: dict[Verdict, tuple[str, ...]] = {"allow": settings.allow, "ask": settings.ask, "deny": settings.deny}
    return tuple(_rule(text, verdict) for verdict, each in texts.items() for text in each)


def widening_rules(rules: Sequence[PermissionRule], base: Policy = DEFAULT) -> tuple[PermissionRule, ...]:
    """Return the rules that allow more than a policy does. Rules that ask or deny never do."""
    allowed = {rule.tool for rule in base.rules if rule.verdict == "allow" and not rule.conditions}
    return tuple(rule for rule in rules if rule.verdict == "allow" and rule.tool not in allowed)


def permissions_wish(settings: PermissionsConfig, project: Path) -> Wish | None:
    """Return the wish for rules that allow more than the default, or None without such rules. Raises ConfigError."""
    wider = sorted({rule.as_text() for rule in widening_rules(rules_of(settings))})
    if not wider:
        return None
    return Wish(
        folder=real_folder(project),
        kind=KIND,
        name=KIND,
        digest=digest_parts([text.encode(errors="surrogateescape") for text in wider]),
        summary=printable(f"lets agents do without asking: {', '.join(wider)}"),
    )


def policy_of(settings: PermissionsConfig, *, is_granted: bool) -> Policy:
    """Return the policy of a folder. Rules that need consent stay pending until the user agrees to `permissions_wish`.

    A rule about a whole tool replaces the default rules about that tool; denials of the default stay.
    Raises ConfigError.
    """
    rules = rules_of(settings)
    pending = () if is_granted else widening_rules(rules)
    counting = [rule for rule in rules if rule not in pending]
    whole = [rule.tool for rule in counting if not rule.conditions]
    kept = [rule for rule in DEFAULT.rules if rule.verdict == "deny" or not _is_named(rule.tool, whole)]
    policy = msgspec.structs.replace(DEFAULT, rules=(*kept, *counting))
    return msgspec.structs.replace(policy, waiting=pending)


def _is_named(tool: str, patterns: Sequence[str]) -> bool:
    return any(wild_matches(pattern, tool) for pattern in patterns)


def find_strays(settings: PermissionsConfig, tools: Collection[str]) -> list[str]:
    """Return a warning for each rule about a tool that does not exist. Raises ConfigError."""
    strays = [rule for rule in rules_of(settings) if not any(wild_matches(rule.tool, name) for name in tools)]
    return [
        f"permissions.{rule.verdict}: {printable(rule.as_text(), 100)!r} matches no tool. "
        + suggest(rule.tool, sorted(tools), "Tools are")
        for rule in strays
    ]


def _rule(text: str, verdict: Verdict) -> PermissionRule:
    try:
        return parse_rule(text, verdict)
    except InvalidInput as error:
        found = ConfigError(f"permissions.{verdict}: {error.reason}")
        found.hint = error.hint
        raise found from None
