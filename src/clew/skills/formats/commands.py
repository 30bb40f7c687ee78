"""Commands: prompts that a user calls by name (Claude Code and OpenCode commands, Codex prompts). They become skills
that load only by name."""

from __future__ import annotations

from clew.lazy_pattern import lazy_pattern
from clew.skills.formats.source import DefinitionSource, describe, metadata_of, to_name
from clew.skills.manifest import Parameter, Skill

KNOWN = (
    *("description", "argument-hint", "allowed-tools", "model", "agent", "subtask"),
    *("disable-model-invocation", "name", "metadata", "hooks", "context"),
)
_ARGUMENTS = lazy_pattern(r"\$(?:ARGUMENTS|[1-9])\b")
_NAMED = lazy_pattern(r"(?<!\$)\$([A-Z][A-Z0-9_]{1,40})\b")


def read_command(source: DefinitionSource, origin: str) -> Skill | None:
    """Return the skill of a command file, or None for an empty file."""
    body = source.document.body
    if not body.strip():
        source.refuse("is empty", hint="Write the instructions below the front matter")
        return None
    name = to_name(source.named, also="_") or "command"
    if name != source.named:
        source.warn(f"the name {source.named!r} is not allowed: Clew uses {name}", hint="Rename the file")
    parameters = parameters_of(source, named=origin == "codex")
    return Skill(
        name=name,
        description=describe(source, is_required=False),
        content=body,
        tier=3,
        parameters=parameters,
        allowed_tools=source.words("allowed-tools", "allowed_tools"),
        metadata=metadata_of(source, KNOWN),
        path=source.path,
        folder=source.path.rpartition("/")[0],
        origin=origin,
        digest=source.digest,
    )


def parameters_of(source: DefinitionSource, *, named: bool = False) -> tuple[Parameter, ...]:
    """Return the parameters of a prompt: `arguments` if it uses `$ARGUMENTS` or `$1`, and its `$NAMES` if `named`."""
    body = source.document.body
    hint = source.text("argument-hint", "argument_hint")
    found = [Parameter(name="arguments", description=hint)] if hint or _ARGUMENTS.search(body) else []
    if named:
        names = dict.fromkeys(name for name in _NAMED.findall(body) if name != "ARGUMENTS")
        found += [Parameter(name=name, required=True) for name in names]
    return tuple(found)
