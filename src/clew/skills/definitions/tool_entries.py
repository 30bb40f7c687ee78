"""Tools in the manifest. The executable tool defines its name, description and schema; a file may only add notes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from clew.skills.checks.front_matter_fixes import remove_key, replace_value
from clew.skills.checks.problems import Problem
from clew.skills.definitions.fields import problem_at, unfit
from clew.skills.definitions.own_format import Definition
from clew.skills.manifest import ToolEntry
from clew.tools.tool import Tool

_SAID = ("description", "schema", "category", "examples", "see_also")
_MAX_SHOWN = 120


def entry_of(tool: Tool) -> ToolEntry:
    """Return the manifest entry of an executable tool, with its examples as content."""
    return ToolEntry(
        name=tool.name,
        description=tool.description,
        content=_examples(tool.examples),
        schema=tool.schema,
        category=tool.category,
        examples=tool.examples,
        see_also=tool.see_also,
        is_executable=True,
    )


def read_tools(tools: Iterable[Tool]) -> tuple[dict[str, ToolEntry], list[Problem]]:
    """Return the entries of executable tools by name, and problems for duplicates and values that JSON cannot store."""
    entries: dict[str, ToolEntry] = {}
    problems: list[Problem] = []
    for each in tools:
        strange = unfit(each.schema) or unfit(list(each.examples))
        if each.name in entries:
            problems.append(_config(f"there are two tools called {each.name}", "unique names"))
        elif strange:
            problems.append(_config(f"the tool {each.name} has {strange}", "values that JSON can store"))
        else:
            entries[each.name] = entry_of(each)
    return entries, problems


def join_entry(definition: Definition, entry: ToolEntry | None) -> tuple[ToolEntry | None, list[Problem]]:
    """Return the manifest entry of a tool with a file: the file alone, or the tool with the notes of the file.

    If the file contradicts the tool, the tool takes precedence, and there is a problem.
    """
    written = definition.record
    if not isinstance(written, ToolEntry):
        return entry, []
    if entry is None:
        return (written, []) if written.description.strip() else (None, [_undescribed(definition)])
    problems = [
        _divergence(definition, field, getattr(written, field), getattr(entry, field))
        for field in _SAID
        if field in definition.keys and not _is_same(getattr(written, field), getattr(entry, field))
    ]
    if problems:
        return entry, problems
    return msgspec.structs.replace(entry, content=written.content or entry.content, path=written.path), []


def _is_same(written: Any, said: Any) -> bool:
    return bool(" ".join(written.split()) == " ".join(said.split()) if isinstance(said, str) else written == said)


def _divergence(definition: Definition, field: str, written: Any, said: Any) -> Problem:
    key = definition.keys[field]
    says = "use the value of the tool"
    if field == "description":
        fix = replace_value(definition.document, key, json.dumps(said, ensure_ascii=False), says)
    else:
        fix = remove_key(definition.document, key, f"{says}: remove `{key}`")
    message = f"`{key}` differs from that of the tool {definition.name}: {_shown(written)} here, {_shown(said)} there"
    context = {"toolName": definition.name, "field": field, "written": written, "said": said}
    return problem_at(definition.document, key, message, allowed=(_shown(said),), fix=fix, context=context)


def _undescribed(definition: Definition) -> Problem:
    hint = "Add a line `description:`, or pass the executable tool of that name to the build"
    context = {"toolName": definition.name}
    return problem_at(definition.document, "description", "`description` is missing", hint=hint, context=context)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _examples(examples: Iterable[dict[str, Any]]) -> str:
    shown = [f"```json\n{json.dumps(each, ensure_ascii=False, sort_keys=True, default=str)}\n```" for each in examples]
    return "\n\n".join(["## Examples", *shown]) if shown else ""


def _config(message: str, allowed: str) -> Problem:
    return Problem(kind="config", path="", message=message, allowed=(allowed,))
