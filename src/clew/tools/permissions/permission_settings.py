"""The permission policy of a folder, from its settings. What they forbid holds at once; what they allow beyond the
default waits for the user's consent, since the settings come with the folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from clew.config import PermissionsConfig
from clew.decode_errors import suggest
from clew.errors import ConfigError, InvalidInput
from clew.tools.permissions.policy import DEFAULT, Policy, extend
from clew.tools.permissions.rules import Rule, Verdict, parse_rule, wild_matches
from clew.trust import Wish, digest_parts, printable, real_folder

KIND = "permissions"


def rules_of(settings: PermissionsConfig) -> tuple[Rule, ...]:
    """The rules of `[permissions]`. Raises ConfigError naming the one that is none."""
    texts: dict[Verdict, tuple[str, ...]] = {"allow": settings.allow, "ask": settings.ask, "deny": settings.deny}
    return tuple(_rule(text, verdict) for verdict, each in texts.items() for text in each)


def widening(rules: Sequence[Rule], base: Policy = DEFAULT) -> tuple[Rule, ...]:
    """Those of the rules that allow more than a policy does. Only what allows can: asking and denying never do, for
    what denies holds whatever else is said."""
    allowed = {
        rule.tool for rule in base.rules if rule.verdict == "allow" and not (rule.path or rule.command or rule.domain)
    }
    return tuple(rule for rule in rules if rule.verdict == "allow" and rule.tool not in allowed)


def permissions_wish(settings: PermissionsConfig, project: Path) -> Wish | None:
    """What the settings allow beyond the default, as a wish; None where that is nothing. Raises ConfigError."""
    wider = sorted({rule.as_text() for rule in widening(rules_of(settings))})
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
    """The policy; without the user's consent to `permissions_wish`, the rules that it is about only wait.
    Raises ConfigError."""
    rules = rules_of(settings)
    wider = () if is_granted else widening(rules)
    policy = extend(DEFAULT, [rule for rule in rules if rule not in wider])
    return msgspec.structs.replace(policy, waiting=wider)


def find_strays(settings: PermissionsConfig, tools: Collection[str]) -> list[str]:
    """What is to be said of rules about tools that there are not, one line each. Raises ConfigError."""
    strays = [rule for rule in rules_of(settings) if not any(wild_matches(rule.tool, name) for name in tools)]
    return [
        f"permissions.{rule.verdict}: {printable(rule.as_text(), 100)!r} is about no tool. "
        + suggest(rule.tool, sorted(tools), "Tools are")
        for rule in strays
    ]


def _rule(text: str, verdict: Verdict) -> Rule:
    try:
        return parse_rule(text, verdict)
    except InvalidInput as error:
        found = ConfigError(f"permissions.{verdict}: {error.reason}")
        found.hint = error.hint
        raise found from None
