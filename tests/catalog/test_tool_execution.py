"""A misbehaving tool fails only its own entry, and ends within the time limit."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.errors import InvalidInput, ServerError
from clew.tools import GuidedContent, Tool, ToolContext, guide, tool
from tests.catalog.laboratory import failing, lab
from tests.tools.fraud import (
    ANALYST,
    catalog_at,
    codes_of,
    get,
    messages_of,
    some_tool,
)


async def odd_call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
    return 5j  # type: ignore[return-value]  # what an unchecked tool may do


def odd_check(arguments: Any) -> dict[str, Any]:
    raise ValueError("unhappy with token=abcdef123456")


ODD = Tool(name="odd", description="Returns nonsense.", call=odd_call, check=dict, schema={})


UNHAPPY = Tool(name="unhappy", description="Checks badly.", call=odd_call, check=odd_check, schema={})


@pytest.mark.req("ERN-12")
@pytest.mark.req("ERN-13")
@pytest.mark.parametrize(
    ("bad", "code", "said"),
    [
        (failing("bad", ValueError("broke")), "EXECUTION_ERROR", "ValueError: broke"),
        (failing("bad", KeyError()), "EXECUTION_ERROR", "KeyError"),
        (failing("bad", TimeoutError("slow peer")), "EXECUTION_ERROR", "TimeoutError: slow peer"),
        (failing("bad", asyncio.CancelledError()), "EXECUTION_ERROR", "cancelled from within"),
        (failing("bad", SystemExit(3)), "EXECUTION_ERROR", "SystemExit: 3"),
        (failing("bad", RecursionError("deep")), "EXECUTION_ERROR", "deep"),
        (failing("bad", InvalidInput("x", "is odd")), "EXECUTION_ERROR", "x: is odd"),
        (failing("bad", ExceptionGroup("many", [ValueError("a")])), "EXECUTION_ERROR", "many"),
        (msgspec.structs.replace(ODD, name="bad"), "EXECUTION_ERROR", "complex"),
        (msgspec.structs.replace(UNHAPPY, name="bad"), "INVALID_PARAMS", "unhappy with token=[masked]"),
    ],
)
async def test_one_failure_leaves_the_others_alone(tmp_path: Path, bad: Tool, code: str, said: str) -> None:
    async with catalog_at(tmp_path, lab(some_tool("good"), bad)) as (catalog, _):
        results = await get(catalog, "lab://tools/good", "lab://tools/bad", "lab://tools/good")
    assert codes_of(results) == ["ok", code, "ok"]
    assert [each.success for each in results.results] == [True, False, True]
    assert said.replace("[", "(").replace("]", ")") in messages_of(results)[0].replace("[", "(").replace("]", ")")


@pytest.mark.req("ERN-12")
@pytest.mark.parametrize(
    "returned",
    [
        GuidedContent(content=5),  # type: ignore[arg-type]  # what an unchecked tool may do
        GuidedContent(content="a", guidance=[{"route": 1}]),  # type: ignore[list-item]  # the same
        GuidedContent(content="a", guidance=[guide(ANALYST, "on", thing=object())]),
        GuidedContent(content="a", guidance=7),  # type: ignore[arg-type]  # the same
    ],
)
async def test_a_malformed_result_is_the_failure_of_its_entry_alone(tmp_path: Path, returned: Any) -> None:
    async def give() -> Any:
        return returned

    async with catalog_at(tmp_path, lab(tool(description="Odd.")(give), some_tool("good"))) as (catalog, _):
        results = await get(catalog, "lab://tools/give", "lab://tools/good")
    assert codes_of(results) == ["EXECUTION_ERROR", "ok"]


class Odd(BaseException):
    """An error that is not an Exception, and whose `str` fails."""

    def __str__(self) -> str:
        raise ValueError("unspeakable")


@pytest.mark.req("ERN-12")
@pytest.mark.parametrize("error", [Odd(), GeneratorExit("gone"), SystemExit(3)])
async def test_a_base_exception_is_the_failure_of_its_entry_alone(tmp_path: Path, error: BaseException) -> None:
    async with catalog_at(tmp_path, lab(some_tool("good"), failing("bad", error))) as (catalog, _):
        results = await get(catalog, "lab://tools/good", "lab://tools/bad", "lab://tools/good")
    assert codes_of(results) == ["ok", "EXECUTION_ERROR", "ok"]
    assert type(error).__name__ in messages_of(results)[0]


@pytest.mark.req("ERN-12")
@pytest.mark.parametrize("waits", [True, False])
async def test_a_tool_that_cancels_its_own_task_fails_alone(tmp_path: Path, waits: bool) -> None:
    @tool
    async def bad() -> str:
        """Cancels the task that it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.Event().wait()
        return "done"

    async with catalog_at(tmp_path, lab(some_tool("good"), bad)) as (catalog, _):
        results = await get(catalog, "lab://tools/good", "lab://tools/bad", "lab://tools/good")
    assert codes_of(results) == ["ok", "EXECUTION_ERROR", "ok"]
    assert messages_of(results) == ["lab://tools/bad was cancelled from within"]


SECRETS = [
    "password=hunter2",
    "password='correct horse battery'",
    '{"api_key": "abc"}',
    "Authorization: Bearer abcdefgh12345678",
    "postgres://bob:p@ss@db.example/x",
    "token sk-abcdefghijklmnop1234",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("kind", [ValueError, ServerError])
async def test_secrets_in_errors_of_a_tool_are_masked(
    tmp_path: Path, secret: str, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = kind(f"cannot: {secret} end") if kind is ValueError else kind("crm", f"cannot: {secret} end")
    async with catalog_at(tmp_path, lab(failing("leak", error))) as (catalog, _):
        results = await get(catalog, "lab://tools/leak")
    shown = results.markdown + str(msgspec.to_builtins(results)) + caplog.text
    for part in ("hunter2", "correct", "horse", "battery", '"abc"', "abcdefgh", "p@ss", "ss@db"):
        assert part not in shown
    assert "[masked]" in messages_of(results)[0]


def checking(error: BaseException) -> Tool:
    def check(arguments: Any) -> dict[str, Any]:
        raise error

    return Tool(name="bad", description="Checks badly.", call=odd_call, check=check, schema={})


@pytest.mark.req("ERN-12")
@pytest.mark.parametrize("error", [Odd(), GeneratorExit("gone"), SystemExit(3)])
async def test_a_base_exception_of_a_check_is_the_failure_of_its_entry_alone(
    tmp_path: Path, error: BaseException
) -> None:
    async with catalog_at(tmp_path, lab(some_tool("good"), checking(error))) as (catalog, _):
        results = await get(catalog, "lab://tools/good", "lab://tools/bad", "lab://tools/good")
    assert codes_of(results) == ["ok", "INVALID_PARAMS", "ok"]
    assert messages_of(results)[0]


@pytest.mark.parametrize("make", [checking, lambda error: failing("bad", error)])
def test_the_interrupt_of_the_user_ends_everything(tmp_path: Path, make: Any) -> None:
    is_closed = []

    async def main() -> None:
        async with catalog_at(tmp_path, lab(make(KeyboardInterrupt()))) as (catalog, _):
            try:
                await get(catalog, "lab://tools/bad")
            finally:
                is_closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert is_closed


async def test_a_check_that_is_cancelled_cancels_the_call(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, lab(checking(asyncio.CancelledError()))) as (catalog, _):
        with pytest.raises(asyncio.CancelledError):
            await get(catalog, "lab://tools/bad")
