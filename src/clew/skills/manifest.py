"""The manifest: agents, skills, toolsets and tools as one validated document that a runtime can load.

JSON uses camelCase names (`initialSkills`); the same definitions always give the same bytes.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from clew.lazy_pattern import lazy_pattern

VERSION = 3
"""The version that `build` writes. The loader migrates older ones (`definitions/migrations.py`)."""

SUPPORTED = (1, 2, 3)

Tier = Literal[1, 2, 3]
"""1 loads at the start, 2 by a trigger and for as long as it applies, 3 only by name."""
ONLY_BY_NAME: Tier = 3

_ROUTE = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*://tools/\S+")

ParameterType = Literal["string", "integer", "number", "boolean", "enum", "array", "object"]


class Parameter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One parameter of a skill."""

    name: str
    type: ParameterType = "string"
    required: bool = False
    values: tuple[str, ...] = ()
    description: str = ""


class Triggers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The conditions that load a skill of tier 2: a word in the message, the phase of the work, a path in use.

    `words` match whole words, case-insensitively. `pattern` has alternatives such as `deploy|roll ?out`. `paths` are
    globs relative to the root.
    """

    words: tuple[str, ...] = ()
    pattern: str = ""
    phases: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.pattern or self.phases or self.paths)


class SkillLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link from a skill or a rule to another markdown file."""

    text: str
    path: str
    line: int = 0


class Skill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A loadable capability: description, instructions, and toolsets.

    `skills` load with it. `path` is its file relative to the root, `folder` the folder of its references, `scripts` and
    `assets`; `digest` is the hash of all its files. `origin` is the format of its file.
    """

    name: str
    description: str
    content: str = ""
    toolsets: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    domain: str = ""
    keywords: tuple[str, ...] = ()
    priority: int = 0
    tier: Tier = 2
    triggers: Triggers = Triggers()
    parameters: tuple[Parameter, ...] = ()
    references: tuple[SkillLink, ...] = ()
    scripts: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    path: str = ""
    folder: str = ""
    origin: str = "clew"
    digest: str = ""


class Toolset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tools that belong together, with notes on their use."""

    name: str
    description: str
    content: str = ""
    tools: tuple[str, ...] = ()
    path: str = ""


class ToolEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The manifest entry of a tool. If an executable tool has that name, it defines the entry."""

    name: str
    description: str
    content: str = ""
    schema: dict[str, Any] = {}
    category: str = ""
    examples: tuple[dict[str, Any], ...] = ()
    see_also: tuple[str, ...] = ()
    is_executable: bool = False
    path: str = ""


class AgentPermissions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Permission rules of an agent: `exec`, `exec(git push*)`, `write-file(src/**)`. They restrict the permissions of
    the user, and never extend them."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.allow or self.ask or self.deny)


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An agent: its prompt, its initial skills, and those that it may load. If `tools` is None, it has the usual tools;
    if it is empty, none."""

    name: str
    description: str = ""
    prompt: str = ""
    initial_skills: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    model: str = ""
    tools: tuple[str, ...] | None = None
    permissions: AgentPermissions = AgentPermissions()
    metadata: dict[str, str] = {}
    path: str = ""
    origin: str = "clew"
    digest: str = ""

    @property
    def loadable(self) -> tuple[str, ...]:
        """All skills that it may load, initial ones first, without duplicates."""
        return tuple(dict.fromkeys((*self.initial_skills, *self.skills)))


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All definitions, sorted by name."""

    version: int = VERSION
    agents: dict[str, AgentSpec] = {}
    skills: dict[str, Skill] = {}
    toolsets: dict[str, Toolset] = {}
    tools: dict[str, ToolEntry] = {}

    def encode(self) -> bytes:
        """Encode as JSON with a final newline. The same definitions always give the same bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=2) + b"\n"


def is_route(name: str) -> bool:
    """Whether a tool name is an address in the catalog (`domain://tools/path`) rather than a tool of the manifest."""
    return _ROUTE.fullmatch(name) is not None
