"""Builds one manifest from markdown definitions. The same tree always gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from clew.errors import FormatError
from clew.skills.checks.front_matter_fixes import replace_value, without_item, written
from clew.skills.checks.problems import Fix, Problem, in_order
from clew.skills.definitions.fields import Sort, problem_at
from clew.skills.definitions.own_format import REFERRING, BuildMemory, Definition, read_own
from clew.skills.definitions.references import BadReference, DefinedNames, find_bad_references, find_unknown
from clew.skills.definitions.tool_entries import join_entry, read_tools
from clew.skills.files.document import MarkdownDocument
from clew.skills.files.tree_walk import is_left_out, show
from clew.skills.formats.collection import Collected
from clew.skills.formats.rules import resolve_beside
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import AgentSpec, Manifest, Skill, ToolEntry, Toolset, is_route
from clew.tools.tool import Tool

HOME = ".clew"
"""The folder of definitions in a workspace."""
_REFERRED = {"initial_skills": "skills", "skills": "skills", "toolsets": "toolsets", "tools": "tools"}
_R = TypeVar("_R", AgentSpec, Skill, Toolset)


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a tree, and its problems sorted by place."""

    manifest: Manifest
    problems: tuple[Problem, ...] = ()


def build(
    root: Path,
    tools: Iterable[Tool] = (),
    found: Collected | None = None,
    *,
    memory: BuildMemory | None = None,
    skills: str = "",
) -> BuildResult:
    """Build the manifest of a folder from its definitions, the executable `tools`, and definitions `found` in other
    formats.

    Definitions are read from `.clew` below the root; without it, and with nothing `found`, from the root itself. Skills
    are read from the folder `skills` below the root instead, if one is named.
    Definitions with errors are left out, and so are references to them. Own definitions take precedence over found ones
    of the same name. Never raises for broken files. With the `memory` of an earlier call, only changed files are read
    again.
    """
    if not os.path.isdir(root):
        problem = Problem(kind="config", path="", message=f"the folder {show(os.fspath(root))} does not exist")
        return BuildResult(manifest=Manifest(), problems=(problem,))
    return _Build(Root(os.fspath(root)), tools, found, memory or BuildMemory(), skills).run()


def build_or_raise(
    root: Path, tools: Iterable[Tool] = (), found: Collected | None = None, *, memory: BuildMemory | None = None
) -> Manifest:
    """Like `build`, but raise the first error: a ParseError, ValidationError, BuildError or ConfigError."""
    built = build(root, tools, found, memory=memory)
    for problem in built.problems:
        if problem.severity == "error":
            raise problem.as_error()
    return built.manifest


class _Build:
    """The state of one build."""

    def __init__(
        self, root: Root, tools: Iterable[Tool], found: Collected | None, memory: BuildMemory, skills: str
    ) -> None:
        is_workspace = found is not None or os.path.isdir(root.absolute(HOME))
        self._root = root
        self._found = found or Collected()
        self._definitions, self._problems = read_own(root, HOME if is_workspace else "", memory, skills)
        self._entries, problems = read_tools(tools)
        self._problems += problems
        self._places: dict[tuple[str, str], Definition] = {}
        self._alike: dict[tuple[str, str], Definition] = {}
        """The first definition of each name, without regard to case."""
        self._broken: set[tuple[str, str]] = set()

    def run(self) -> BuildResult:
        for definition in self._definitions:
            self._declare(definition)
        manifest = Manifest(
            agents=self._records("agent", self._found.agents),
            skills={
                name: self._without_broken_links(each)
                for name, each in self._records("skill", self._found.skills).items()
            },
            toolsets=self._records("toolset", ()),
            tools=self._tools(),
        )
        names = self._names(manifest)
        for bad in (*find_bad_references(manifest, names), *self._bad_references_of_broken(names)):
            self._report(bad)
        self._problems += self._collected_problems()
        return BuildResult(manifest=self._without_broken(manifest), problems=tuple(in_order(self._problems)))

    def _declare(self, definition: Definition) -> None:
        key = (definition.sort, definition.name)
        first = self._places.setdefault(key, definition)
        self._problems += definition.problems
        alike = self._alike.setdefault((definition.sort, definition.name.casefold()), definition)
        if alike.name != definition.name:
            message = f"the {definition.sort} {definition.name} differs from {alike.name} only in upper and lower case"
            hint = f"Rename one, because some file systems ignore case. The other is {alike.path}"
            path = definition.keys.get("name", "")
            problem = problem_at(definition.document, path, message, kind="build", severity="warning", hint=hint)
            self._problems.append(problem)
        if first is not definition:
            message = f"there are two {definition.sort}s called {definition.name}: the other is {first.path}"
            path = definition.keys.get("name", "")
            context = {f"{definition.sort}Name": definition.name, "paths": (first.path, definition.path)}
            problem = problem_at(definition.document, path, message, kind="build", context=context, hint="Rename one")
            self._problems.append(problem)

    def _records(self, sort: Sort, found: Iterable[_R]) -> dict[str, _R]:
        """Return the definitions without errors by name. Clew's own format wins over other formats."""
        own: dict[str, Any] = {name: each.record for (of, name), each in self._places.items() if of == sort}
        read = {each.path for each in self._definitions}
        records = {name: record for name, record in own.items() if record is not None}
        for each in found:
            if each.path in read:
                continue
            if each.name in own:
                message = (
                    f"{self._places[sort, each.name].path} defines the {sort} {each.name} too, and takes precedence"
                )
                self._problems.append(Problem(kind="build", severity="warning", path=each.path, message=message))
            else:
                records[each.name] = each
        return dict(sorted(records.items()))

    def _without_broken_links(self, skill: Skill) -> Skill:
        """Remove the references of an own skill that lead to no file, and report them."""
        if skill.origin != "clew" or not skill.references:
            return skill
        kept = []
        for each in skill.references:
            reason = self._fault_of_link(skill.path, each.path)
            if not reason:
                kept.append(each)
                continue
            message = f"the link to {show(each.path)[:200]} {reason}"
            problem = Problem(kind="build", severity="warning", path=skill.path, line=each.line, message=message)
            self._problems.append(problem)
        return msgspec.structs.replace(skill, references=tuple(kept)) if len(kept) < len(skill.references) else skill

    def _fault_of_link(self, path: str, written: str) -> str:
        target = resolve_beside(path, written)
        if target is None:
            return "leads out of the root"
        try:
            real = self._root.resolve(target)
        except FormatError as error:
            return error.reason
        if is_left_out(real):
            return "leads to a folder that does not belong to the skill"
        return "" if os.path.isfile(self._root.absolute(real)) else "is not a file"

    def _tools(self) -> dict[str, ToolEntry]:
        entries: dict[str, ToolEntry] = dict(self._entries)
        for (sort, name), definition in self._places.items():
            if sort != "tool":
                continue
            entry, problems = join_entry(definition, self._entries.get(name))
            self._problems += problems
            if entry is not None:
                entries[name] = entry
        return dict(sorted(entries.items()))

    def _names(self, manifest: Manifest) -> DefinedNames:
        """Return all declared names, including names of definitions with errors: a reference to them is valid."""
        own: dict[str, set[str]] = {"agent": set(), "skill": set(), "toolset": set(), "tool": set()}
        for sort, name in self._places:
            own[sort].add(name)
        return DefinedNames(
            skills=own["skill"] | manifest.skills.keys(),
            toolsets=own["toolset"] | manifest.toolsets.keys(),
            tools=own["tool"] | manifest.tools.keys(),
        )

    def _bad_references_of_broken(self, names: DefinedNames) -> Iterator[BadReference]:
        """Return unknown names in definitions with other errors, so that all errors are reported at once."""
        for (sort, name), definition in self._places.items():
            if definition.record is None:
                yield from find_unknown(sort, name, definition.given, names)

    def _report(self, bad: BadReference) -> None:
        definition = self._places.get((bad.sort, bad.name))
        if bad.severity == "error":
            self._broken.add((bad.sort, bad.name))
        more: dict[str, Any] = {
            "kind": bad.kind,
            "severity": bad.severity,
            "allowed": bad.allowed,
            "nearest": bad.nearest,
            "context": bad.context,
        }
        if definition is None:
            found = self._found.agents if bad.sort == "agent" else self._found.skills
            path = next((each.path for each in found if each.name == bad.name), "")
            self._problems.append(Problem(path=path, message=bad.message, **more))
            return
        item = _item(definition, bad.field, bad.target)
        fix = _fix_of(definition, item, bad)
        self._problems.append(problem_at(definition.document, item, bad.message, fix=fix, **more))

    def _collected_problems(self) -> Iterator[Problem]:
        """Return the problems of collected files, except for files that are in Clew's own format."""
        read = {each.path for each in self._definitions}
        return (each for each in self._found.problems if each.path not in read)

    def _without_broken(self, manifest: Manifest) -> Manifest:
        """Remove broken definitions, and references to them."""
        kept: dict[str, Mapping[str, Any]] = {
            "agents": {n: each for n, each in manifest.agents.items() if ("agent", n) not in self._broken},
            "skills": {n: each for n, each in manifest.skills.items() if ("skill", n) not in self._broken},
            "toolsets": {n: each for n, each in manifest.toolsets.items() if ("toolset", n) not in self._broken},
            "tools": manifest.tools,
        }
        for sort, fields in REFERRING.items():
            records = kept[f"{sort}s"]
            kept[f"{sort}s"] = {name: self._pruned(sort, record, fields, kept) for name, record in records.items()}
        return Manifest(**kept)  # type: ignore[arg-type]  # the keys are the names of the fields

    def _pruned(self, sort: str, record: Any, fields: Iterable[str], kept: Mapping[str, Mapping[str, Any]]) -> Any:
        changed: dict[str, tuple[str, ...]] = {}
        for field in fields:
            names: tuple[str, ...] = getattr(record, field)
            there = kept[_REFERRED[field]]
            left = tuple(each for each in names if each in there or (field == "tools" and is_route(each)))
            if len(left) < len(names):
                changed[field] = left
                lost = [each for each in names if each not in left]
                self._problems += [
                    problem for each in lost for problem in self._removed_name(sort, record, field, each)
                ]
        return msgspec.structs.replace(record, **changed) if changed else record

    def _removed_name(self, sort: str, record: Any, field: str, name: str) -> Iterator[Problem]:
        """Report a name that was removed, unless that is reported already."""
        what = _REFERRED[field][:-1]
        cause = self._places.get((what, name))
        if cause is None:
            return
        definition = self._places.get((sort, record.name))
        document = definition.document if definition is not None else MarkdownDocument(path=record.path)
        item = _item(definition, field, name) if definition is not None else field
        message = f"the {what} {name[:80]} is ignored here, because {cause.path} has errors"
        yield problem_at(document, item, message, kind="build", severity="warning")


def _item(definition: Definition, field: str, name: str) -> str:
    """Return the path of a name within a definition."""
    key = definition.keys[field]
    return f"{key}[{definition.document.meta[key].index(name)}]"


def _fix_of(definition: Definition, item: str, bad: BadReference) -> Fix | None:
    if bad.nearest:
        return replace_value(definition.document, item, written(bad.nearest), f"change it to {bad.nearest}")
    if isinstance(definition.record, Skill) and bad.field == "skills" and bad.target == bad.name:
        kept = [each for each in definition.record.skills if each != bad.target]
        return without_item(definition.document, item, kept)
    return None
