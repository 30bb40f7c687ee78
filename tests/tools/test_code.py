"""Tools as code: records become tools that run in the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.errors import InvalidInput, NotFound, ToolFailure
from clew.tools import Tool, ToolContext
from clew.tools.code import CodeTool, read_record, tool_from_record
from clew.tools.sandbox import LocalSandbox, open_sandbox
from clew.trail.bootstrap import bootstrap, piece_id, read_pieces
from clew.trail.store import Trail
from tests.tools.sandbox.boxes import open_box

RECORD = {
    "name": "add-up",
    "description": "Adds numbers",
    "language": "python",
    "code": "def add_up(input, context):\n    return {'sum': sum(input['numbers']) + input.get('off', 0)}",
    "input_schema": {
        "type": "object",
        "required": ["numbers"],
        "properties": {"numbers": {"type": "array", "items": {"type": "number"}}, "off": {"type": "number"}},
    },
    "output_schema": {"type": "object", "required": ["sum"], "properties": {"sum": {"type": "number", "maximum": 100}}},
    "examples": [{"input": {"numbers": [1, 2]}, "output": {"sum": 3}}],
    "limits": {"timeout_ms": 20_000, "memory_mb": 128},
    "effects": {"reads_only": True, "repeats_safely": True},
    "ui_schema": {"anything": True},
}
SECRETS = {"api": "very-secret-value"}


@pytest.fixture
def sandbox() -> LocalSandbox:
    open_box("bubblewrap python")
    return open_sandbox(production=True)


@pytest.fixture
def context(me: Principal) -> ToolContext:
    return ToolContext(by=me, key="key-7")


async def reveal(name: str) -> str:
    if name not in SECRETS:
        raise NotFound("secret", name)
    return SECRETS[name]


def built(sandbox: LocalSandbox, **changes: Any) -> CodeTool:
    config, environ = changes.pop("config", None), changes.pop("environ", None)
    record = {**RECORD, "output_schema": None, "input_schema": {}, **changes}
    return CodeTool(read_record(record), sandbox, reveal, config=config, environ=environ)


async def call(tool: Tool, context: ToolContext, **arguments: Any) -> str:
    return (await tool.call(tool.check(arguments), context)).content


@pytest.mark.req("RCR-42")
@pytest.mark.req("O13")
async def test_a_record_becomes_a_tool_that_can_be_called(sandbox: LocalSandbox, context: ToolContext) -> None:
    tool = tool_from_record(RECORD, sandbox, reveal)
    assert (tool.name, tool.schema, tool.limits.seconds) == ("add-up", RECORD["input_schema"], 25.0)
    assert (tool.effects.reads_only, tool.effects.reaches_out) == (True, False)
    assert tool.examples[0]["output"] == {"sum": 3}
    assert await call(tool, context, numbers=[1, 2, 3]) == '```json\n{\n  "sum": 6\n}\n```'


@pytest.mark.req("RCR-42")
def test_input_that_does_not_fit_never_reaches_the_code(sandbox: LocalSandbox) -> None:
    tool = tool_from_record(RECORD, sandbox, reveal)
    with pytest.raises(InvalidInput, match=r"^input/numbers/1: "):
        tool.check({"numbers": [1, "2"]})
    with pytest.raises(InvalidInput, match="input"):
        tool.check({})


@pytest.mark.req("RCR-42")
async def test_a_result_that_does_not_fit_is_a_failure(sandbox: LocalSandbox, context: ToolContext) -> None:
    with pytest.raises(ToolFailure, match="result/sum") as caught:
        await call(tool_from_record(RECORD, sandbox, reveal), context, numbers=[1000])
    assert caught.value.kind == "validation"


@pytest.mark.req("RCR-42")
@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_a_permission_that_was_not_asked_for_is_refused(
    sandbox: LocalSandbox, context: ToolContext, language: str
) -> None:
    open_box("bubblewrap deno")
    python = "import socket\ndef run(i, c):\n    socket.create_connection(('192.0.2.1', 80), timeout=5)"
    code = python if language == "python" else "async function run() { await fetch('http://192.0.2.1/') }"
    with pytest.raises(ToolFailure) as caught:
        await built(sandbox, code=code, language=language).result({}, context)
    assert caught.value.kind == "permission"


@pytest.mark.req("RCR-42")
async def test_secrets_are_injected_and_masked(sandbox: LocalSandbox, context: ToolContext) -> None:
    code = "def run(i, c):\n    return [c.secrets['API'], len(c.secrets['API']), c.key]"
    tool = built(sandbox, code=code, config={"secrets": {"API": {"$secret": "api"}}, "model": "x"})
    assert await tool.result({}, context) == ["[masked]", len(SECRETS["api"]), "key-7"]
    assert SECRETS["api"] not in repr(tool.as_tool())


@pytest.mark.parametrize("secret", [{"$secret": "missing"}, "written out", {"$env": "HOME"}])
async def test_secrets_that_cannot_be_looked_up_are_a_fault_of_configuration(
    sandbox: LocalSandbox, context: ToolContext, secret: Any
) -> None:
    with pytest.raises(ToolFailure) as caught:
        await built(sandbox, config={"secrets": {"API": secret}}).result({}, context)
    assert caught.value.kind == "config"
    assert "written out" not in str(caught.value)


async def test_variables_that_were_asked_for_are_given_unless_they_look_secret(
    sandbox: LocalSandbox, context: ToolContext
) -> None:
    code = "import os\ndef run(i, c):\n    return sorted(set(os.environ) & {'COLOUR', 'OTHER'})"
    environ = {"COLOUR": "blue", "OTHER": "x", "API_KEY": "y"}
    assert await built(sandbox, code=code, permissions={"env": ["COLOUR", "ABSENT"]}, environ=environ).result(
        {}, context
    ) == ["COLOUR"]
    with pytest.raises(ToolFailure, match="looks like a secret"):
        await built(sandbox, code=code, permissions={"env": ["API_KEY"]}, environ=environ).result({}, context)


async def test_the_limits_of_the_record_hold(sandbox: LocalSandbox, context: ToolContext) -> None:
    loop = built(sandbox, code="def run(i, c):\n    while True: pass", limits={"timeout_ms": 300})
    with pytest.raises(ToolFailure, match=r"0\.3 seconds") as caught:
        await loop.result({}, context)
    assert caught.value.kind == "timeout"
    with pytest.raises(ToolFailure, match="32 MB"):
        await built(
            sandbox, code="def run(i, c):\n    return len(bytearray(200_000_000))", limits={"memory_mb": 32}
        ).result({}, context)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": None},
        {"code": 5},
        {"language": "cobol"},
        {"permissions": {"run": ["sh"]}},
        {"limits": {"timeout_ms": 0}},
        {"limits": {"memory_mb": 1_000_000}},
        {"input_schema": {"type": "nonsense"}},
        {"input_schema": {"$ref": "http://192.0.2.1/schema"}},
        {"code": "x" * 600_000},
        {"name": "../up"},
    ],
)
def test_a_record_that_describes_no_tool_is_refused(sandbox: LocalSandbox, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        tool_from_record({**RECORD, **wrong}, sandbox, reveal)


@pytest.mark.req("RCR-42")
async def test_random_is_shipped(trail: Trail, me: Principal, sandbox: LocalSandbox, context: ToolContext) -> None:
    open_box("bubblewrap deno")
    pieces = [piece for piece in read_pieces() if piece.key.startswith(("schema/", "tool/random"))]
    await bootstrap(trail, me, pieces)
    record = (await trail.records.get(piece_id(me, "tool/random"), by=me)).context
    random = CodeTool(read_record(record), sandbox, reveal)
    for example in record["examples"]:
        assert random.check(example["input"]) == example["input"]
    found = (await random.result({"min": 1, "max": 6, "count": 200}, context))["numbers"]
    assert len(found) == 200
    assert set(found) <= set(range(1, 7))
    assert len(set(found)) > 1
    with pytest.raises(ToolFailure, match="over max"):
        await random.result({"min": 5, "max": 1}, context)
