"""Clew's own format: `agents/`, `skills/`, `toolsets/` and `tools/` with NAME.md or NAME/SKILL.md, and so on.

Front matter gives the fields, the body the prompt or content. The format is strict: each violation is reported with its
place.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import time
from typing import Any

import msgspec

from clew.errors import FormatError
from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.front_matter_fixes import replace_value, without_item
from clew.skills.checks.problems import Problem, has_errors
from clew.skills.definitions.fields import (
    FIELDS,
    RECORDS,
    Fields,
    Sort,
    check_name,
    check_pattern,
    check_permissions,
    check_schema,
    check_text,
)
from clew.skills.definitions.template import find_placeholder
from clew.skills.files.document import MAX_BYTES, MarkdownDocument, read_document
from clew.skills.files.tree_walk import SKILL_FILES, Folder, TreeWalk, show, walk
from clew.skills.formats.digests import Bundle, bundle_of, digest_bundle
from clew.skills.formats.folder_contents import list_contents
from clew.skills.formats.safe_open import Root, Stamp
from clew.skills.manifest import AgentSpec, Skill, ToolEntry, Toolset

FOLDERS: dict[str, Sort] = {"agents": "agent", "skills": "skill", "toolsets": "toolset", "tools": "tool"}
REFERRING: dict[str, tuple[str, ...]] = {
    "agent": ("initial_skills", "skills"),
    "skill": ("toolsets", "skills"),
    "toolset": ("tools",),
}
"""The fields that refer to other definitions, by kind of definition."""
Record = AgentSpec | Skill | Toolset | ToolEntry

_NOTES = ("license", "compatibility")
_PARAMETER = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)
_TICK = 50_000_000
"""The resolution of file times, in nanoseconds. A file that changed within it may change again with the same time."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One parsed file. `record` is None if the file has errors, `keys` has the spelling of each field, and `given` the
    names that it refers to, by field, even if it has errors."""

    sort: Sort
    name: str
    document: MarkdownDocument
    record: Record | None = None
    keys: dict[str, str] = {}
    given: dict[str, tuple[str, ...]] = {}
    problems: tuple[Problem, ...] = ()

    @property
    def path(self) -> str:
        return self.document.path


class _OwnFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with a definition. `folder` is the folder of a NAME/SKILL.md, on the path that led to it."""

    sort: Sort
    named: str
    path: str
    real: str
    folder: str = ""


class BuildMemory:
    """A cache of parsed files of one root, with the state that each file had. `reused` counts the cache hits."""

    def __init__(self) -> None:
        self.reused = 0
        self._kept: dict[tuple[str, str], tuple[Bundle, tuple[Stamp | None, ...], Definition]] = {}

    def find(self, file: _OwnFile, bundle: Bundle, stamps: tuple[Stamp | None, ...]) -> Definition | None:
        kept = self._kept.get((file.path, file.real))
        if kept is None or kept[:2] != (bundle, stamps):
            return None
        self.reused += 1
        return kept[2]

    def keep(
        self, file: _OwnFile, bundle: Bundle, stamps: tuple[Stamp | None, ...], definition: Definition, now: int
    ) -> None:
        """Cache a file, unless it changed a moment ago or could not be read."""
        newest = max((stamp[-1] for stamp in stamps if stamp is not None), default=now)
        if newest < now - _TICK and None not in stamps:
            self._kept[file.path, file.real] = (bundle, stamps, definition)


def read_own(root: Root, home: str, memory: BuildMemory, skills: str = "") -> tuple[list[Definition], list[Problem]]:
    """All definitions below the folder `home` of the root, in the order of their paths; skills from the folder
    `skills` of the root, if one is named. Never raises.

    A file with several paths counts once: at its real path, else at the first one.
    """
    homes = {folder: posixpath.join(home, folder) for folder in FOLDERS}
    places = list((homes | {"skills": skills} if skills else homes).values())
    tree = walk(root, places, is_kept=True)
    problems = list(tree.problems)
    definitions: list[Definition] = []
    for place, sort in zip(places, FOLDERS.values(), strict=True):
        folder = tree.folders.get(place)
        if folder is not None:
            files = _once(_files(tree, folder, sort, problems))
            definitions += [_read(root, tree, file, memory) for file in files]
        elif os.path.lexists(root.absolute(place)) and not os.path.isdir(root.absolute(place)):
            message = "is not a folder"
            problems.append(Problem(kind="parse", path=place, message=message, allowed=(f"a folder of {sort}s",)))
    return sorted(definitions, key=lambda each: each.path), problems


def check_skill(raw: bytes, name: str) -> list[Problem]:
    """Return the problems of a SKILL.md in a folder of that name. References to other definitions are not checked."""
    fields = Fields(read_document(raw, "SKILL.md"), "skill")
    fields.values.setdefault("name", name)
    _check(fields, _OwnFile(sort="skill", named=name, path="SKILL.md", real="SKILL.md", folder=name))
    return [*fields.document.problems, *fields.problems]


def _files(tree: TreeWalk, folder: Folder, sort: Sort, problems: list[Problem]) -> list[_OwnFile]:
    found = []
    for name, real in folder.files.items():
        stem, ending = posixpath.splitext(name)
        if ending.lower() == ".md" and not name.startswith(".") and stem.lower() != "readme":
            found.append(_OwnFile(sort=sort, named=stem, path=folder.at(name), real=real))
    problems += [
        Problem(kind="parse", path=show(folder.at(name)), message="is not a regular file")
        for name in folder.odd
        if name.lower().endswith(".md")
    ]
    for name in folder.folders:
        if not name.startswith("."):
            found += _in_folder(tree, folder.at(name), name, sort, problems)
    return found


def _once(files: list[_OwnFile]) -> list[_OwnFile]:
    """Remove links to other files of the list, so that each real file counts once."""
    found: dict[str, _OwnFile] = {}
    for file in sorted(files, key=lambda each: (each.path != each.real, each.path)):
        found.setdefault(file.real, file)
    return list(found.values())


def _in_folder(tree: TreeWalk, path: str, name: str, sort: Sort, problems: list[Problem]) -> list[_OwnFile]:
    inner = tree.folders.get(path)
    wanted = f"{sort.upper()}.md"
    if inner is None:
        return []
    if name.lower().endswith(".md"):
        message = "is a folder with the name of a file"
        problems.append(Problem(kind="parse", path=show(path), message=message, allowed=("a file",)))
        return []
    main = next((each for each in sorted(inner.files) if each.lower() == wanted.lower()), None)
    if main is not None:
        return [_OwnFile(sort=sort, named=name, path=inner.at(main), real=inner.files[main], folder=path)]
    if not any(each in SKILL_FILES for below in tree.below(path) for each in below.files):
        message = f"the folder has no {wanted}"
        told = Problem(kind="parse", severity="warning", path=show(path), message=message, allowed=(wanted,))
        problems.append(told)
    return []


def _read(root: Root, tree: TreeWalk, file: _OwnFile, memory: BuildMemory) -> Definition:
    is_bundle = file.sort == "skill" and bool(file.folder)
    bundle = bundle_of(tree, file.folder) if is_bundle else Bundle(((file.named, file.real),))
    now = time.time_ns()  # the clock of file times
    stamps = tuple(root.stamp(real) for _, real in bundle.files)
    kept = memory.find(file, bundle, stamps)
    if kept is not None:
        return kept
    try:
        raw = root.read(file.real, MAX_BYTES)
    except FormatError as error:
        told = Problem(kind="parse", path=show(file.path), message=error.reason)
        return Definition(
            sort=file.sort, name=file.named, document=MarkdownDocument(path=show(file.path)), problems=(told,)
        )
    fields = Fields(read_document(raw, show(file.path)), file.sort)
    definition = _define(root, file, fields, raw, bundle if is_bundle else None)
    memory.keep(file, bundle, stamps, definition, now)
    return definition


def _define(root: Root, file: _OwnFile, fields: Fields, raw: bytes, bundle: Bundle | None) -> Definition:
    document = fields.document
    name = fields.values.setdefault("name", file.named)
    _check(fields, file)
    problems = [*document.problems, *fields.problems]
    record: Record | None = None
    if not has_errors(problems):
        record = _record(file, fields, bundle)
        record, told = _with_digest(root, record, file, raw, bundle)
        problems += told
    return Definition(
        sort=file.sort,
        name=name,
        document=document,
        record=record,
        keys=fields.keys,
        given={field: fields.values[field] for field in REFERRING.get(file.sort, ()) if field in fields.values},
        problems=tuple(problems),
    )


def _check(fields: Fields, file: _OwnFile) -> None:
    document = fields.document
    if document.problems and not document.values:
        return
    if not document.has_meta and (file.sort != "agent" or not document.body.strip()):
        message = "there is no front matter" if document.body.strip() else "is empty"
        hint = "Begin with a line ---, the line `description: …` and a line ---"
        fields.report(message, "", kind="parse", hint=hint)
        return
    name = fields.values["name"]
    if check_name(fields, name) and name != file.named and file.sort != "tool":
        message = f"the name {name} differs from the {'folder' if file.folder else 'file'} {show(file.named)}"
        fix = replace_value(document, fields.key_of("name"), file.named, f"call it {file.named}")
        fields.report(message, fields.key_of("name"), severity="warning", allowed=(show(file.named),), fix=fix)
    check_text(fields, is_required=file.sort in ("skill", "toolset"))
    check_pattern(fields)
    check_permissions(fields)
    check_schema(fields)
    _check_lists(fields)
    _check_parameters(fields)
    if file.sort == "skill":
        _check_template(fields)


def _check_template(fields: Fields) -> None:
    """Warn about text of the template that is still there."""
    line = find_placeholder(fields.document)
    if line:
        message = "the text of the template is still there"
        hint = "Describe the purpose of the skill and its steps, and remove the rest of the template"
        path = fields.document.path
        told = Problem(kind="validation", severity="warning", path=path, line=line, message=message, hint=hint)
        fields.problems.append(told)


def _check_lists(fields: Fields) -> None:
    """Report and remove duplicate names."""
    for field, kind in FIELDS[fields.sort].items():
        values = fields.values.get(field, ())
        if kind != tuple[str, ...] or len(set(values)) == len(values):
            continue
        key, kept = fields.key_of(field), tuple(dict.fromkeys(values))
        fields.values[field] = kept
        again = next(number for number, each in enumerate(values) if each in values[:number])
        fix = without_item(fields.document, f"{key}[{again}]", [*values[:again], *values[again + 1 :]])
        message = f"`{values[again][:80]}` is a duplicate"
        fields.report(message, f"{key}[{again}]", severity="warning", fix=fix)


def _check_parameters(fields: Fields) -> None:
    key = fields.key_of("parameters")
    seen: set[str] = set()
    for number, each in enumerate(fields.values.get("parameters", ())):
        place = f"{key}[{number}]"
        if not _PARAMETER.fullmatch(each.name) or each.name in seen:
            message = f"the parameter `{ascii(each.name)[1:-1][:80]}` has a duplicate or invalid name"
            fields.report(message, f"{place}.name", allowed=("letters, digits and `_`, each name once",))
        if (each.type == "enum") != bool(each.values):
            message = f"the parameter {each.name} needs `type: enum` and `values` together"
            fields.report(message, place, allowed=("type: enum, values: [a, b]",))
        seen.add(each.name)


def _record(file: _OwnFile, fields: Fields, bundle: Bundle | None) -> Record:
    values: dict[str, Any] = dict(fields.values)
    document = fields.document
    text = document.body.strip("\n")
    values |= {"prompt": text} if file.sort == "agent" else {"content": text}
    if file.sort == "tool":
        values.setdefault("description", "")
    if file.sort == "skill":
        notes = {key: values.pop(key) for key in _NOTES if key in values}
        values["metadata"] = {**notes, **values.get("metadata", {})}
        files = [name for name, _ in bundle.files] if bundle is not None else []
        contents = list_contents(document, files, posixpath.basename(file.path))
        values |= {**msgspec.structs.asdict(contents), "folder": show(file.folder)}
    return RECORDS[file.sort](**values, path=document.path)  # type: ignore[return-value]  # one of the four


def _with_digest(
    root: Root, record: Record, file: _OwnFile, raw: bytes, bundle: Bundle | None
) -> tuple[Record, list[Problem]]:
    """Return the record with the digest of all its files, or without a digest if one of them cannot be read."""
    if not isinstance(record, Skill | AgentSpec):
        return record, []
    try:
        digest = hashlib.sha256(raw).hexdigest() if bundle is None else digest_bundle(root, bundle, {file.real: raw})
    except FormatError as error:
        what = f"{show(error.document)} " if error.document else "its folder "
        message = f"has no digest: {what}{error.reason}"
        return record, [Problem(kind="parse", severity="warning", path=record.path, line=1, message=message)]
    return msgspec.structs.replace(record, digest=digest), []
