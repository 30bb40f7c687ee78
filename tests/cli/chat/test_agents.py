"""The model, agent and adapter that answer a chat, errors if they cannot, and the usage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.chat.conftest import Say
from tests.cli.conftest import Clew


def test_without_a_model_one_line_says_how_to_add_one_and_the_catalog_answers(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    (folder.parent / "README.md").write_text("# Kettles\n\nA kettle is mended with patience.\n")
    result = clew("chat", "how is a kettle mended")
    assert result.code == 0
    new, told_how = result.err.splitlines()
    assert new.startswith("A new trail: ")
    assert "without a model: no model is configured" in told_how
    assert "[models]" in told_how
    assert result.out.startswith("README.md:1  ")
    assert result.out == clew("ask", "how is a kettle mended").out
    assert "Nothing here is close to that question" in clew("chat", "zzyzx qwrtp").out
    told = clew("chat", "how is a kettle mended", "--json").json
    assert (told["type"], "[models]" in told["reason"]) == ("without_model", True)
    assert "README.md:1" in told["text"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("qwen3", "Write provider:model, such as ollama:qwen3"),
        ("nowhere:x", "there is no provider 'nowhere'"),
        ("lab:x", "you have not agreed that the provider lab"),
        ("openai:x", "OPENAI_API_KEY is not set"),
    ],
)
def test_a_model_that_is_configured_and_cannot_be_used_is_an_error(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text('[providers.lab]\nbase_url = "https://models.example.org/v1"\n')
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CLEW_MODELS_DEFAULT", model)
    result = clew("chat", "hello")
    assert (result.code, result.out) == (1, "")
    assert said in result.err
    doctor = {each["name"]: each for each in clew("doctor", "--json").json["findings"]}
    assert doctor["models"]["level"] == "wrong"


def test_an_error_in_a_script_names_the_file(clew: Clew, folder: Path) -> None:
    (folder.parent / "odd.yaml").write_text("- says: hello\n")
    result = clew("chat", "hello", "--script", "odd.yaml")
    assert result.code == 2
    assert "odd.yaml" in result.err


AGENT = "---\ndescription: Decides.\ntools: [read-file]\n---\nYou decide whether the ferry sails.\n"


def test_an_agent_of_markdown_says_that_it_waits_that_it_changed_or_that_it_is_broken(
    say: Say, clew: Clew, folder: Path
) -> None:
    path = folder / "agents" / "captain.md"
    path.parent.mkdir(parents=True)
    path.write_text(AGENT)
    assert "you have not agreed to it yet" in say("greet me", "--agent", "captain").err
    clew("trust", "--yes")
    assert say("greet me", "--agent", "captain").code == 0
    path.write_text(AGENT + "Take your time.\n")
    changed = say("greet me", "--agent", "captain")
    assert changed.code == 1
    assert "it has changed since you agreed to it. Look at it and agree: `clew trust`" in changed.err
    (told,) = clew("agents", "--json").json["kept_back"]
    assert (told["name"], "changed" in told["reason"]) == ("captain", True)
    assert "captain does not run: it has changed" in clew("agents").err
    path.write_text("---\ntools: {\n---\n")
    assert "captain does not run: " in clew("agents").err
    assert "captain.md" in say("greet me", "--agent", "captain").err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--list", "hello"), "--list"),
        (("hello", "--agent", "nobody"), "clew agents"),
        (("hello", "--session", "none-such"), "clew session list"),
        (("hello", "--last", "-1"), "--last"),
        (("",), "message"),
        (("hello", "--script", "nowhere.yaml"), "--script"),
        (("hello", "--adapter", "nowhere.py"), "--adapter"),
    ],
)
def test_a_failure_is_one_line(clew: Clew, script: Path, arguments: tuple[str, ...], told: str) -> None:
    given = arguments if "--script" in arguments else (*arguments, "--script", str(script))
    result = clew("chat", *given)
    assert result.code in (1, 2)
    assert told in result.err
    assert result.err.count("clew: ") == 1


ADAPTER = '''
from dataclasses import replace
import msgspec

class Loud:
    """Shouts what the agent says."""

    def __init__(self, agent):
        self._agent = agent
        self.name, self.registry = agent.name, agent.registry

    async def process(self, input):
        async for step in self._agent.process(input):
            is_answer = type(step).__name__ == "Answered"
            yield msgspec.structs.replace(step, text=step.text.upper()) if is_answer else step

    async def capabilities(self):
        return await self._agent.capabilities()

    async def start(self):
        await self._agent.start()

    async def stop(self):
        await self._agent.stop()


class adapter:
    name = "loud"

    def wrap(self, agent, config):
        return Loud(agent)
'''


@pytest.mark.req("PLA-20")
@pytest.mark.req("PLA-19")
def test_an_adapter_of_a_file_is_put_around_the_same_agent(say: Say, folder: Path) -> None:
    (folder.parent / "loud.py").write_text(ADAPTER)
    assert say("what is in it?", "--adapter", "loud.py").out == "A BLUE KETTLE IS IN IT.\n"
    assert say("what is in it?").out == "A blue kettle is in it.\n"


def test_usage_is_listed_by_agent_and_model(say: Say, clew: Clew) -> None:
    assert "No model was called yet" in clew("usage").err or clew("usage").code == 1
    say("what is in it?")
    rows = clew("usage").rows
    assert [row[0] for row in rows] == ["total", "agent", "session", "layer", "model"]
    assert rows[1][1:4] == ["assistant", "2", "0"]
    assert clew("usage", "--by", "agent", "--json").json["assistant"]["calls"] == 2
    assert clew("usage", "--agent", "nobody", "--json").json["total"]["calls"] == 0


def test_agents_are_listed_with_their_calls_and_what_keeps_them_from_working(say: Say, clew: Clew) -> None:
    say("what is in it?")
    found = {each["agent_id"]: each for each in clew("agents", "--json").json["items"]}
    assert (found["assistant"]["calls"], found["assistant"]["circuit"]) == (2, "closed")
    assert found["assistant"]["problem"]
    assert "assistant" in clew("agents").out


def test_calls_that_failed_are_counted_apart(say: Say, clew: Clew) -> None:
    say("please fail")
    rows = clew("usage").rows
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("total", "0", "1"),
        ("agent", "0", "1"),
        ("session", "0", "1"),
    ]
    assert rows[1][1] == "assistant"
    assert clew("usage", "--json").json["total"]["failed"] == 1
    assert clew("usage", "--agent", "nobody", "--json").json["total"]["failed"] == 0


def test_a_circuit_that_opened_is_reported(say: Say, clew: Clew) -> None:
    for _ in range(5):
        say("please fail")
    found = {each["agent_id"]: each for each in clew("agents", "--json").json["items"]}
    assert (found["assistant"]["circuit"], found["assistant"]["error_rate"]) == ("open", 1.0)
