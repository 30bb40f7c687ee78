"""Skill folders (agentskills.io): SKILL.md with `scripts/`, `references/` and `assets/` beside it. Keys of Claude Code
are supported too. A skill that violates the format loads with a warning."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Sequence

from clew.skills.formats.commands import parameters_of
from clew.skills.formats.folder_contents import list_contents
from clew.skills.formats.source import MAX_NAME, DefinitionSource, describe, metadata_of, to_name
from clew.skills.manifest import Skill, Triggers

SPECIFIED = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_COMPATIBILITY = 500
_NAMES = "lower-case letters, digits and single hyphens, at most 64 characters"


def read_skill(source: DefinitionSource, folder: str, files: Sequence[str]) -> Skill | None:
    """Return the skill of a SKILL.md in `folder`, or None for an empty file. `files` are relative to the folder."""
    if not source.document.meta and not source.document.body.strip():
        if not source.document.problems:  # the problem is reported already
            source.refuse("is empty", hint="Begin with --- and the lines `name:` and `description:`")
        return None
    if not source.document.has_meta and not source.document.problems:
        source.warn("there is no front matter", hint="Begin with --- and the lines `name:` and `description:`")
    name = _name_of(source)
    description = describe(source, is_required=source.document.has_meta)
    _check_compatibility(source)
    contents = list_contents(source.document, files, posixpath.basename(source.path))
    return Skill(
        name=name,
        description=description,
        content=source.document.body,
        tier=3 if source.flag("disable-model-invocation") else 2,
        triggers=Triggers(paths=source.words("paths")),
        parameters=parameters_of(source),
        references=contents.references,
        scripts=contents.scripts,
        assets=contents.assets,
        allowed_tools=source.words("allowed-tools", "allowed_tools"),
        metadata=metadata_of(source, SPECIFIED),
        path=source.path,
        folder=folder,
        origin="agentskills",
        digest=source.digest,
    )


def _name_of(source: DefinitionSource) -> str:
    """Return the name in the file, corrected if it is invalid, or the name of the folder if the file has none."""
    folder = to_name(source.named) or "skill"
    written = unicodedata.normalize("NFKC", source.text("name"))
    if not written:
        if source.document.has_meta:
            source.warn(f"`name` is missing: Clew uses that of the folder, {folder}", "name", allowed=(folder,))
        return folder
    name = to_name(written) or folder
    if name != written:
        source.warn(f"the name {written[:MAX_NAME]!r} is not allowed: Clew uses {name}", "name", allowed=(_NAMES,))
    elif name != unicodedata.normalize("NFKC", source.named):
        source.warn(f"the name {name} differs from its folder {source.named}", "name", allowed=(folder,))
    return name


def _check_compatibility(source: DefinitionSource) -> None:
    given = source.text("compatibility")
    if len(given) > MAX_COMPATIBILITY:
        allowed = (f"1 to {MAX_COMPATIBILITY}",)
        source.warn(f"`compatibility` has {len(given):,} characters", "compatibility", allowed=allowed)
    source.used.discard("compatibility")  # the metadata keeps it
