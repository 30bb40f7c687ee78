"""The model for a name, its properties, the place of its key, and settings that need consent."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from clew.config import Config, KnownModel, ModelsConfig, ProviderConfig
from clew.config.key_references import read_key
from clew.errors import ConfigError, ModelError
from clew.llm.messages import Message, MessageSource, ToolCall, ToolSpec, prompt_digest
from clew.llm.model import ModelRequest, open_models
from clew.llm.model_catalogue import LARGEST_BUDGET, SMALLEST_BUDGET, Catalogue, shipped
from clew.llm.providers.provider import check_consent, find_provider, provider_wish, provider_wishes
from clew.llm.providers.tool_names import ToolNames
from clew.trust import Trust

KEY = "sk-secret-0123456789abcdef"


# -- the catalogue ----------------------------------------------------------------------------------------


@pytest.mark.req("RCR-36")
def test_another_model_brings_another_budget(tmp_path: Path) -> None:
    budgets = {}
    for name in (
        "anthropic:claude-haiku-4-5",
        "anthropic:claude-sonnet-5-5",
        "openai:gpt-4o",
        "ollama:qwen3-coder:30b",
    ):
        config = Config(folder=tmp_path, models=ModelsConfig(default=name))
        environ = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
        _, info = open_models(config, environ).resolve("default")
        budgets[name] = info.budget_tokens
    assert budgets == {
        "anthropic:claude-haiku-4-5": 150_000,
        "anthropic:claude-sonnet-5-5": 750_000,
        "openai:gpt-4o": 96_000,
        "ollama:qwen3-coder:30b": 196_608,
    }


@pytest.mark.req("RCR-36")
def test_every_model_that_has_the_room_has_a_budget_from_50_to_750_thousand() -> None:
    for entry in shipped().models:
        info = Catalogue().look_up(entry.provider or "ollama", entry.name)
        assert info.is_known
        assert info.budget_tokens + info.output_tokens // 2 <= info.context_tokens
        if entry.context_tokens >= 100_000:
            assert SMALLEST_BUDGET <= info.budget_tokens <= LARGEST_BUDGET
        else:
            assert info.budget_tokens <= info.context_tokens


@pytest.mark.parametrize(
    ("provider", "name", "meant"),
    [
        ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("openai", "gpt-5-2025-08-07", "gpt-5"),
        ("openai", "gpt-5-mini", "gpt-5-mini"),
        ("ollama", "qwen3:8b", "qwen3"),
        ("ollama", "functiongemma:latest", "functiongemma"),
        ("openrouter", "anthropic/claude-sonnet-5.5", "claude-sonnet-5-5"),
    ],
)
def test_a_model_is_known_by_its_dated_tagged_and_resold_names(provider: str, name: str, meant: str) -> None:
    [entry] = [each for each in shipped().models if each.name == meant]
    found = Catalogue().look_up(provider, name)
    assert (found.name, found.context_tokens, found.formatter) == (name, entry.context_tokens, entry.formatter)


def test_an_unknown_model_has_cautious_defaults() -> None:
    found = Catalogue().look_up("openai", "gpt-99-ultra")
    assert (found.is_known, found.context_tokens, found.input_price) == (False, 128_000, None)
    assert found.cost_of(1_000_000, 1) is None
    local = Catalogue().look_up("ollama", "my-own")
    assert (local.is_known, local.context_tokens, local.budget_tokens, local.input_price) == (False, 8_192, 6_144, 0.0)
    assert Catalogue().look_up("claude", "claude-opus-5-9", "anthropic").is_known is False
    assert Catalogue().look_up("lab", "any").context_tokens == 32_768


def test_prices_of_one_seller_are_not_those_of_another() -> None:
    assert Catalogue().look_up("anthropic", "claude-sonnet-5-5").cost_of(1_000_000, 100_000, 500_000) == 2.05
    assert Catalogue().look_up("anthropic", "claude-sonnet-5-5").cost_of(1_000_000, 0, 0, 400_000) == 2.2
    resold = Catalogue().look_up("openrouter", "anthropic/claude-sonnet-5.5")
    assert (resold.context_tokens, resold.input_price, resold.cost_of(1, 1)) == (1_000_000, None, None)
    assert Catalogue().look_up("mine", "claude-sonnet-5-5", "anthropic").input_price == 2


def test_the_users_facts_about_a_model_take_precedence(tmp_path: Path) -> None:
    known = {
        "lab:big": KnownModel(context_tokens=500_000, input_price=1.5, output_price=2.5, formatter="json"),
        "claude-haiku-4-5": KnownModel(budget_tokens=60_000, capabilities=("tools",)),
    }
    catalogue = Catalogue(known)
    big = catalogue.look_up("lab", "big")
    assert (big.budget_tokens, big.formatter, big.is_known, big.cost_of(1_000_000, 0)) == (375_000, "json", True, 1.5)
    haiku = catalogue.look_up("anthropic", "claude-haiku-4-5")
    assert (haiku.budget_tokens, haiku.context_tokens, haiku.capabilities) == (60_000, 200_000, ("tools",))
    for wrong in (KnownModel(context_tokens=1), KnownModel(input_price=-1.0), KnownModel(output_price=float("nan"))):
        with pytest.raises(ConfigError, match=r"\[models\.known\.x\]"):
            Catalogue({"x": wrong})


# -- roles ------------------------------------------------------------------------------------------------


def test_with_no_model_at_all_one_line_says_how_to_add_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as told:
        open_models(Config(folder=tmp_path), {}).resolve("default")
    assert told.value.kind == "config"
    assert str(told.value).startswith("no model is configured. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or")
    assert 'below [models] in .clew/config.toml: default = "ollama:qwen3"' in str(told.value)
    assert str(told.value).isprintable()


@pytest.mark.parametrize(
    ("variable", "default", "fast"),
    [
        ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5", "anthropic:claude-haiku-5-5"),
        ("OPENAI_API_KEY", "openai:gpt-6.1-terra", "openai:gpt-6-luna"),
        ("OPENROUTER_API_KEY", "openrouter:anthropic/claude-sonnet-5.5", "openrouter:anthropic/claude-haiku-5.5"),
    ],
)
def test_keys_in_their_usual_variables_are_found_without_any_setting(
    variable: str, default: str, fast: str, tmp_path: Path
) -> None:
    models = open_models(Config(folder=tmp_path), {variable: KEY})
    assert models.resolve("default")[1].full_name == default
    assert models.resolve("")[1].full_name == default
    assert models.resolve("fast")[1].full_name == fast


def test_roles_lead_to_roles_and_to_models(tmp_path: Path) -> None:
    settings = ModelsConfig(default="ollama:qwen3", strong="coding", coding="anthropic:claude-opus-5-5")
    settings = ModelsConfig(**{**_fields(settings), "roles": {"guide": "fast", "loop": "pool", "pool": "loop"}})
    models = open_models(Config(folder=tmp_path, models=settings), {"ANTHROPIC_API_KEY": KEY})
    for name, meant in (
        ("fast", "ollama:qwen3"),
        ("guide", "ollama:qwen3"),
        ("strong", "anthropic:claude-opus-5-5"),
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("openrouter", ""),
        ("loop", ""),
    ):
        if meant:
            assert models.resolve(name)[1].full_name == meant
        else:
            with pytest.raises(ModelError) as told:
                models.resolve(name)
            assert told.value.kind == "config"
    assert models.resolve("strong")[0] is models.resolve("coding")[0]


def _fields(settings: ModelsConfig) -> dict[str, str]:
    return {name: getattr(settings, name) for name in ("default", "fast", "strong", "coding")}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-haiku-4-6", "there is no model or role 'claude-haiku-4-6'. Did you mean"),
        ("nonsense", "there is no model or role 'nonsense'. Write provider:model, such as ollama:qwen3"),
        ("qwen3", "there is no model or role 'qwen3'. Write provider:model, such as ollama:qwen3"),
        ("qwen3-code", "Write provider:model, such as ollama:qwen3-coder"),
        ("olama:qwen3", "there is no provider 'olama'. Did you mean ollama?"),
        ("anthropic:claude-haiku-4-5", "anthropic needs a key: ANTHROPIC_API_KEY is not set"),
        ("odd:x", "[providers.odd] has the unknown kind 'opnai'. Did you mean openai?"),
        ("empty:x", "[providers.empty] has no base_url"),
    ],
)
def test_an_unresolvable_model_is_an_error_with_the_next_step(name: str, said: str, tmp_path: Path) -> None:
    tables = {"odd": ProviderConfig(kind="opnai"), "empty": ProviderConfig()}
    with pytest.raises(ModelError) as told:
        open_models(Config(folder=tmp_path, providers=tables), {}).resolve(name)
    assert said in str(told.value)
    assert told.value.kind == "config"


# -- providers and consent --------------------------------------------------------------------------------


def test_known_servers_need_no_table_and_may_be_moved_by_their_own_variables(tmp_path: Path) -> None:
    config = Config(folder=tmp_path)
    found = {name: find_provider(name, config, {}) for name in shipped().providers}
    assert found["ollama"].base_url == "http://127.0.0.1:11434/v1"
    assert {each.kind for name, each in found.items() if name not in ("openai", "anthropic")} == {"openai-compatible"}
    moved = find_provider("openai", config, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert (moved.base_url, moved.key) == ("http://127.0.0.1:9/v1", "env:OPENAI_API_KEY")


def test_an_address_with_a_query_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as told:
        find_provider("openai", Config(folder=tmp_path), {"OPENAI_BASE_URL": "https://models.example/v1?key=hunter2x"})
    assert str(told.value).startswith("the address of openai in OPENAI_BASE_URL has a query")
    assert "hunter2x" not in str(told.value)
    assert "hunter2x" not in told.value.hint


HARMLESS = [
    ("ollama", ProviderConfig()),
    ("openai", ProviderConfig(timeout_seconds=5)),
    ("openai", ProviderConfig(kind="openai", key="env:OPENAI_API_KEY", base_url="https://api.openai.com/v1/other")),
]
WISHES = [
    ("ollama", ProviderConfig(base_url="http://localhost:9999/v1"), "sends conversations to http://localhost:9999/v1"),
    ("box", ProviderConfig(base_url="http://127.0.0.1:8000/v1"), "sends conversations to http://127.0.0.1:8000/v1"),
    ("openai", ProviderConfig(base_url="https://evil.example/v1"), "env:OPENAI_API_KEY, to https://evil.example/v1"),
    ("openai", ProviderConfig(base_url="http://api.openai.com/v1"), "env:OPENAI_API_KEY, to http://api.openai.com/v1"),
    ("openai", ProviderConfig(base_url="https://api.openai.com.evil.example/v1"), "api.openai.com.evil.example"),
    ("box", ProviderConfig(kind="anthropic", base_url="http://127.0.0.1:1"), "env:ANTHROPIC_API_KEY, to http://127"),
    ("box", ProviderConfig(base_url="https://models.example/v1"), "sends conversations to https://models.example/v1"),
    (
        "box",
        ProviderConfig(base_url="http://127.0.0.1:1/v1", key="file:~/.ssh/id_rsa"),
        "the key in file:~/.ssh/id_rsa",
    ),
    ("openai", ProviderConfig(key="env:GITHUB_TOKEN"), "the key in env:GITHUB_TOKEN, to https://api.openai.com/v1"),
    ("ollama", ProviderConfig(base_url="https://127.0.0.1.evil.example/v1"), "127.0.0.1.evil.example"),
]


@pytest.mark.parametrize(("name", "table"), HARMLESS)
def test_a_table_that_sends_nothing_new_needs_no_consent(name: str, table: ProviderConfig, tmp_path: Path) -> None:
    assert provider_wish(name, table, tmp_path) is None


@pytest.mark.parametrize(("name", "table", "said"), WISHES)
def test_a_folder_cannot_send_keys_or_conversations_elsewhere_alone(
    name: str, table: ProviderConfig, said: str, tmp_path: Path
) -> None:
    config = Config(folder=tmp_path / ".clew", providers={name: table})
    environ = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "GITHUB_TOKEN": KEY}
    models = open_models(config, environ)
    with pytest.raises(ModelError, match=r"you have not agreed .*`clew trust`") as told:
        models.resolve(f"{name}:m-1")
    assert said in str(told.value)
    assert KEY not in str(told.value)
    Trust.open().grant(provider_wishes(config, tmp_path))
    models.resolve(f"{name}:m-1")
    changed = Config(folder=tmp_path / ".clew", providers={name: ProviderConfig(**_moved(table))})
    with pytest.raises(ModelError, match="have not agreed"):
        check_consent(name, changed)


def _moved(table: ProviderConfig) -> dict[str, object]:
    return {"kind": table.kind, "base_url": "https://changed.example/v1", "key": table.key}


def test_clew_trust_shows_what_a_provider_wants(tmp_path: Path) -> None:
    from clew.catalog.consent.consent import read_wishes

    table = ProviderConfig(base_url="https://evil.example/v1", key="env:AWS_SECRET_ACCESS_KEY")
    config = Config(folder=tmp_path / ".clew", providers={"box": table})
    [wish] = [each for each in read_wishes(config) if each.kind == "provider"]
    assert wish.name == "box"
    assert "https://evil.example/v1" in wish.summary


# -- keys -------------------------------------------------------------------------------------------------


def test_a_key_is_read_from_a_variable_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "key").chmod(0o600)
    assert read_key("env:LAB", {"LAB": KEY}, tmp_path) == KEY
    assert read_key("file:key", {}, tmp_path) == KEY
    assert read_key(f"file:{tmp_path / 'key'}", {}, Path("/nowhere")) == KEY


@pytest.mark.skipif(os.name != "posix", reason="permissions of files")
def test_a_file_with_a_key_that_others_can_read_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert read_key("file:key", {}, tmp_path) == KEY
    assert "chmod 600" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("env:LAB", "there is no key in env:LAB"),
        ("file:none", "cannot be read: No such file"),
        ("file:.", "cannot be read"),
        ("file:empty", "there is no key in file:empty"),
        ("file:huge", "is not a file with a key"),
        ("file:odd", "the text in file:odd is not a key"),
        ("file:a\0b", "cannot be read"),
        (KEY, "the key of a provider is not named"),
    ],
)
def test_the_error_for_an_invalid_key_does_not_contain_it(reference: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "huge").write_text("x" * 20_000)
    (tmp_path / "odd").write_text("two lines\nof a secret text")
    with pytest.raises(ConfigError) as told:
        read_key(reference, {}, tmp_path)
    assert said in str(told.value)
    assert KEY not in str(told.value)
    assert "secret text" not in str(told.value)
    assert told.value.hint


def test_a_key_in_the_keyring_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keyring = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")

    kept: dict[tuple[str, str], str] = {}

    class Memory(backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del kept[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    try:
        keyring.set_password("clew", "ann/work", KEY)
        assert read_key("keyring:clew/ann/work", {}, tmp_path) == KEY
        with pytest.raises(ConfigError, match="there is no key in keyring:clew/eve"):
            read_key("keyring:clew/eve", {}, tmp_path)
        from keyring.backends.fail import Keyring

        keyring.set_keyring(Keyring())
        with pytest.raises(ConfigError, match="gives no key"):
            read_key("keyring:clew/ann", {}, tmp_path)
    finally:
        keyring.set_keyring(before)


def test_without_the_extra_the_keyring_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=r"Install clew\[keyring\]"):
        read_key("keyring:clew/ann", {}, tmp_path)


async def test_a_key_that_cannot_be_read_is_a_failure_of_the_first_call(calls_allowed: None, tmp_path: Path) -> None:
    tables = {"lab": ProviderConfig(base_url="http://127.0.0.1:1/v1", key="file:none")}
    config = Config(folder=tmp_path / ".clew", providers=tables)
    Trust.open().grant(provider_wishes(config, tmp_path))
    model, _ = open_models(config, {}).resolve("lab:m")
    with pytest.raises(ModelError, match="cannot be read: No such file") as told:
        await model.answer(ModelRequest(messages=(Message(role="user", content="?"),)))
    assert told.value.kind == "config"


# -- messages ---------------------------------------------------------------------------------------------


def test_the_digest_is_that_of_what_was_sent() -> None:
    said = [Message(role="user", content="x"), Message(role="assistant", tool_calls=(ToolCall(id="1", name="t"),))]
    tool = ToolSpec(name="t", description="d", schema={"b": 1, "a": 2})
    digest = prompt_digest(said, [tool])
    assert len(digest) == 32
    sourced = [Message(role="user", content="x", source=MessageSource(id="i", version=1, field="f")), said[1]]
    assert prompt_digest(sourced, [ToolSpec(name="t", description="d", schema={"a": 2, "b": 1})]) == digest
    assert prompt_digest(said, []) != digest
    assert prompt_digest([*said, Message(role="tool", content="", tool_call_id="1")], [tool]) != digest


def test_tool_names_are_made_fit_without_ever_meeting() -> None:
    given = ["a/b", "a.b", "a_b", "x" * 100, "x" * 101, "größe", "", "a b"]
    names = ToolNames(given)
    there = [names.there(each) for each in given]
    assert len(set(there)) == len(given)
    assert all(each and len(each) <= 64 and each.isascii() for each in there)
    assert [names.back(each) for each in there] == given
    assert names.there("a_b") == "a_b"
    assert names.back("unknown") == "unknown"
