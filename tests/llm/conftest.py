"""Models are called on this machine only: a switch forbids calls to servers that a test has not started itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.config import Config, ModelsConfig, ProviderConfig
from clew.llm.model import Models, open_models
from clew.llm.providers import remote_model
from clew.llm.providers.provider import provider_wishes
from clew.trust import Trust
from tests.llm.fake_provider import FakeProvider, fake_provider


@pytest.fixture(scope="session", autouse=True)
def no_calls() -> None:
    remote_model.is_allowed = False


@pytest.fixture
def calls_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests whose server runs on this machine."""
    monkeypatch.setattr(remote_model, "is_allowed", True)


@pytest.fixture
async def provider(calls_allowed: None) -> AsyncIterator[FakeProvider]:
    async with fake_provider() as found:
        yield found


def configured(folder: Path, tables: dict[str, ProviderConfig], **models: str) -> Config:
    """Settings of a folder whose providers the user has agreed to."""
    config = Config(folder=folder / ".clew", providers=tables, models=ModelsConfig(**models))
    Trust.open().grant(provider_wishes(config, folder))
    return config


@pytest.fixture
async def models(provider: FakeProvider, tmp_path: Path) -> AsyncIterator[Models]:
    """`lab:…` speaks as OpenAI-compatible servers do, `claude:…` as Anthropic, `gpt:…` as OpenAI."""
    tables = {
        "lab": ProviderConfig(base_url=f"{provider.url}/v1", key="env:LAB_KEY", timeout_seconds=20),
        "claude": ProviderConfig(kind="anthropic", base_url=provider.url, key="env:LAB_KEY", timeout_seconds=20),
        "gpt": ProviderConfig(kind="openai", base_url=f"{provider.url}/v1", key="env:LAB_KEY", timeout_seconds=20),
    }
    opened = open_models(configured(tmp_path, tables, default="lab:m-1"), {"LAB_KEY": "sk-lab-0123456789abcdef0123"})
    yield opened
    await opened.close()
