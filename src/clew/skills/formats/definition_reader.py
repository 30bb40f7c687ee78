"""Parses definition files. A file that has not changed since the last call comes from a cache."""

from __future__ import annotations

import hashlib
import posixpath
import time

import msgspec

from clew.errors import FormatError
from clew.skills.checks.problems import Problem
from clew.skills.files.document import MAX_BYTES, MarkdownDocument, read_document
from clew.skills.files.tree_walk import TreeWalk, is_plain
from clew.skills.formats.agents import read_agent, read_toml
from clew.skills.formats.commands import read_command
from clew.skills.formats.definition_files import DefinitionFile
from clew.skills.formats.digests import Bundle, bundle_of, digest_bundle
from clew.skills.formats.rules import read_imports
from clew.skills.formats.safe_open import Root, Stamp
from clew.skills.formats.skill_folders import read_skill
from clew.skills.formats.source import DefinitionSource
from clew.skills.manifest import AgentSpec, Skill, SkillLink

MAX_TOTAL = 100_000_000
"""The limit for all definitions of one tree, in bytes."""
_TICK = 50_000_000
"""The resolution of file times, in nanoseconds. A file that changed within it may change again with the same time."""


class ParsedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """The definition in a file, and its problems. Only rule files have `references` and a `digest` here."""

    skill: Skill | None = None
    agent: AgentSpec | None = None
    references: tuple[SkillLink, ...] = ()
    digest: str = ""
    problems: tuple[Problem, ...] = ()


class FileStates(msgspec.Struct, frozen=True):
    """The state of all files of a definition. It differs after any change to one of them."""

    bundle: Bundle
    stamps: tuple[Stamp | None, ...]

    @property
    def newest(self) -> int:
        """The time of the last change, in nanoseconds."""
        return max((stamp[-1] for stamp in self.stamps if stamp is not None), default=0)


class ParseCache:
    """A cache of parsed files of one root, with the state that each file had. Pass it to several calls.

    `reused` counts the cache hits.
    """

    def __init__(self) -> None:
        self.reused = 0
        self._kept: dict[tuple[str, str, str], tuple[FileStates, ParsedDefinition]] = {}

    def find(self, found: DefinitionFile, state: FileStates) -> ParsedDefinition | None:
        kept = self._kept.get((found.kind, found.path, found.real))
        if kept is None or kept[0] != state:
            return None
        self.reused += 1
        return kept[1]

    def keep(self, found: DefinitionFile, state: FileStates, reading: ParsedDefinition) -> None:
        self._kept[found.kind, found.path, found.real] = (state, reading)


class Reader:
    """Reads the definitions of one walk."""

    def __init__(self, root: Root, tree: TreeWalk, memory: ParseCache) -> None:
        self._root = root
        self._tree = tree
        self._memory = memory
        self._room = MAX_TOTAL

    def read(self, found: DefinitionFile) -> ParsedDefinition:
        """Read the definition in a file. Never raises."""
        bundle = bundle_of(self._tree, found.folder) if found.kind == "skill" else None
        now = time.time_ns()  # the clock of file times
        state = _state(self._root, bundle if bundle is not None else Bundle(((found.name, found.real),)))
        if found.kind != "rule" and (kept := self._memory.find(found, state)) is not None:
            return kept
        try:
            raw = self._root.read(found.real, MAX_BYTES)
            self._room -= len(raw)
            if self._room < 0:
                raise FormatError(found.real, f"is ignored: the definitions have more than {MAX_TOTAL:,} bytes")
        except FormatError as error:
            return ParsedDefinition(problems=(Problem(kind="parse", path=found.path, message=error.reason),))
        reading = self._rule(found, raw) if found.kind == "rule" else self._definition(found, raw, bundle)
        if state.newest < now - _TICK:
            self._memory.keep(found, state, reading)
        return reading

    def _rule(self, found: DefinitionFile, raw: bytes) -> ParsedDefinition:
        document = read_document(raw, found.real)
        if document.problems and not document.body:
            return ParsedDefinition(problems=document.problems)
        references: tuple[SkillLink, ...] = ()
        problems: tuple[Problem, ...] = ()
        if found.origin.startswith("CLAUDE"):
            text = raw.decode("utf-8-sig").replace("\r\n", "\n")
            references, problems = read_imports(text, found.real, self._tree.find)
        return ParsedDefinition(references=references, digest=hashlib.sha256(raw).hexdigest(), problems=problems)

    def _definition(self, found: DefinitionFile, raw: bytes, bundle: Bundle | None) -> ParsedDefinition:
        is_toml = found.name.endswith(".toml")
        document = read_toml(raw, found.real) if is_toml else read_document(raw, found.real)
        if document.problems and not document.meta and not document.body.strip():
            return ParsedDefinition(problems=document.problems)
        source = self._source(found, raw, document, bundle)
        skill: Skill | None = None
        agent: AgentSpec | None = None
        if bundle is not None:
            files = [name for name, _ in bundle.files if is_plain(name)]
            skill = read_skill(source, posixpath.dirname(found.real), files)
        elif found.kind == "command":
            skill = read_command(source, found.origin)
        else:
            agent = read_agent(source, found.origin)
        told = document.problems
        if skill is not None or agent is not None:  # these problems did not exclude the definition
            told = tuple(msgspec.structs.replace(each, severity="warning") for each in told)
        return ParsedDefinition(skill=skill, agent=agent, problems=(*told, *source.problems))

    def _source(
        self, found: DefinitionFile, raw: bytes, document: MarkdownDocument, bundle: Bundle | None
    ) -> DefinitionSource:
        named = posixpath.splitext(found.name)[0]
        if bundle is not None:
            named = posixpath.basename(found.folder or self._root.path.replace("\\", "/"))
        source = DefinitionSource(path=found.real, named=named, raw=raw.decode("utf-8-sig"), document=document)
        try:
            whole = hashlib.sha256(raw).hexdigest()
            source.digest = whole if bundle is None else digest_bundle(self._root, bundle, {found.real: raw})
        except FormatError as error:
            hint = "You cannot agree to it, and it does not load, until Clew can read all of its files"
            what = f"{error.document} " if error.document else "its folder "
            source.warn(f"has no digest: {what}{error.reason}", hint=hint)
        return source


def _state(root: Root, bundle: Bundle) -> FileStates:
    return FileStates(bundle, tuple(root.stamp(real) for _, real in bundle.files))
