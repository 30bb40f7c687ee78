"""Translates the tool limits of agents of other programs into tools and permission rules.

No limit is lost: one that Clew cannot express becomes a stricter one, with a warning. An agent whose limits cannot be
parsed gets no tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.errors import InvalidInput
from clew.lazy_pattern import lazy_pattern
from clew.skills.agent_tools import ACTING, FOREIGN, WRITING, clew_tool_name
from clew.skills.formats.source import DefinitionSource, split_words
from clew.skills.manifest import AgentPermissions
from clew.tools.permissions.rules import STRICTNESS, Verdict, parse_rule, wild_matches
from clew.trust import printable

ALL = "*"
_OPENCODE = dict.fromkeys(("edit", "write", "patch", "apply_patch", "multiedit"), WRITING)
"""OpenCode has one permission for all tools that write."""
_NO_EQUIVALENT = (
    *("task", "agent", "todowrite", "todoread", "websearch", "codesearch", "lsp", "question", "notebookedit"),
    *("external_directory", "doom_loop", "exitplanmode", "askuserquestion"),
)
"""Tools that no agent of a file has in Clew, so that a rule against them needs no translation."""
_TURNS = "Clew does not limit the turns of an agent"
_NOT_ENFORCED = {
    "claude": {
        "maxTurns": _TURNS,
        "hooks": "Clew does not run them, so they refuse nothing",
        "isolation": "the agent works on the files of this folder, not on a copy",
    },
    "opencode": {"steps": _TURNS, "maxSteps": _TURNS},
    "codex": dict[str, str](),
}
"""Limits of other programs that Clew does not enforce, with the consequence."""
_MODES = ("", "default", "acceptEdits", "auto", "bypassPermissions")
_SANDBOXES = ("", "read-only", "workspace-write", "danger-full-access")
_BRACKETS = lazy_pattern(r"\s*([^\s()]+)\s*(?:\((.*)\))?\s*", re.S)


class AgentLimits:
    """The tools and permission rules of one agent, collected from the keys of its file."""

    def __init__(self, source: DefinitionSource, origin: str) -> None:
        self._source = source
        self._named: tuple[str, ...] | None = None
        self._only: dict[str, None] | None = None
        self._rules: dict[Verdict, dict[str, None]] = {"allow": {}, "ask": {}, "deny": {}}
        _READERS[origin](self, source)
        for key, lost in _NOT_ENFORCED[origin].items():
            if source.document.meta.get(key) is not None:
                source.warn(f"`{key}` has no effect: {lost}", key)

    @property
    def tools(self) -> tuple[str, ...] | None:
        """The listed tools, without those that a rule for all tools denies; None if the file lists none."""
        if self._only is None or self._named is None:
            return self._named if self._only is None else tuple(self._only)
        known = set(map(clew_tool_name, self._only))
        return tuple(each for each in self._named if clew_tool_name(each) in known)

    @property
    def permissions(self) -> AgentPermissions:
        """The collected rules, without duplicates. Rules that allow matter only as exceptions to rules that ask."""
        rules = {verdict: tuple(each) for verdict, each in self._rules.items()}
        return AgentPermissions(allow=rules["allow"] if rules["ask"] else (), ask=rules["ask"], deny=rules["deny"])

    def name(self, key: str = "tools") -> None:
        """Read the tools from a list, or from a mapping of names to true or false."""
        self._source.used.add(key)
        value = self._source.document.meta.get(key)
        if value is None:
            return
        named = self._source.words(key)
        if not isinstance(value, dict):
            self._named = named
            return
        off = [str(name) for name in value if str(name) not in named]
        on = tuple(each for each in named if each != ALL)
        self._named = on if ALL in off or (on and ALL not in named) else None
        for each in off:
            if each != ALL:
                self.judge(key, each, "deny")

    def deny(self, key: str) -> None:
        """Deny the tools of a list, completely or only for the part in brackets: `Bash(git push:*)`."""
        value = self._source.document.meta.get(key)
        if value is None:
            return
        named = [str(each) for each in value] if isinstance(value, list) else split_words(str(value))
        is_lost = not named and bool(self._source.document.problems)  # invalid YAML is only partly read
        if isinstance(value, dict) or is_lost:
            self.deny_all(key)
            return
        for each in named:
            self._deny_one(key, each)

    def only_read(self) -> None:
        """Deny all tools that write files or run commands."""
        self._add("deny", ACTING)

    def apply_verdicts(self, permissions: Any, key: str) -> None:
        """Apply verdicts by tool, or one verdict for all tools. A later verdict overrides an earlier one, except that
        `deny` for a single tool always counts."""
        given = {ALL: permissions} if permissions in ("allow", "ask", "deny") else permissions
        if not isinstance(given, dict):
            self.deny_all(key)
            return
        for name, verdict in given.items():
            if name == ALL:
                self._judge_all(key, verdict)
            elif isinstance(verdict, dict):
                self._judge_parts(key, str(name), verdict)
            else:
                self.judge(key, str(name), verdict)

    def judge(self, key: str, name: str, given: Any) -> None:
        """Apply one verdict to one tool."""
        verdict = self._verdict(key, name, given)
        self._keep_allowed(name, verdict)
        if verdict != "allow" and _is_unknown(name) and name.lower() not in _NO_EQUIVALENT:
            self._warn_unknown(key, name)
        self._add(verdict, _names(name))

    def deny_all(self, key: str) -> None:
        """Deny all tools, because the permissions of the agent cannot be parsed."""
        self._source.warn(f"`{key}` cannot be parsed: the agent has no tools", key)
        self._named = ()
        self._add("deny", (ALL,))

    def _judge_all(self, key: str, given: Any) -> None:
        verdict = self._verdict(key, ALL, given)
        if verdict == "deny":
            self._only = {}
        elif verdict == "ask":
            self._add("ask", (ALL,))

    def _keep_allowed(self, name: str, verdict: Verdict) -> None:
        """Remember a tool that is not denied after a verdict that denies all tools."""
        if self._only is not None and verdict != "deny":
            self._only[name] = None

    def _judge_parts(self, key: str, name: str, given: Mapping[Any, Any]) -> None:
        """Apply verdicts to parts of a tool: commands, or paths."""
        parts = [(str(pattern), self._verdict(key, name, each)) for pattern, each in given.items()]
        if not parts:
            return
        verdicts = [verdict for _, verdict in parts]
        if any(verdict != "deny" for verdict in verdicts):
            self._keep_allowed(name, "allow")
        if not all(_part(name, pattern) for pattern, _ in parts):
            strictest = max(verdicts, key=lambda each: STRICTNESS[each])
            self._source.warn(f"Clew has no rules for parts of `{printable(name, 80)}`: {_ALL_PARTS[strictest]}", key)
            self.judge(key, name, strictest)
            return
        for at, (pattern, verdict) in enumerate(parts):
            self._judge_part(key, name, pattern, verdict, before=parts[:at], behind=parts[at + 1 :])

    def _judge_part(
        self, key: str, name: str, pattern: str, verdict: Verdict, *, before: Sequence[Any], behind: Sequence[Any]
    ) -> None:
        if verdict != "deny" and _covers(before, pattern, ("deny",)):
            shown = printable(f"{name}: {pattern}", 80)
            self._source.warn(f"`{shown}` stays denied: in Clew, deny always wins over later rules", key)
        elif verdict != "allow" or not _covers(behind, pattern, ("ask", "deny")):
            self._add(verdict, (f"{each}{_part(name, pattern)}".removesuffix(f"({ALL})") for each in _names(name)))

    def _deny_one(self, key: str, written: str) -> None:
        found = _BRACKETS.fullmatch(written)
        if written.strip("- ") == "":
            return
        if found is None:
            self.deny_all(key)
            return
        name, inner = clew_tool_name(found[1]), found[2]
        if _is_unknown(found[1]) and found[1].lower() not in _NO_EQUIVALENT:
            self._warn_unknown(key, found[1])
        parts = _claude_parts(name, inner) if inner is not None else ()
        if inner is not None and not parts:
            self._source.warn(f"`{printable(written, 80)}` has no equivalent in Clew: {name} is denied completely", key)
        names = WRITING if parts and name in WRITING else (name,)
        self._add("deny", (f"{name}({part})" for name in names for part in parts) if parts else (name,))

    def _verdict(self, key: str, name: str, given: Any) -> Verdict:
        """Return a valid verdict. An unknown verdict is treated as `deny`."""
        found = {True: "allow", False: "deny"}.get(given, given) if isinstance(given, bool) else given
        if isinstance(found, str) and found in STRICTNESS:
            return found
        self._source.warn(f"`{printable(name, 80)}` must be allow, ask or deny: it is denied", key)
        return "deny"

    def _add(self, verdict: Verdict, rules: Iterable[str]) -> None:
        for each in rules:
            try:
                parse_rule(each, verdict)
            except InvalidInput:
                self._named = ()
                self._source.warn(f"`{printable(each, 80)}` has no equivalent in Clew: the agent has no tools")
                continue
            self._rules[verdict][each] = None

    def _warn_unknown(self, key: str, name: str) -> None:
        self._source.warn(f"unknown tool `{printable(name, 80)}`: its limit has no effect", key)


_ALL_PARTS = {"allow": "it is allowed", "ask": "it always asks", "deny": "it is denied"}


def _read_claude(limits: AgentLimits, source: DefinitionSource) -> None:
    limits.name()
    limits.deny("disallowedTools")
    mode = source.text("permissionMode")
    source.used.discard("permissionMode")  # the metadata keeps it
    if mode == "plan":
        limits.only_read()
    elif mode not in _MODES:
        message = f"`permissionMode: {printable(mode, 80)}` has no effect: the agent asks for permissions as usual"
        source.warn(message, "permissionMode")


def _read_opencode(limits: AgentLimits, source: DefinitionSource) -> None:
    limits.name()
    given = source.document.meta.get("permission")
    if given is not None:
        limits.apply_verdicts(given, "permission")


def _read_codex(limits: AgentLimits, source: DefinitionSource) -> None:
    sandbox = source.text("sandbox_mode")
    if sandbox not in _SANDBOXES:
        source.warn(f"unknown sandbox `{printable(sandbox, 80)}`: the agent may only read", "sandbox_mode")
    if sandbox not in _SANDBOXES or sandbox == "read-only":
        limits.only_read()
    if source.document.meta.get("web_search") in (False, "disabled"):
        limits.judge("web_search", "webfetch", "deny")
    source.used.discard("sandbox_mode")  # as above


_READERS = {"claude": _read_claude, "opencode": _read_opencode, "codex": _read_codex}


def _names(name: str) -> tuple[str, ...]:
    return _OPENCODE.get(name.lower(), (clew_tool_name(name),))


def _is_unknown(name: str) -> bool:
    """Whether Clew has no tool for this name."""
    return name.lower() not in FOREIGN and name.lower() not in _OPENCODE and name not in FOREIGN.values()


def _covers(parts: Iterable[tuple[str, Verdict]], pattern: str, verdicts: Sequence[Verdict]) -> bool:
    return any(verdict in verdicts and wild_matches(wider, pattern) for wider, verdict in parts)


def _part(name: str, pattern: str) -> str:
    """Return the part of a rule in brackets, with the brackets; empty if Clew has no such rule."""
    tools = _names(name)
    if pattern == ALL:
        return f"({ALL})"
    if tools == ("exec",) and pattern.strip():
        escaped = pattern.replace("\\", "\\\\").replace("?", ALL)
        return f"({escaped})"
    found = _path_part(pattern) if tools in (WRITING, ("read-file",)) else ""
    return f"({found})" if found else ""


def _path_part(pattern: str) -> str:
    """Convert a pattern whose stars match slashes to a glob; empty if there is no equivalent."""
    if pattern.startswith(("/", "~", "$")) or "?" in pattern:
        return ""
    if ALL not in pattern:
        return pattern
    folder = pattern.rstrip(ALL)
    if ALL not in folder:
        return f"{folder}**" if folder.endswith("/") else ""
    ending = pattern.removeprefix("**/").lstrip(ALL)
    return f"**/*{ending}" if ALL not in ending and "/" not in ending and pattern.startswith(ALL) else ""


def _claude_parts(name: str, inner: str) -> tuple[str, ...]:
    """Convert the part of a Claude Code rule in brackets to Clew's notation; empty if there is no equivalent."""
    text = inner.strip()
    if name == "exec":
        return (re.sub(r":\*$", ALL, text.replace("\\", "\\\\")),) if text else ()
    if name == "fetch":
        return (text.removeprefix("domain:"),) if text.startswith("domain:") else ()
    if text.startswith(("/", "~", "$")) or "/" not in text:
        return ()
    folder = text.rstrip(f"{ALL}/")
    return (text, f"{folder}/**") if ALL not in folder else (text,)
