"""The tools, prompts and resources that the conformance suite expects of a server, with given names and answers. They
are served through Clew's application over HTTP, so that the suite tests that application.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from clew.adapters.mcp.server import Context

Json = dict[str, Any]
Tool = Callable[[Context, Json], Awaitable[Json]]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\0\0\0\0").decode()
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
KEY = b"only for these tests"
PAUSE = 0.05

TOOLS: dict[str, Tool] = {}
SCHEMAS: dict[str, Json] = {}
BUS = InMemorySubscriptionBus()


def fixture(schema: Json | None = None) -> Callable[[Tool], Tool]:
    """Offer a function as the tool of its name."""

    def offer(function: Tool) -> Tool:
        TOOLS[function.__name__] = function
        SCHEMAS[function.__name__] = schema or {"type": "object", "properties": {}}
        return function

    return offer


def said(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


def strings(*names: str) -> Json:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


@fixture()
async def test_simple_text(ctx: Context, given: Json) -> Json:
    return said("This is a simple text response for testing.")


@fixture()
async def test_image_content(ctx: Context, given: Json) -> Json:
    return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}


@fixture()
async def test_audio_content(ctx: Context, given: Json) -> Json:
    return {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}


@fixture()
async def test_embedded_resource(ctx: Context, given: Json) -> Json:
    text = "This is an embedded resource content."
    return {"content": [embedded("test://embedded-resource", "text/plain", text)]}


@fixture()
async def test_multiple_content_types(ctx: Context, given: Json) -> Json:
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    resource = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return {"content": [{"type": "text", "text": "Multiple content types test:"}, image, resource]}


def embedded(uri: str, mime: str, text: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


@fixture()
async def test_error_handling(ctx: Context, given: Json) -> Json:
    return {**said("This tool intentionally returns an error for testing"), "isError": True}


@fixture()
async def test_tool_with_progress(ctx: Context, given: Json) -> Json:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(PAUSE)
    return said("Progress was told.")


@fixture()
async def test_tool_with_logging(ctx: Context, given: Json) -> Json:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)
        await asyncio.sleep(PAUSE)
    return said("It was logged.")


@fixture()
async def test_logging_tool(ctx: Context, given: Json) -> Json:
    return await test_tool_with_logging(ctx, given)


@fixture(strings("prompt"))
async def test_sampling(ctx: Context, given: Json) -> Json:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=given["prompt"]))
    answer = await ctx.session.create_message(messages=[message], max_tokens=100, related_request_id=ctx.request_id)
    text = answer.content.text if isinstance(answer.content, types.TextContent) else ""
    return said(f"LLM response: {text}")


async def elicit(ctx: Context, message: str, schema: Json, prefix: str) -> Json:
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return said(f"{prefix}action={answer.action}, content={json.dumps(answer.content)}")


@fixture(strings("message"))
async def test_elicitation(ctx: Context, given: Json) -> Json:
    return await elicit(ctx, given["message"], strings("username", "email"), "User response: ")


@fixture()
async def test_elicitation_sep1034_defaults(ctx: Context, given: Json) -> Json:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await elicit(ctx, "Who?", {"type": "object", "properties": properties}, "Elicitation completed: ")


@fixture()
async def test_elicitation_sep1330_enums(ctx: Context, given: Json) -> Json:
    plain = {"type": "string", "enum": ["option1", "option2", "option3"]}
    titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    properties = {
        "untitledSingle": plain,
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": plain},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await elicit(ctx, "Which?", {"type": "object", "properties": properties}, "Elicitation completed: ")


@fixture()
async def test_missing_capability(ctx: Context, given: Json) -> Json:
    if "sampling" not in declared(ctx):
        data = {"requiredCapabilities": {"sampling": {}}}
        code = types.MISSING_REQUIRED_CLIENT_CAPABILITY
        raise MCPError(code=code, message="this needs sampling", data=data)
    return said("Sampling is there.")


@fixture()
async def test_streaming_elicitation(ctx: Context, given: Json) -> Json:
    await ctx.session.report_progress(1, 2)
    return needs(user_name=question("What is your name?", name="string"))


@fixture()
async def test_trigger_tool_change(ctx: Context, given: Json) -> Json:
    await BUS.publish(ToolsListChanged())
    return said("Told.")


@fixture()
async def test_trigger_prompt_change(ctx: Context, given: Json) -> Json:
    await BUS.publish(PromptsListChanged())
    return said("Told.")


@fixture({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}})
async def test_custom_header(ctx: Context, given: Json) -> Json:
    return said(f"Region {given.get('region')}")


_ADDRESS = {"$anchor": "addressDef", "type": "object", "properties": strings("street", "city")["properties"]}


@fixture(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": _ADDRESS},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
async def json_schema_2020_12_tool(ctx: Context, given: Json) -> Json:
    return said(json.dumps(given))


# Results that ask the client for input first, and the answers that come with the second call.


def question(message: str, **properties: str) -> Json:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(text: str, tokens: int) -> Json:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


ROOTS: Json = {"method": "roots/list", "params": {}}


def needs(state: str | None = None, **requests: Json) -> Json:
    found: Json = {"resultType": "input_required", "inputRequests": requests}
    return {**found, "requestState": sealed(state)} if state is not None else found


def sealed(state: str) -> str:
    return f"{state}.{hmac.new(KEY, state.encode(), 'sha256').hexdigest()}"


def opened(ctx: Context) -> str | None:
    """The state that came back. Raises MCPError for one that was not given."""
    given = (ctx.params or {}).get("requestState")
    if given is None:
        return None
    state = str(given).rpartition(".")[0]
    if not hmac.compare_digest(sealed(state).encode(), str(given).encode()):
        raise MCPError(code=types.INVALID_PARAMS, message="this state was not given by this server")
    return state


def answers(ctx: Context) -> Json:
    return (ctx.params or {}).get("inputResponses") or {}


def accepted(ctx: Context, key: str, field: str) -> Any:
    """A field of an accepted form, or None."""
    found = answers(ctx).get(key)
    content = found.get("content") if isinstance(found, Mapping) and found.get("action") == "accept" else None
    return content.get(field) if isinstance(content, Mapping) else None


def declared(ctx: Context) -> Mapping[str, Any]:
    found: Mapping[str, Any] = ((ctx.params or {}).get("_meta") or {}).get(CAPABILITIES) or {}
    return found


@fixture()
async def test_input_required_result_elicitation(ctx: Context, given: Json) -> Json:
    name = accepted(ctx, "user_name", "name")
    return said(f"Hello, {name}!") if name else needs(user_name=question("What is your name?", name="string"))


@fixture()
async def test_input_required_result_sampling(ctx: Context, given: Json) -> Json:
    found = answers(ctx).get("capital_question")
    return said(json.dumps(found)) if found else needs(capital_question=sampling("What is the capital of France?", 100))


@fixture()
async def test_input_required_result_list_roots(ctx: Context, given: Json) -> Json:
    found = answers(ctx).get("client_roots")
    return said(json.dumps(found)) if found else needs(client_roots=ROOTS)


@fixture()
async def test_input_required_result_request_state(ctx: Context, given: Json) -> Json:
    if opened(ctx) == "confirming" and accepted(ctx, "confirm", "ok") is not None:
        return said("state-ok")
    return needs("confirming", confirm=question("Please confirm", ok="boolean"))


@fixture()
async def test_input_required_result_tampered_state(ctx: Context, given: Json) -> Json:
    return await test_input_required_result_request_state(ctx, given)


@fixture()
async def test_input_required_result_multiple_inputs(ctx: Context, given: Json) -> Json:
    if opened(ctx) == "three" and answers(ctx).keys() >= {"user_name", "greeting", "client_roots"}:
        return said(json.dumps(dict(answers(ctx))))
    name = question("What is your name?", name="string")
    return needs("three", user_name=name, greeting=sampling("Generate a greeting", 50), client_roots=ROOTS)


@fixture()
async def test_input_required_result_multi_round(ctx: Context, given: Json) -> Json:
    state = opened(ctx)
    if state == "first" and (name := accepted(ctx, "step1", "name")):
        return needs(f"second {name}", step2=question("Step 2: What is your favorite color?", color="string"))
    if state and state.startswith("second ") and (color := accepted(ctx, "step2", "color")):
        return said(f"{state.removeprefix('second ')} likes {color}")
    return needs("first", step1=question("Step 1: What is your name?", name="string"))


@fixture()
async def test_input_required_result_capabilities(ctx: Context, given: Json) -> Json:
    possible = {
        "elicitation": ("user_name", question("What is your name?", name="string")),
        "sampling": ("greeting", sampling("Generate a greeting", 50)),
        "roots": ("client_roots", ROOTS),
    }
    asked = dict(each for capability, each in possible.items() if capability in declared(ctx))
    if not asked or answers(ctx).keys() >= asked.keys():
        return said("Done.")
    return needs(**asked)


# Prompts and resources.


def user(content: Json) -> Json:
    return {"role": "user", "content": content}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def prompt_messages(name: str, given: Mapping[str, str]) -> list[Json]:
    match name:
        case "test_prompt_with_arguments":
            return [user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return [user(resource), user(text("Please process the embedded resource above."))]
        case "test_prompt_with_image":
            image = {"type": "image", "data": PNG, "mimeType": "image/png"}
            return [user(image), user(text("Please analyze the image above."))]
        case _:
            return [user(text("This is a simple prompt for testing."))]


RESOURCES: dict[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "watched"},
}


def read(uri: str) -> Json:
    """Raises MCPError for an unknown one."""
    if found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        id = found.group(1)
        data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]}
    if uri not in RESOURCES:
        raise MCPError(code=types.INVALID_PARAMS, message="no such resource", data={"uri": uri})
    return {"contents": [{"uri": uri, **RESOURCES[uri]}]}


def whole(result: Json) -> Json:
    """A result that asks for nothing more."""
    return {"resultType": "complete", **result}


class Fixture:
    """The handlers."""

    async def list_tools(self, ctx: Context, params: Any) -> Any:
        tools = [{"name": name, "description": f"The fixture {name}", "inputSchema": SCHEMAS[name]} for name in TOOLS]
        return whole({"tools": tools})

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.name not in TOOLS:
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no tool {params.name}")
        return whole(await TOOLS[params.name](ctx, params.arguments or {}))

    async def list_prompts(self, ctx: Context, params: Any) -> Any:
        prompts = [
            {
                "name": name,
                "description": f"The fixture {name}",
                "arguments": [{"name": each, "description": each, "required": True} for each in needed],
            }
            for name, needed in PROMPTS.items()
        ]
        return whole({"prompts": prompts})

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        if params.name not in PROMPTS:
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no prompt {params.name}")
        if params.name == "test_input_required_result_prompt" and not accepted(ctx, "user_context", "context"):
            return needs(user_context=question("What context should the prompt use?", context="string"))
        return whole({"messages": prompt_messages(params.name, params.arguments or {})})

    async def list_resources(self, ctx: Context, params: Any) -> Any:
        resources = [
            {"uri": uri, "name": uri, "description": f"The fixture {uri}", "mimeType": each["mimeType"]}
            for uri, each in RESOURCES.items()
        ]
        return whole({"resources": resources})

    async def list_templates(self, ctx: Context, params: Any) -> Any:
        template = {"uriTemplate": "test://template/{id}/data", "name": "template", "description": "By id"}
        return whole({"resourceTemplates": [template]})

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        return whole(read(str(params.uri)))

    async def accept(self, ctx: Context, params: Any) -> Any:
        return types.EmptyResult()

    async def complete(self, ctx: Context, params: Any) -> Any:
        return whole({"completion": {"values": ["test"], "total": 1, "hasMore": False}})


def build_fixture_server() -> Server[Any]:
    """Handlers answer with what goes over the wire, so that the suite sees exactly that."""
    handlers = Fixture()
    return Server(  # type: ignore[call-overload, no-any-return]  # handlers may answer with plain dicts
        "clew-fixture",
        version="1",
        cache_hints=dict.fromkeys(CACHEABLE_METHODS, CacheHint()),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.accept,
        on_unsubscribe_resource=handlers.accept,
        on_set_logging_level=handlers.accept,
        on_completion=handlers.complete,
        on_subscriptions_listen=ListenHandler(BUS),
    )
