"""Agent files: Claude Code and OpenCode in markdown, Codex in TOML. The body is the prompt."""

from __future__ import annotations

import re

from clew.lazy_pattern import lazy_pattern
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
"""The role in Clew for a model family of another program. A role always has a model; a model name may not exist."""
_NAMED_HERE = lazy_pattern(r"[\w-]+:\S+")
_KEY = lazy_pattern(r"([A-Za-z0-9_-]+)[ \t]*=")


def read_agent(source: DefinitionSource, origin: str) -> AgentSpec | None:
    """Return the agent of a file, or None if it has no prompt or is disabled."""
    prompt = source.text("developer_instructions", "prompt") if origin != "claude" else ""
    prompt = source.document.body if source.document.body.strip() else prompt
    if not prompt.strip():
        source.refuse("is empty: an agent needs a prompt")
        return None
    if source.flag("disable", "disabled"):
        source.warn("is disabled by `disable`", "disable" if "disable" in source.document.meta else "disabled")
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
    """Parse a TOML file as a document without a body. Never raises."""
    import tomllib  # most folders define nothing in TOML

    try:
        text = raw.decode("utf-8-sig")
        meta = tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:  # of the text or of the TOML
        where = re.search(r"at line (\d+)", str(error))
        problem = Problem(
            kind="parse", path=path, line=int(where[1]) if where else 1, message=f"is not valid TOML: {error}"
        )
        return MarkdownDocument(path=path, problems=(problem,))
    keys = ((found[1], number) for number, line in enumerate(text.split("\n"), 1) if (found := _KEY.match(line)))
    return MarkdownDocument(path=path, meta=meta, lines=dict(reversed(list(keys))), has_meta=True)


def _model_of(source: DefinitionSource) -> str:
    """Return the model in Clew's notation. An unknown model becomes the default model, so that the agent can run."""
    written = source.text("model")
    if written in ("", "inherit"):
        return ""
    roles = {role for each in shipped().providers.values() for role in each.roles}
    if written in roles or _NAMED_HERE.fullmatch(written):
        return written
    source.used.discard("model")  # the metadata keeps the original value
    family = next((each for each in _FAMILIES if each in written.lower()), None)
    if family is None:
        hint = 'Set a model for the agent in config.toml: [models] NAME = "provider:model"'
        source.warn(f"unknown model `{printable(written, 80)}`: the agent uses the default model", "model", hint=hint)
    return _FAMILIES[family] if family is not None else ""


def _name_of(source: DefinitionSource) -> str:
    written = source.text("name") or source.named
    name = to_name(written, also="_") or to_name(source.named, also="_") or "agent"
    if name != written:
        source.warn(f"the name {written[:64]!r} is not allowed: Clew uses {name}", "name", allowed=(name,))
    return name
