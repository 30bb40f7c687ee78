"""The present files of a folder's skills, agents and rules that need consent, so that a person can read them first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from clew.catalog.consent.consent_snapshots import MAX_KEPT, MAX_TEXT, Files, FileState, see
from clew.catalog.skills.wishes import SKILL, definition_wishes, find_definition_root
from clew.config import Config
from clew.errors import FormatError
from clew.skills.files.tree_walk import show, walk
from clew.skills.formats.digests import Bundle, HashedFile, bundle_of, digest_hashed
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import Skill, Toolset
from clew.skills.rules.documents import digest_text, read_text
from clew.skills.rules.files import CONSENT, AgentRule
from clew.trust import MAX_BYTES, Wish, printable


class ConsentTexts:
    """The texts of one folder's definitions at one time. A definition that changed since its wish was read has none."""

    def __init__(self, config: Config) -> None:
        source = find_definition_root(config)
        self._manifest = source.read().manifest
        self._root = Root(os.fspath(source.root))
        self._known = {(each.kind, each.name): each for each in definition_wishes(self._manifest, source.root)}
        rules = source.rule_files().everywhere().rules if source.is_repository else ()
        self._rules = {printable(each.real): each for each in rules}

    def of(self, wish: Wish) -> Files | None:
        """Return the files of a wish; None if it is of another kind, changed, or cannot be read."""
        try:
            if wish.kind == CONSENT:
                return self._rule(wish, self._rules[wish.name])
            if self._known[wish.kind, wish.name].digest != wish.digest:
                return None
            is_skill = wish.kind == SKILL
            return self._skill(self._manifest.skills[wish.name]) if is_skill else self._agent(wish.name)
        except (KeyError, FormatError):
            return None

    def _agent(self, name: str) -> Files | None:
        agent = self._manifest.agents[name]
        raw = self._root.load(agent.path, MAX_BYTES)
        return {agent.path: see(raw)} if hashlib.sha256(raw).hexdigest() == agent.digest else None

    def _skill(self, skill: Skill) -> Files | None:
        real = self._root.resolve(skill.path)
        tree = walk(self._root, (skill.folder,), is_kept=True) if skill.folder else None
        bundle = bundle_of(tree, skill.folder) if tree is not None else Bundle(((skill.path, real),))
        if not bundle.is_whole:
            return None
        files, hashed = self._read(bundle.files, skill.folder)
        digest = digest_hashed(bundle, hashed) if skill.folder else hashed[0].sha256.hex()
        toolsets = (self._manifest.toolsets[name] for name in skill.toolsets if name in self._manifest.toolsets)
        brought = {f"toolset {each.name}": see(_as_text(each).encode("utf-8", "replace")) for each in toolsets}
        return files | brought if digest == skill.digest else None

    def _read(self, named: Iterable[tuple[str, str]], folder: str) -> tuple[dict[str, FileState], list[HashedFile]]:
        files, hashed, room = dict[str, FileState](), list[HashedFile](), MAX_KEPT
        for name, real in named:
            raw = self._root.read(real, MAX_BYTES)
            is_program = bool(folder) and self._root.is_program(real)
            seen = see(raw, min(room, MAX_TEXT), is_program=is_program)
            room -= len(raw) if seen.lines is not None else 0
            files[show(f"{folder}/{name}" if folder else name)] = seen
            hashed.append(HashedFile(name, real, hashlib.sha256(raw).digest(), len(raw), is_program))
        return files, hashed

    def _rule(self, wish: Wish, rule: AgentRule) -> Files | None:
        if rule.wish(self._root.path).digest != wish.digest:
            return None
        files = {rule.path: see(rule.text.encode("utf-8", "replace"))}
        for path, digest in rule.documents:
            text = read_text(self._root, path)
            if text is None or digest_text(text) != digest:
                return None
            files[path] = see(text.encode())
        return files


def _as_text(toolset: Toolset) -> str:
    tools = "\n".join(f"- {each}" for each in toolset.tools)
    return f"{toolset.description}\n\n{tools}\n\n{toolset.content}"
