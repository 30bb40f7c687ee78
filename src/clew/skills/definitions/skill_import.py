"""Skills written into a folder of skills: copied from elsewhere, or begun anew."""

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
"""Limits of one skill that is imported."""
MAIN = "SKILL.md"
_DRAFTS = ".cache"
"""Where a skill is written before it is put in its place: nobody looks for definitions in a folder of that name."""
_LOCKED, _OLD = "import", ".old"
_NAME = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a skill: its path within the skill, and its size."""

    path: str
    size: int


class SkillImport(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that can be copied, or the reason why not. `origin` is its folder, `notes` list the changes, and
    `replaces` says that it may replace a skill of its name."""

    name: str
    origin: str
    files: tuple[ImportedFile, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    replaces: bool = False


def new_skill(folder: Path, name: str, description: str = "") -> Path:
    """Write the beginning of a skill into a folder of skills, and give its file back.

    Raises InvalidInput for a name that is not allowed, AlreadyExists, and ReadOnly.
    """
    if not _NAME.fullmatch(name):
        reason = f"{name[:80]!r} must be lower-case letters, digits and single hyphens, 1 to 64"
        raise InvalidInput("NAME", reason, hint="For example release-notes")
    place = folder / name
    if os.path.lexists(place) or os.path.lexists(folder / f"{name}.md"):
        raise AlreadyExists("skill", name)
    text = begin_text(name, description)
    with _told(place):
        try:
            place.mkdir(parents=True)
        except FileExistsError:  # another process was quicker
            raise AlreadyExists("skill", name) from None
        create_file(place / MAIN, text.encode())
    return place / MAIN


def find_imports(
    paths: Sequence[Path], folder: Path, *, force: bool = False, taken: Mapping[str, Path] = MappingProxyType({})
) -> list[SkillImport]:
    """Return the skills in these folders, by path and name, each with the reason if it cannot be copied to `folder`.

    `taken` has the files of existing skills by name. Nothing is written. A link inside a skill is followed; a link out
    of it is not copied, and reported.
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
        msgspec.structs.replace(each, problem="comes a second time; the first counts")
        if each.name in names[:at]
        else each
        for at, each in enumerate(found)
    ]


def write_imports(imports: Sequence[SkillImport], folder: Path) -> dict[Path, str]:
    """Copy skills into a folder of skills, each completely or not at all, one process at a time.

    First it cleans up after an interrupted process. Returns the digest of each written skill by file. Raises ReadOnly,
    FormatError, and AlreadyExists if a skill of the name exists by now and must not be replaced.
    """
    digests: dict[Path, str] = {}
    with _told(folder), _drafts(folder) as drafts:
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
        return msgspec.structs.replace(shown, problem="is there already")
    if not force and (os.path.lexists(target) or os.path.lexists(folder / f"{name}.md")):
        return msgspec.structs.replace(shown, problem="there is a skill of that name; --force replaces it")
    if name in taken and not any(_is_below(taken[name], place) for place in (target, Path(origin))):
        return msgspec.structs.replace(shown, problem=f"its name is taken by {printable(str(taken[name]), 300)}")
    try:
        files, notes = _files(Root(origin), name)
        return msgspec.structs.replace(shown, files=files, notes=notes)
    except FormatError as error:
        return msgspec.structs.replace(shown, problem=f"{printable(error.document, 200)} {error.reason}".strip())


def _is_below(file: Path, folder: Path) -> bool:
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def _files(base: Root, skill: str) -> tuple[tuple[ImportedFile, ...], tuple[str, ...]]:
    """The files of a skill in order, with the changes to them. Raises FormatError for files that cannot be copied."""
    tree = walk(base, is_kept=True)
    bundle = [(folder.at(name), real) for folder in tree.below("") for name, real in folder.files.items()]
    if len(bundle) > MAX_FILES:
        raise FormatError("", f"it has over {MAX_FILES:,} files")
    if sum(name.lower() == MAIN.lower() for name, _ in bundle) > 1:
        raise FormatError("", f"it has several files {MAIN}, which differ in capital letters only")
    files, room = [], MAX_TOTAL
    notes = [f"{printable(each.path, 200)}: {each.message}" for each in tree.problems]
    for name, real in sorted(bundle):
        if not is_plain(name):
            raise FormatError(name, "has a name that cannot be shown")
        _, size = base.digest(real, room)
        room -= size
        if _is_main(name):
            conformed = _conformed(base, real, skill)
            size = len(conformed.raw)
            notes += conformed.notes
        files.append(ImportedFile(path=name, size=size))
    return tuple(files), tuple(notes)


def _conformed(base: Root, real: str, skill: str) -> ConvertedSkill:
    """The SKILL.md as it is written. Raises FormatError where it cannot be made one that is allowed."""
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
        written[name] = _conformed(base, real, found.name).raw if is_main else base.read(real, MAX_TOTAL)
        create_file(file, written[name])
        if os.access(base.absolute(real), os.X_OK):
            file.chmod(0o755)
    return digest_bundle(Root(os.fspath(draft)), Bundle(tuple((name, name) for name in sorted(written))), written)


def _swap(draft: Path, target: Path) -> None:
    """Put a folder in the place of another, which is there until then, and beside the draft afterwards."""
    draft.chmod(0o755)
    if os.path.lexists(target):
        target.replace(draft.with_name(f"{target.name}{_OLD}"))
    draft.replace(target)


@contextlib.contextmanager
def _drafts(folder: Path) -> Iterator[Path]:
    """An empty place for drafts, for one process at a time. Raises ReadOnly, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / _DRAFTS
    with locked(folder.parent / _LOCKED):
        if place.is_symlink():
            raise ReadOnly(f"{place} is not written: it is a link", hint="Remove the link")
        _settle(place, folder)
        place.mkdir()
        try:
            yield place
        finally:
            _settle(place, folder)


def _settle(place: Path, folder: Path) -> None:
    """Take the place of drafts away; a skill that was to be replaced, and was not, is put back."""
    for each in place.glob(f"*{_OLD}"):
        target = folder / each.name.removesuffix(_OLD)
        if not os.path.lexists(target):
            each.replace(target)
    shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _told(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReadOnly(f"{place} cannot be written: {error.strerror}") from None
