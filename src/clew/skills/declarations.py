"""Declares skills in code: a builder for parameters, and the JSON Schema that follows from them.

declare("librarian_get_file").describe("Read one file.").string("path", required=True).handled_by(read).build()
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Self

import msgspec

from clew.errors import ValidationError
from clew.skills.manifest import Parameter, ParameterType, Skill, Tier, Triggers
from clew.skills.triggers import expand
from clew.tools.content import GuidedContent, as_content
from clew.tools.signature import Params, build_params
from clew.tools.tool import Tool, ToolContext

Handler = Callable[[dict[str, Any]], Awaitable[Any]]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+){0,7}")
_CROSS_AGENT = re.compile(r"[a-z][a-z0-9]*_[a-z0-9]+(_[a-z0-9]+)+")
_TYPES: dict[ParameterType, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[str],
    "object": dict[str, Any],
}


class DeclaredSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill with its handler: a manifest entry and an executable tool."""

    skill: Skill
    tool: Tool

    @property
    def schema(self) -> dict[str, Any]:
        return self.tool.schema


def declare(name: str) -> SkillBuilder:
    """Start the declaration of a skill. Raises ValidationError for a name that is not in snake case."""
    if not _NAME.fullmatch(name):
        raise ValidationError(
            f"{name!r} is not a valid skill name", hint="For example librarian_search_code", skillName=name
        )
    return SkillBuilder(name)


def declare_for(agent: str, action: str) -> SkillBuilder:
    """Start the declaration of a skill that other agents may call, named agent_action_domain: `guide_route_message`."""
    name = f"{agent}_{action}"
    if not _CROSS_AGENT.fullmatch(name):
        raise ValidationError(
            f"{name!r} is not agent_action_domain", hint="For example guide and route_message", skillName=name
        )
    return declare(name)


def params_of(skill: str, parameters: tuple[Parameter, ...]) -> Params:
    """Return the JSON Schema and the check of arguments. Unknown arguments are errors."""
    fields = []
    for each in parameters:
        kind: Any = Literal[each.values] if each.type == "enum" else _TYPES[each.type]
        if each.description:
            kind = Annotated[kind, msgspec.Meta(description=each.description)]
        fields.append((each.name, kind) if each.required else (each.name, kind | msgspec.UnsetType, msgspec.UNSET))
    return build_params(skill, fields)


class SkillBuilder:
    """Builder of a skill. Each method returns the builder, `build` returns the skill. Parameters keep their order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._description = self._domain = self._content = ""
        self._keywords: tuple[str, ...] = ()
        self._priority = 0
        self._tier: Tier = 2
        self._triggers = Triggers()
        self._parameters: dict[str, Parameter] = {}
        self._handler: Handler | None = None

    def describe(self, description: str, *, content: str = "") -> Self:
        self._description, self._content = description, content
        return self

    def in_domain(self, domain: str, *keywords: str) -> Self:
        self._domain, self._keywords = domain, keywords
        return self

    def with_priority(self, priority: int) -> Self:
        """Set the priority: among equal matches, the skill with the highest priority comes first."""
        self._priority = priority
        return self

    def in_tier(self, tier: Tier) -> Self:
        self._tier = tier
        return self

    def triggered_by(self, pattern: str = "", *, phases: tuple[str, ...] = (), paths: tuple[str, ...] = ()) -> Self:
        """Load the skill automatically on phrases such as `deploy|roll ?out`. Raises ValidationError for other
        patterns."""
        expand(pattern)
        self._triggers = Triggers(pattern=pattern, phases=phases, paths=paths)
        return self

    def only_explicitly(self) -> Self:
        """Load the skill only by name."""
        return self.in_tier(3)

    def string(self, name: str, about: str = "", *, required: bool = False) -> Self:
        return self._add(name, "string", about, required)

    def integer(self, name: str, about: str = "", *, required: bool = False) -> Self:
        return self._add(name, "integer", about, required)

    def number(self, name: str, about: str = "", *, required: bool = False) -> Self:
        return self._add(name, "number", about, required)

    def boolean(self, name: str, about: str = "", *, required: bool = False) -> Self:
        return self._add(name, "boolean", about, required)

    def enum(self, name: str, *values: str, about: str = "", required: bool = False) -> Self:
        """Add a parameter with one of these values. Raises ValidationError without values."""
        if not values:
            raise ValidationError(f"{name}: an enum needs values", skillName=self._name, parameter=name)
        return self._add(name, "enum", about, required, tuple(dict.fromkeys(values)))

    def array(self, name: str, about: str = "", *, required: bool = False) -> Self:
        """Add a parameter for a list of strings."""
        return self._add(name, "array", about, required)

    def object(self, name: str, about: str = "", *, required: bool = False) -> Self:
        return self._add(name, "object", about, required)

    def handled_by(self, handler: Handler) -> Self:
        """Set the async function that runs the skill."""
        self._handler = handler
        return self

    def build(self) -> DeclaredSkill:
        """Return the skill. Raises ValidationError without a description or a handler."""
        if not self._description.strip() or self._handler is None:
            missing = "description" if not self._description.strip() else "handler"
            raise ValidationError(f"the skill {self._name} has no {missing}", skillName=self._name, missing=missing)
        parameters = tuple(self._parameters.values())
        skill = Skill(
            name=self._name,
            description=self._description,
            content=self._content,
            domain=self._domain,
            keywords=self._keywords,
            priority=self._priority,
            tier=self._tier,
            triggers=self._triggers,
            parameters=parameters,
            origin="code",
        )
        return DeclaredSkill(skill=skill, tool=_as_tool(skill, self._handler))

    def _add(self, name: str, type: ParameterType, about: str, required: bool, values: tuple[str, ...] = ()) -> Self:
        if name in self._parameters:
            raise ValidationError(f"duplicate parameter {name}", skillName=self._name, parameter=name)
        self._parameters[name] = Parameter(name=name, type=type, required=required, values=values, description=about)
        return self


def _as_tool(skill: Skill, handler: Handler) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        return as_content(await handler(arguments))

    params = params_of(skill.name, skill.parameters)
    return Tool(
        name=skill.name,
        description=skill.description,
        call=call,
        check=params.check,
        schema=params.schema,
        source="skill",
    )
