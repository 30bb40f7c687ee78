"""The trace of a chat over several processes, as an external collector gets it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import PATIENCE, Clew, clew, folder, start  # noqa: F401 (fixtures)
from tests.consent import trust_all
from tests.llm.fake_provider import DONE, FakeProvider, chunk, fake_provider, stream, usage
from tests.servers import give_key
from tests.telemetry.collector import Collector, SeenSpan, collecting, relaying

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "kettle"
CALL = {"index": 0, "id": "t1", "type": "function", "function": {"name": "read-file", "arguments": ""}}
ARGUMENTS = {"index": 0, "function": {"arguments": '{"file_path": "notes.txt"}'}}
LOOK = stream(
    chunk({"role": "assistant", "tool_calls": [CALL]}),
    chunk({"tool_calls": [ARGUMENTS]}),
    chunk({}, "tool_calls"),
    usage(20, 5),
    DONE,
)
ANSWER = stream(chunk({"content": f"A {SECRET} is in it."}), chunk({}, "stop"), usage(30, 7, cached=11), DONE)
HANG = stream(chunk({"content": "I thi"}), ending="hang")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`clew up` in a process of its own, once it works."""
    with start("up", "--json", *arguments) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture
def collector(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:  # noqa: F811
    """The address to which the processes of a test send their spans, through another collector."""
    with collecting() as (found, address), relaying(address, tmp_path) as relay:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", relay)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield found


def configure(folder: Path, provider: FakeProvider) -> None:  # noqa: F811
    give_key(folder)
    (folder.parent / "notes.txt").write_text(f"a blue {SECRET}\n")
    table = f'[models]\ndefault = "lab:m-1"\n[providers.lab]\nbase_url = "{provider.url}/v1"\n'
    (folder / "config.toml").write_text(table)
    trust_all(folder)


def in_trace(collector: Collector) -> list[SeenSpan]:
    return [each for each in collector.spans if each.trace == TRACE]


@pytest.mark.slow
@pytest.mark.req("RCR-54")
async def test_a_chat_over_processes_of_which_one_is_killed_is_one_trace(
    clew: Clew,  # noqa: F811
    folder: Path,  # noqa: F811
    collector: Collector,
) -> None:
    roles = ("--role", "context", "--role", "agents", "--role", "tools")
    async with fake_provider() as provider, asyncio.timeout(2 * PATIENCE):
        configure(folder, provider)
        provider.answers = [HANG, LOOK, ANSWER]
        with running("--port", "0", "--role", "server") as (_, serving), running(*roles) as (first, _):
            token = (await asyncio.to_thread(clew, "token")).out.strip()
            headers = {
                "Authorization": f"Bearer {token}",
                "traceparent": f"00-{TRACE}-{CALLER}-01",
            }
            async with httpx.AsyncClient(base_url=serving["url"], headers=headers, timeout=2 * PATIENCE) as http:
                message = {"message": f"What is in notes.txt, a {SECRET}?", "wait": 120}
                asking = asyncio.create_task(http.post("/chat", json=message))
                is_asked = lambda: provider.asked and collector.named("step assistant")  # noqa: E731
                await asyncio.to_thread(collector.until, is_asked, "the first worker has asked the model")
                first.send_signal(signal.SIGKILL)
                await asyncio.to_thread(first.wait, PATIENCE)
                with running(*roles) as (second, _):
                    answer = (await asking).json()
                    await asyncio.to_thread(
                        collector.until, lambda: collector.named("invoke_agent"), "the span of the run"
                    )
                    await asyncio.to_thread(
                        collector.until, lambda: collector.named("POST /chat"), "the span of the request"
                    )
                    second.send_signal(signal.SIGTERM)
                    assert await asyncio.to_thread(second.wait, PATIENCE) == 0
    assert (answer["status"], answer["text"]) == ("done", f"A {SECRET} is in it.")
    check_trace(collector, answer, first.pid)


def check_trace(collector: Collector, answer: dict[str, Any], killed: int) -> None:
    spans = in_trace(collector)
    by_id = {each.id: each for each in spans}
    assert len(by_id) == len(spans), "a span came twice"
    run = next(each for each in spans if each.name == "invoke_agent assistant")
    request = next(each for each in spans if each.name == "POST /chat")
    assert (request.parent, run.parent) == (CALLER, request.id)
    names = [each.name for each in sorted(spans, key=lambda each: each.start) if each.parent == run.id]
    assert names == [
        "build_context assistant",
        "step assistant",
        "chat m-1",
        "step assistant",
        "execute_tool read-file",
        "step assistant",
        "chat m-1",
        "step assistant",
    ]
    assert len(spans) == len(names) + 2, "every span of the run is a part of it"
    assert all(by_id[each.parent].start <= each.start <= each.end for each in spans if each is not request)
    assert {each.attributes["gen_ai.conversation.id"] for each in spans if each is not request} == {answer["session"]}
    assert {each.attributes["clew.run"] for each in spans if each is not request} == {answer["run"]}
    calls = [each.attributes for each in spans if each.name == "chat m-1"]
    tokens = [(each["gen_ai.usage.input_tokens"], each["gen_ai.usage.output_tokens"]) for each in calls]
    assert sorted(tokens) == [(20, 5), (30, 7)]
    workers = {each.name: each.worker for each in spans}
    assert f":{killed}:" in workers["build_context assistant"]
    assert len({workers[name] for name in ("build_context assistant", "chat m-1", "POST /chat")}) == 3
    assert not any(each.is_error for each in spans)
    assert not any(SECRET.encode() in body for body in collector.raw), "a text left the process"
