"""Writes skills into a folder of skills: copies from elsewhere, or new ones."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from clew.errors import AlreadyExists, FormatError, InvalidInput, ReadOnly
from clew.files import create_file, locked
from clew.skills.definitions.conversion import ConvertedSkill, conform
from clew.skills.definitions.template import begin_text
from clew.skills.files.tree_walk import is_plain, walk
from clew.skills.formats.collection import collect
from clew.skills.formats.digests import Bundle, digest_bundle
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import Skill
from clew.trust import printable

MAX_FILES, MAX_TOTAL = 512, 16 * 1_048_576
"""Limits for one imported skill."""
MAIN = "SKILL.md"
_DRAFTS = ".cache"
"""The folder for unfinished copies. Clew never looks for definitions in a folder of this name."""
_LOCKED, _OLD = "import", ".old"
_NAME = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a skill: its path within the skill, and its size."""

    path: str
    size: int


class SkillImport(msgspec.Struct, frozen=True, kw_only=True):
    """A skill to copy, or the reason why it cannot be copied. `origin` is its folder, `notes` list the changes, and
    `replaces` allows it to replace a skill of the same name."""

    name: str
    origin: str
    files: tuple[ImportedFile, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    replaces: bool = False


def new_skill(folder: Path, name: str, description: str = "") -> Path:
    """Write a new skill from the template into a folder of skills, and return its file.

    Raises InvalidInput for an invalid name, AlreadyExists, and ReadOnly.
    """
    if not _NAME.fullmatch(name):
        reason = f"{name[:80]!r} must be lower-case letters, digits and single hyphens, 1 to 64"
        raise InvalidInput("NAME", reason, hint="For example release-notes")
    place = folder / name
    if os.path.lexists(place) or os.path.lexists(folder / f"{name}.md"):
        raise AlreadyExists("skill", name)
    text = begin_text(name, description)
    with _write_errors(place):
        try:
            place.mkdir(parents=True)
        except FileExistsError:  # another process created it first
            raise AlreadyExists("skill", name) from None
        create_file(place / MAIN, text.encode())
    return place / MAIN


def find_imports(
    paths: Sequence[Path], folder: Path, *, force: bool = False, taken: Mapping[str, Path] = MappingProxyType({})
) -> list[SkillImport]:
    """Return the skills in these folders, by path and name. A skill that cannot be copied to `folder` has the reason.

    `taken` has the files of existing skills by name. Nothing is written. Links inside a skill are followed; links out
    of it are reported and not copied.
    """
    found: list[SkillImport] = []
    for path in paths:
        if not path.is_dir():
            found.append(SkillImport(name=path.name or str(path), origin=str(path), problem="is not a folder"))
            continue
        base = Root(os.fspath(path))
        skills = [each for each in collect(path).skills if each.origin == "agentskills"]
        found += [_import(base, each, folder, taken, force=force) for each in skills]
    names = [each.name for each in found]
    return [
        msgspec.structs.replace(each, problem="is a duplicate: Clew imports the first one")
        if each.name in names[:at]
        else each
        for at, each in enumerate(found)
    ]


def write_imports(imports: Sequence[SkillImport], folder: Path) -> dict[Path, str]:
    """Copy skills into a folder of skills, each completely or not at all, and return the digest of each by file.

    Only one process at a time writes. It first cleans up after an interrupted one. Raises ReadOnly, FormatError, and
    AlreadyExists if another process has created a skill of the name that must not be replaced.
    """
    digests: dict[Path, str] = {}
    with _write_errors(folder), _drafts(folder) as drafts:
        for each in imports:
            if os.path.lexists(folder / each.name) and not each.replaces:
                raise AlreadyExists("skill", each.name)
            digest = _fill(drafts / each.name, Root(each.origin), each)
            _swap(drafts / each.name, folder / each.name)
            digests[folder / each.name / MAIN] = digest
    return digests


def _import(base: Root, skill: Skill, folder: Path, taken: Mapping[str, Path], *, force: bool) -> SkillImport:
    origin = base.absolute(skill.folder)
    name = skill.name if _NAME.fullmatch(skill.name) else ""
    target = folder / name
    shown = SkillImport(name=name or printable(skill.name, 80), origin=origin, replaces=force)
    if not name:
        return msgspec.structs.replace(shown, problem="its name is not allowed here")
    if os.path.realpath(origin) == os.path.realpath(target):
        return msgspec.structs.replace(shown, problem="is in this folder already")
    if not force and (os.path.lexists(target) or os.path.lexists(folder / f"{name}.md")):
        return msgspec.structs.replace(shown, problem="a skill of that name exists: pass --force to replace it")
    if name in taken and not any(_is_below(taken[name], place) for place in (target, Path(origin))):
        return msgspec.structs.replace(shown, problem=f"{printable(str(taken[name]), 300)} has the same name")
    try:
        files, notes = _files(Root(origin), name)
        return msgspec.structs.replace(shown, files=files, notes=notes)
    except FormatError as error:
        return msgspec.structs.replace(shown, problem=f"{printable(error.document, 200)} {error.reason}".strip())


def _is_below(file: Path, folder: Path) -> bool:
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def _files(base: Root, skill: str) -> tuple[tuple[ImportedFile, ...], tuple[str, ...]]:
    """Return the sorted files of a skill, and notes about changes. Raises FormatError for files that cannot be
    copied."""
    tree = walk(base, is_kept=True)
    bundle = [(folder.at(name), real) for folder in tree.below("") for name, real in folder.files.items()]
    if len(bundle) > MAX_FILES:
        raise FormatError("", f"it has more than {MAX_FILES:,} files")
    if sum(name.lower() == MAIN.lower() for name, _ in bundle) > 1:
        raise FormatError("", f"it has several files {MAIN}, which differ only in case")
    files, room = [], MAX_TOTAL
    notes = [f"{printable(each.path, 200)}: {each.message}" for each in tree.problems]
    for name, real in sorted(bundle):
        if not is_plain(name):
            raise FormatError(name, "has a name with control characters or invalid bytes")
        _, size = base.digest(real, room)
        room -= size
        if _is_main(name):
            conformed = _converted(base, real, skill)
            size = len(conformed.raw)
            notes += conformed.notes
        files.append(ImportedFile(path=name, size=size))
    return tuple(files), tuple(notes)


def _converted(base: Root, real: str, skill: str) -> ConvertedSkill:
    """Return the SKILL.md in Clew's own format. Raises FormatError if it cannot be converted."""
    found = conform(base.read(real, MAX_TOTAL), os.path.basename(base.path), skill)
    if found.problem:
        raise FormatError("", found.problem)
    return found


def _is_main(name: str) -> bool:
    return name.lower() == MAIN.lower()


def _fill(draft: Path, base: Root, found: SkillImport) -> str:
    """Copy the files, and return the digest of the copy."""
    written: dict[str, bytes] = {}
    for each in found.files:
        real = base.resolve(each.path)
        is_main = _is_main(each.path)
        name = MAIN if is_main else each.path
        file = draft / name
        file.parent.mkdir(parents=True, exist_ok=True)
        written[name] = _converted(base, real, found.name).raw if is_main else base.read(real, MAX_TOTAL)
        create_file(file, written[name])
        if os.access(base.absolute(real), os.X_OK):
            file.chmod(0o755)
    return digest_bundle(Root(os.fspath(draft)), Bundle(tuple((name, name) for name in sorted(written))), written)


def _swap(draft: Path, target: Path) -> None:
    """Replace the folder `target` by the draft. The old folder moves beside the draft."""
    draft.chmod(0o755)
    if os.path.lexists(target):
        target.replace(draft.with_name(f"{target.name}{_OLD}"))
    draft.replace(target)


@contextlib.contextmanager
def _drafts(folder: Path) -> Iterator[Path]:
    """Yield an empty folder for drafts, for one process at a time. Raises ReadOnly, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / _DRAFTS
    with locked(folder.parent / _LOCKED):
        if place.is_symlink():
            raise ReadOnly(f"{place} is a link, and Clew does not write through links", hint="Remove the link")
        _clean_up(place, folder)
        place.mkdir()
        try:
            yield place
        finally:
            _clean_up(place, folder)


def _clean_up(place: Path, folder: Path) -> None:
    """Remove the folder for drafts. An old skill whose replacement did not finish is put back."""
    for each in place.glob(f"*{_OLD}"):
        target = folder / each.name.removesuffix(_OLD)
        if not os.path.lexists(target):
            each.replace(target)
    shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _write_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReadOnly(f"{place} cannot be written: {error.strerror}") from None
