"""Agents as files: Claude Code and OpenCode in markdown, Codex in TOML. The text is the prompt."""

from __future__ import annotations

import re
import tomllib

from clew.llm.model_catalogue import shipped
from clew.skills.checks.problems import Problem
from clew.skills.files.document import MarkdownDocument
from clew.skills.formats.limits import AgentLimits
from clew.skills.formats.source import DefinitionSource, describe, metadata_of, to_name
from clew.skills.manifest import AgentSpec
from clew.trust import printable

KNOWN = {
    "claude": (
        *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills"),
        *("mcpServers", "hooks", "memory", "background", "effort", "isolation", "color", "initialPrompt", "disabled"),
    ),
    "opencode": (
        *("name", "description", "mode", "model", "variant", "prompt", "tools", "permission", "temperature", "top_p"),
        *("steps", "maxSteps", "disable", "disabled", "hidden", "color", "options"),
    ),
    "codex": (
        *("name", "description", "developer_instructions", "model", "model_reasoning_effort", "sandbox_mode"),
        *("mcp_servers", "nickname_candidates", "skills", "web_search"),
    ),
}
_FAMILIES = {"haiku": "fast", "sonnet": "", "opus": "strong"}
"""The role that a model of another program has here: a role leads to a model that there is, a name need not."""
_NAMED_HERE = re.compile(r"[\w-]+:\S+")
_KEY = re.compile(r"([A-Za-z0-9_-]+)[ \t]*=")


def read_agent(source: DefinitionSource, origin: str) -> AgentSpec | None:
    """The agent of a file; None where it has no prompt, or is switched off."""
    prompt = source.text("developer_instructions", "prompt") if origin != "claude" else ""
    prompt = source.document.body if source.document.body.strip() else prompt
    if not prompt.strip():
        source.refuse("is empty: an agent needs a prompt")
        return None
    if source.flag("disable", "disabled"):
        source.warn("is switched off by `disable`", "disable" if "disable" in source.document.meta else "disabled")
        return None
    limits = AgentLimits(source, origin)
    return AgentSpec(
        name=_name_of(source),
        description=describe(source, is_required=True),
        prompt=prompt,
        initial_skills=tuple(to_name(each) for each in source.words("skills")) if origin == "claude" else (),
        model=_model_of(source),
        tools=limits.tools,
        permissions=limits.permissions,
        metadata=metadata_of(source, KNOWN[origin]),
        path=source.path,
        origin=origin,
        digest=source.digest,
    )


def read_toml(raw: bytes, path: str) -> MarkdownDocument:
    """A TOML file as a document without a body. Never raises."""
    try:
        text = raw.decode("utf-8-sig")
        meta = tomllib.loads(text.replace("\r\n", "\n"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        where = re.search(r"at line (\d+)", str(error))
        problem = Problem(
            kind="parse", path=path, line=int(where[1]) if where else 1, message=f"is not valid TOML: {error}"
        )
        return MarkdownDocument(path=path, problems=(problem,))
    keys = ((found[1], number) for number, line in enumerate(text.split("\n"), 1) if (found := _KEY.match(line)))
    return MarkdownDocument(path=path, meta=meta, lines=dict(reversed(list(keys))), has_meta=True)


def _model_of(source: DefinitionSource) -> str:
    """The model as it is named here; what is not known here is the default, so that the agent can run."""
    written = source.text("model")
    if written in ("", "inherit"):
        return ""
    roles = {role for each in shipped().providers.values() for role in each.roles}
    if written in roles or _NAMED_HERE.fullmatch(written):
        return written
    source.used.discard("model")  # what was written is kept among the others
    family = next((each for each in _FAMILIES if each in written.lower()), None)
    if family is None:
        hint = 'Give it one by the name of the agent in config.toml: [models] NAME = "provider:model"'
        source.warn(f"there is no model `{printable(written, 80)}` here: it has the default one", "model", hint=hint)
    return _FAMILIES[family] if family is not None else ""


def _name_of(source: DefinitionSource) -> str:
    written = source.text("name") or source.named
    name = to_name(written, also="_") or to_name(source.named, also="_") or "agent"
    if name != written:
        source.warn(f"the name {written[:64]!r} is not allowed: it is read as {name}", "name", allowed=(name,))
    return name
