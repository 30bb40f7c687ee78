"""Skills that are declared in code."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.errors import InvalidInput, ValidationError
from clew.skills.declarations import DeclaredSkill, SkillBuilder, declare, declare_for
from clew.tools.tool import ToolContext

CONTEXT = ToolContext(by=Principal(owner_id="acme"))


async def echo(arguments: dict[str, Any]) -> str:
    return repr(arguments)


def built(builder: SkillBuilder) -> DeclaredSkill:
    return builder.describe("d").handled_by(echo).build()


@pytest.mark.req("SYL-20")
def test_the_schema_follows_from_the_declaration() -> None:
    skill = built(
        declare("preview_ui")
        .string("title", "what it is called", required=True)
        .integer("width")
        .number("scale")
        .boolean("dark")
        .enum("level", "A", "AA", "AAA", about="how strict", required=True)
        .array("tags")
        .object("style")
    )
    assert skill.schema == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "what it is called"},
            "width": {"type": "integer"},
            "scale": {"type": "number"},
            "dark": {"type": "boolean"},
            "level": {"enum": ["A", "AA", "AAA"], "description": "how strict"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "style": {"type": "object"},
        },
        "required": ["title", "level"],
        "additionalProperties": False,
    }


@pytest.mark.req("SYL-20")
def test_a_skill_has_all_declared_fields() -> None:
    skill = built(
        declare("session_switch")
        .in_domain("sessions", "switch", "session")
        .with_priority(7)
        .triggered_by("session|switch", phases=("plan",), paths=("a/*",))
        .string("to", required=True)
    ).skill
    assert (skill.name, skill.description, skill.domain) == ("session_switch", "d", "sessions")
    assert (skill.keywords, skill.priority, skill.tier) == (("switch", "session"), 7, 2)
    assert (skill.triggers.pattern, skill.triggers.phases) == ("session|switch", ("plan",))
    assert [(each.name, each.type, each.required) for each in skill.parameters] == [("to", "string", True)]


def test_a_skill_for_explicit_use_is_of_the_third_tier() -> None:
    assert built(declare("theme_migration").only_explicitly()).skill.tier == 3


async def test_the_handler_gets_the_arguments() -> None:
    tool = built(declare("a").string("x", required=True).string("y")).tool
    assert tool.source == "skill"
    assert (await tool.call(tool.check({"x": "1"}), CONTEXT)).content == "{'x': '1'}"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({}, "level"), ({"level": "B"}, "level"), ({"level": 1}, "level"), ({"level": "A", "z": 1}, "z"),
     ({"level": "A", "n": True}, "n"), ({"level": "A", "tags": [1]}, "tags[0]"), ({"level": None}, "level")],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Any], field: str) -> None:
    tool = built(declare("a").enum("level", "A", "AA", required=True).integer("n").array("tags")).tool
    with pytest.raises(InvalidInput) as raised:
        tool.check(arguments)
    assert raised.value.field == field


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize("name", ["", "Upper", "a-b", "1a", "a__b", "a_", "ä", "a b", "a/b"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as raised:
        declare(name)
    assert raised.value.context == {"skillName": name}


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize(
    "begun",
    [
        lambda: declare("a").handled_by(echo).build(),
        lambda: declare("a").describe("d").build(),
        lambda: declare("a").string("x").integer("x"),
        lambda: declare("a").enum("x"),
        lambda: declare("a").triggered_by("(a+)+"),
        lambda: declare_for("guide", "route"),
    ],
)
def test_an_incomplete_declaration_is_refused(begun: Any) -> None:
    with pytest.raises(ValidationError):
        begun()


CROSS_AGENT: dict[str, dict[str, list[str]]] = {
    "guide": {"route_message": ["message!"], "classify_intent": ["message!"], "get_status": []},
    "archivalist": {
        "store_entry": ["content!", "category!"],
        "query_chronicle": ["search!"],
        "get_briefing": ["tier!=micro,standard,full"],
        "record_file": ["path!", "operation!=read,modified,created"],
        "record_pattern": ["pattern!"],
        "record_failure": ["approach!", "outcome!"],
    },
    "librarian": {
        "search_code": ["query!"],
        "get_file": ["path!"],
        "get_structure": [],
        "get_dependencies": ["path!", "direction!=imports,imported_by,both"],
    },
    "engineer": {
        "read_file": ["path!"],
        "write_file": ["path!", "content!"],
        "edit_file": ["path!", "old_content!", "new_content!"],
        "run_command": ["command!", "timeout#"],
        "signal_complete": ["summary!"],
        "request_help": ["question!"],
    },
}


def from_table(agent: str, action: str, fields: list[str]) -> DeclaredSkill:
    builder = declare_for(agent, action)
    for field in fields:
        name, _, values = field.partition("=")
        plain = name.rstrip("!#")
        if values:
            builder = builder.enum(plain, *values.split(","), required=True)
        else:
            builder = builder.integer(plain) if name.endswith("#") else builder.string(plain, required=True)
    return built(builder)


@pytest.mark.req("SYL-29")
def test_skills_that_agents_share_are_named_after_agent_action_and_domain() -> None:
    shared = [from_table(agent, action, fields) for agent, all in CROSS_AGENT.items() for action, fields in all.items()]
    schemas = {each.skill.name: each.schema for each in shared}
    assert len(schemas) == 19
    assert schemas["engineer_edit_file"]["required"] == ["path", "old_content", "new_content"]
    assert schemas["engineer_run_command"]["properties"] == {
        "command": {"type": "string"},
        "timeout": {"type": "integer"},
    }
    assert schemas["librarian_get_dependencies"]["properties"]["direction"] == {
        "enum": ["both", "imported_by", "imports"]
    }
    assert schemas["archivalist_record_file"]["properties"]["operation"] == {"enum": ["created", "modified", "read"]}
    assert schemas["guide_get_status"] == {"type": "object", "properties": {}, "additionalProperties": False}
    assert all(schema["additionalProperties"] is False for schema in schemas.values())
