"""The permission policy: allow, ask or deny, by tool, path, command and host.

How a call is judged. A call has facets: each part of a command, each path, each host. For every facet:

- a rule that denies and matches decides, whatever else matches;
- otherwise the most specific matching rule decides (`Rule.specificity`), and of equally specific ones the stricter;
- if none matches, the policy's `otherwise` decides.

The strictest facet decides the call. A command that cannot be parsed is never allowed: it asks, or is denied. A policy
below others (`narrow`) is as strict as the strictest of them: a child never has more than its parent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from clew.config import FOLDER, MACHINE_ONLY
from clew.decode_errors import in_plain_words
from clew.errors import ClewError, DeliveryRefused
from clew.tools.permissions.permission_patterns import COMMANDS, PATHS, URLS, Place, remembered, routes_of, texts
from clew.tools.permissions.rules import STRICTNESS, Facet, PermissionRule, Verdict, normal_path, parse_rule
from clew.tools.permissions.shell_commands import split_command
from clew.trail.work.webhook_addresses import parse_target
from clew.trust import printable

MAX_FACETS = 2_000
_WHOLE = 20_000
"""The limit for a reason, in characters: long enough for all parts that need permission."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Rules, the verdict without a matching rule (`otherwise`), and the policies above it.

    `waiting` holds rules that need consent. They do not apply; questions mention them if they would apply.
    """

    rules: tuple[PermissionRule, ...] = ()
    otherwise: Verdict = "ask"
    above: tuple[Policy, ...] = ()
    waiting: tuple[PermissionRule, ...] = ()


class PermissionDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a call, the deciding rule (None without a match), and the reason on one line.

    `pattern` has the patterns that the user may allow for a session or always, see `remembered`; it may be empty.
    """

    verdict: Verdict
    rule: PermissionRule | None
    reason: str
    pattern: str = ""


_SECRETS = (
    *("**/.env", "**/.env.local", "**/.env.development", "**/.env.test", "**/.env.staging", "**/.env.production"),
    *("**/.envrc", "**/.ssh/**", "**/.aws/**", "**/.gnupg/**", "**/.netrc", "**/.npmrc"),
    *("**/.pypirc", "**/.git-credentials", "**/id_rsa*", "**/id_ed25519*", "**/*.pem", "**/*.key"),
    *(f"**/{FOLDER}/{name}" for name in MACHINE_ONLY),
)

DEFAULT = Policy(
    rules=(
        *(PermissionRule(tool=name, verdict="allow") for name in ("read-file", "glob", "grep", "preview-edit")),
        *(PermissionRule(tool=name, verdict="ask") for name in ("write-file", "edit-file", "exec", "fetch")),
        *(PermissionRule(tool="*", verdict="deny", path=path) for path in _SECRETS),
    )
)
"""Agents may read files of the folder. Writing, running and fetching ask. Secrets are denied."""


def decide(
    policy: Policy, tool_name: str, arguments: Mapping[str, Any], *, place: Place | None = None
) -> PermissionDecision:
    """Decide on a call. With `place`, a path is checked as written and as its real path."""
    facets, is_clear = _facets(tool_name, arguments, place)
    judged = [(*_judge(policy, facet, is_guess=is_guess), facet) for facet, is_guess in facets]
    verdict, rule, facet = max(judged, key=lambda each: STRICTNESS[each[0]])
    if verdict == "allow" and not is_clear:
        return PermissionDecision(verdict="ask", rule=None, reason="Clew cannot determine what it would do")
    if verdict != "ask":
        return PermissionDecision(verdict=verdict, rule=rule, reason=_reason(rule, facet))
    asked = [(rule, facet) for each, rule, facet in judged if each == "ask"]
    pattern = remembered([facet for _, facet in asked], arguments, place) if is_clear else ""
    doubt = "" if is_clear else "; Clew cannot determine everything that it would do"
    return PermissionDecision(
        verdict=verdict, rule=rule, reason=_reasons(asked) + doubt + _awaited(policy, facet), pattern=pattern
    )


def narrow(parent: Policy, child: Policy) -> Policy:
    """Return the policy of a child: for every call the stricter verdict of both.

    A child with `otherwise="allow"`, the default of `read_policy`, follows its parent if it has no rule.
    """
    return msgspec.structs.replace(child, above=(*child.above, parent))


def extend(policy: Policy, rules: Sequence[PermissionRule]) -> Policy:
    """Return the policy with further rules. Denials, and the policies above, still apply."""
    return msgspec.structs.replace(policy, rules=(*policy.rules, *rules))


def read_policy(source: Mapping[str, Any], *, otherwise: Verdict = "allow") -> Policy:
    """Return the policy of a definition: texts under allow, ask and deny, or records under rules, or both.

    It is meant to be put below another policy. Raises InvalidInput.
    """
    try:
        found = msgspec.convert(dict(source), _WrittenPolicy)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, _WrittenPolicy, "permissions") from None
    texts: dict[Verdict, tuple[str, ...]] = {"allow": found.allow, "ask": found.ask, "deny": found.deny}
    rules = [parse_rule(text, verdict) for verdict, each in texts.items() for text in each]
    return Policy(rules=(*rules, *found.rules), otherwise=found.otherwise or otherwise)


class _WrittenPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    otherwise: Verdict | None = None


def _judge(policy: Policy, facet: Facet, *, is_guess: bool = False) -> tuple[Verdict, PermissionRule | None]:
    """Return the strictest verdict of the policy and those above it. For a guessed command only a denial counts."""
    found = [_own(policy, facet), *(_judge(each, facet) for each in policy.above)]
    verdict, rule = max(found, key=lambda each: (STRICTNESS[each[0]], each[1] is not None))
    return ("allow", None) if is_guess and verdict != "deny" else (verdict, rule)


def _own(policy: Policy, facet: Facet) -> tuple[Verdict, PermissionRule | None]:
    matching = [rule for rule in policy.rules if rule.matches(facet)]
    if not matching:
        return policy.otherwise, None
    decisive = max(matching, key=lambda rule: (rule.verdict == "deny", rule.specificity, STRICTNESS[rule.verdict]))
    return decisive.verdict, decisive


Facets = list[tuple[Facet, bool]]
"""Facets, each with whether it is a guess."""


def _facets(tool: str, arguments: Mapping[str, Any], place: Place | None) -> tuple[Facets, bool]:
    """Return everything that a call would do, and whether the list is complete."""
    paths: list[str | None] = [*_paths(arguments, place)]
    hosts, is_clear = _hosts(arguments)
    commands: list[tuple[str | None, bool]] = []
    for line in texts(arguments, COMMANDS):
        split = split_command(line)
        commands += [(part, False) for part in split.parts] + [(part, True) for part in split.inner]
        is_clear = is_clear and split.is_clear and bool(split.parts)
    routes: list[str | None] = [*routes_of(tool, arguments)]
    crossed = list(product(commands or [(None, False)], paths or [None], hosts or [None], routes or [None]))
    facets = [
        (Facet(tool=tool, command=command, path=path, domain=host, route=route), is_guess)
        for (command, is_guess), path, host, route in crossed[:MAX_FACETS]
    ]
    return facets, is_clear and len(crossed) <= MAX_FACETS


def _paths(arguments: Mapping[str, Any], place: Place | None) -> list[str]:
    """Return the paths of a call as written and as real paths. The tool itself refuses a path that leads nowhere."""
    found: dict[str, None] = {}
    for path in texts(arguments, PATHS):
        found[normal_path(path)] = None
        if place is not None:
            with contextlib.suppress(ClewError):
                found[normal_path(place(path))] = None
    return list(found)


def _hosts(arguments: Mapping[str, Any]) -> tuple[list[str | None], bool]:
    """Return the hosts of a call, and whether the list is complete."""
    found: list[str | None] = []
    is_known = True
    for url in texts(arguments, URLS):
        try:
            found.append(parse_target(url).host.rstrip("."))
        except DeliveryRefused:
            is_known = False
    return found, is_known


def _reasons(asked: Sequence[tuple[PermissionRule | None, Facet]]) -> str:
    """Return the parts of a call that need permission, each with the rule about it."""
    parts: dict[str, dict[str, None]] = {}
    for rule, facet in asked:
        parts.setdefault(_by(rule), {})[_what(facet, _WHOLE)] = None
    return printable("; ".join(f"{', '.join(each)}: {by}" for by, each in parts.items()), _WHOLE)


def _reason(rule: PermissionRule | None, facet: Facet) -> str:
    return f"{_what(facet, 200)}: {_by(rule)}"


def _what(facet: Facet, limit: int) -> str:
    return printable(facet.command or facet.route or facet.domain or facet.path or facet.tool, limit)


def _by(rule: PermissionRule | None) -> str:
    if rule is None:
        return "no rule matches it"
    verdict = {"allow": "is allowed", "ask": "needs permission", "deny": "is denied"}[rule.verdict]
    return f"{printable(rule.as_text(), 200)} {verdict}"


def _awaited(policy: Policy, facet: Facet) -> str:
    """Return a clause that names the pending rule that would allow this facet; empty without one."""
    waiting = [*policy.waiting, *(rule for above in policy.above for rule in above.waiting)]
    found = next((rule for rule in waiting if rule.matches(facet)), None)
    if found is None:
        return ""
    return f"; the rule {printable(found.as_text(), 200)} of this folder would allow it, and waits for `clew trust`"
