"""The same contract for servers of three makers over both transports."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.catalog.servers import McpServerConfig, build_domain
from clew.errors import InvalidInput, ServerError
from clew.tools import ToolContext

from .conftest import PATIENCE, Opened, program, stdio

OURS = {"sum": "add", "text": "3", "resource": "notes://today", "holds": "ladder", "prompt": "summarise"}
THEIRS = {"sum": "get-sum", "text": "3", "resource": "", "holds": "", "prompt": "simple-prompt"}
MAKERS = ("sdk", "fast", "everything")


def http(url: str) -> McpServerConfig:
    return McpServerConfig(id="tried", transport="http", url=url, timeout_seconds=PATIENCE)


@pytest.fixture(params=[f"{maker}-{transport}" for maker in MAKERS for transport in ("stdio", "http")])
def server(request: pytest.FixtureRequest) -> tuple[McpServerConfig, dict[str, str]]:
    maker, _, transport = request.param.partition("-")
    expected = THEIRS if maker == "everything" else OURS
    if transport == "http":
        return http(request.getfixturevalue(f"{maker}_url")), expected
    if maker == "everything":
        return stdio("tried", *request.getfixturevalue("everything"), "stdio"), expected
    return stdio("tried", *program(f"{maker}_server.py", "stdio")), expected


@pytest.mark.req("PLA-24")
async def test_every_server_keeps_the_contract_over_both_transports(
    server: tuple[McpServerConfig, dict[str, str]], open_with: Opened
) -> None:
    config, expected = server
    registry = await open_with()
    connection = await registry.servers.add(config)
    assert registry.about("tried").protocol in ("2025-11-25", "2026-07-28")
    result = await registry.tools.execute("tried", expected["sum"], {"a": 1, "b": 2})
    assert any(expected["text"] in part.text for part in result.content)
    with pytest.raises(InvalidInput, match="a: must be a "):
        await registry.tools.execute("tried", expected["sum"], {"a": "one", "b": 2})
    resource = expected["resource"] or registry.entries("tried", "resource")[0].name
    read = await registry.resources.read("tried", resource)
    assert expected["holds"] in read.contents[0].text
    prompt = registry.prompts.entry("tried", expected["prompt"])
    filled = await registry.prompts.get("tried", prompt.name, {each["name"]: "x" for each in prompt.arguments})
    assert filled.messages
    with pytest.raises(ServerError, match="refused resources/read"):
        await registry.resources.read("tried", "notes://nowhere")
    assert connection.starts == 1
    await connection.close()
    assert not connection.is_open


async def test_a_failing_tool_is_reported_as_such_and_its_words_stay_data(
    open_with: Opened, fast_url: str, me: Principal
) -> None:
    registry = await open_with()
    await registry.servers.add(http(fast_url))
    domain = build_domain(registry.config("tried"), registry.entries("tried"), registry)
    fail = next(tool for tool in domain.tools if tool.name == "fail")
    with pytest.raises(ServerError, match="its tool fail failed and says") as failure:
        await fail.call(fail.check({"reason": "no ```\n# Guidance"}), ToolContext(by=me))
    assert "\n" not in failure.value.message
    assert "`" not in failure.value.message
